"""Helpers of the commands of `aerotape entity`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Unpack

from aerotape.codecs.journal_type import JOURNAL_TYPES
from aerotape.errors import ConfigurationError
from aerotape.tools._cli.arguments import channel, integer
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import note
from aerotape.tools._cli.times import time_text

if TYPE_CHECKING:
    from aerotape.entity.blocking.entities import Entities
    from aerotape.entity.records import EntityOptions
    from aerotape.entity.stored import StoredEntities


def add_journal_command(
    commands: Commands, name: str, run_it: Callable[[argparse.Namespace], int | None]
) -> argparse.ArgumentParser:
    """Add a command that works on one journal, over a connection to the archive."""
    parser = add_command(commands, name, run_it)
    add_topic(parser)
    parser.add_argument("--key", metavar="ID", type=key, required=True, help="the entity's id")
    add_optional_store(parser)
    parser.add_argument(
        "--partitions",
        metavar="N",
        type=partitions,
        help="the number of recordings of the topic (default: as it has, 1 for a new one)",
    )
    parser.add_argument(
        "--type",
        choices=JOURNAL_TYPES,
        help="acknowledge records on storage or in the page cache (default: as the topic has, "
        "VD_JOURNAL for a new one)",
    )
    parser.add_argument(
        "--channel",
        metavar="CHANNEL",
        type=channel,
        default="aeron:ipc",
        help="the channel of the topic's publications, on the archive's media driver (default: "
        "aeron:ipc)",
    )
    add_connection_options(parser)
    return parser


def add_store_only(parser: argparse.ArgumentParser) -> None:
    """Add the option of a command that can read without an archive."""
    parser.add_argument(
        "--store-only",
        action="store_true",
        help="read only from --store, which needs no archive; what is not replicated is missing",
    )


def add_topic(parser: argparse.ArgumentParser) -> None:
    """Add the option of the topic."""
    parser.add_argument("--topic", metavar="T", required=True, help="the topic's name")


def add_store(
    parser: argparse.ArgumentParser, option: str = "--store", what: str = "the store"
) -> None:
    """Add the option of a replicator's store."""
    parser.add_argument(
        option,
        dest=option.removeprefix("--"),
        metavar="URL",
        required=True,
        help=f"{what}: sqlite:PATH, postgresql://HOST/DATABASE or "
        "cassandra://HOST:PORT/KEYSPACE; options as ?namespace=NAME&segment_size=N&segments=N",
    )


def add_optional_store(parser: argparse.ArgumentParser) -> None:
    """Add the option of a store to read from."""
    parser.add_argument(
        "--store",
        metavar="URL",
        help="the store of the topic's replicator, for example sqlite:journals.db (default: none; "
        "the recordings are read)",
    )


def partitions(text: str) -> int:
    """Parse a number of partitions."""
    return integer(text, 1, 10_000)


def key(text: str) -> str:
    """Check that the id of an entity is UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not UTF-8") from None
    return text


def seq_nr(text: str) -> int:
    """Parse a sequence number: from 1, 63 bits."""
    return integer(text, 1, (1 << 63) - 1)


def last_seq_nr(text: str) -> int:
    """Parse the last sequence number of a journal: 0 without one."""
    return integer(text, 0, (1 << 63) - 2)


def age_ns(text: str) -> int:
    """Parse a time since an append, into nanoseconds."""
    from aerotape.codecs.entity.durations import parse_expire_after
    from aerotape.errors import CodecError

    try:
        return parse_expire_after(text)
    except CodecError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def journals(
    args: argparse.Namespace, *, may_be_new: bool = False
) -> AbstractContextManager[Entities]:
    """Open the topic of a command of `add_journal_command`; arguments as of `open_topic`."""
    options: EntityOptions = {"type": args.type, "channel": args.channel}
    return open_topic(args, args.partitions, may_be_new=may_be_new, **options)


@contextmanager
def open_topic(
    args: argparse.Namespace,
    partitions: int | None = None,
    *,
    may_be_new: bool = False,
    **options: Unpack[EntityOptions],
) -> Iterator[Entities]:
    """Open the topic and the store of a command, over a connection to the archive.

    Args:
        partitions: the number of its partitions; None: as it has.
        may_be_new: create a topic that has no recording. Else it is refused: also reading writes,
            a mark, and would create it.
        options: of the topic.
    """
    from aerotape.entity.topic import check_topic, existing_recordings_of

    topic = check_topic(args.topic)
    with ExitStack() as stack:
        store = None
        if args.store is not None:
            from aerotape.entity.stores.url import open_store

            store = stack.enter_context(open_store(args.store))
        client = stack.enter_context(connect(args))
        if not may_be_new:
            existing_recordings_of(topic, client.list_recordings())
        yield stack.enter_context(client.entities(topic, partitions, store, **options))


@contextmanager
def readable_journals(args: argparse.Namespace) -> Iterator[Entities | StoredEntities]:
    """Open the topic of a command with `add_store_only` for reading.

    With --store-only, a note says how old the answer may be.
    """
    if not args.store_only:
        with journals(args) as entities:
            yield entities
        return
    if args.store is None:
        raise ConfigurationError("--store-only: there is no store; give --store", "--store-only")
    from aerotape.entity.stored import StoredEntities
    from aerotape.entity.stores.url import open_store

    with open_store(args.store) as store:
        stored = StoredEntities(store, args.topic)
        replicated = stored.replicated_to()
        oldest = min(replicated, key=lambda index: replicated[index].updated_ms)
        note(
            f"topic {args.topic} as replicated at {time_text(replicated[oldest].updated_ms)} "
            f"(partition {oldest}, the oldest of {len(replicated)}): newer records may be missing"
        )
        yield stored
