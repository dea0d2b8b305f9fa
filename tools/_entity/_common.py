"""Helpers of the commands of `aerotape entity`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from aerotape.tools._cli.arguments import channel, integer
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import note

if TYPE_CHECKING:
    from aerotape.archive.client.client import ArchiveClient
    from aerotape.archive.entity.entities import Entities
    from aerotape.archive.entity.stores.store import Store


def add_journal_command(
    commands: Commands, name: str, run_it: Callable[[argparse.Namespace], int | None]
) -> argparse.ArgumentParser:
    """Add a command that works on one journal, over a connection to the archive."""
    parser = add_command(commands, name, run_it)
    add_topic(parser)
    parser.add_argument("--key", metavar="ID", type=key, required=True, help="the entity's id")
    parser.add_argument(
        "--store",
        metavar="URL",
        help="the store of the topic's replicator, for example sqlite:journals.db (default: none; "
        "the recordings are read)",
    )
    parser.add_argument(
        "--partitions",
        metavar="N",
        type=partitions,
        help="the number of recordings of the topic (default: as it has, 1 for a new one)",
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


def add_topic(parser: argparse.ArgumentParser) -> None:
    """Add the option of the topic."""
    parser.add_argument("--topic", metavar="T", required=True, help="the topic's name")


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add the option of the replicator's store."""
    parser.add_argument(
        "--store",
        metavar="URL",
        required=True,
        help="sqlite:PATH, postgresql://HOST/DATABASE or cassandra://HOST:PORT/KEYSPACE; options "
        "as ?namespace=NAME&segment_size=N&segments=N",
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


@contextmanager
def journals(args: argparse.Namespace) -> Iterator[Entities]:
    """Open the topic of a command of `add_journal_command`; a new topic is created."""
    with _client_and_store(args) as (client, store), _entities(args, client, store) as entities:
        yield entities


@contextmanager
def existing_journals(args: argparse.Namespace) -> Iterator[Entities | None]:
    """Open the topic as `journals` does, unless it is new: then yield None and print a note.

    Reading writes a mark, so it would create the topic, with the default number of partitions.
    """
    from aerotape.archive.entity.topic import check_topic, recordings_of

    check_topic(args.topic)
    with _client_and_store(args) as (client, store):
        is_new = not recordings_of(args.topic, client.list_recordings())
        if is_new and (store is None or store.pointer(args.topic, 0) is None):
            note(f"topic {args.topic} has no recording: it is new, or its name is another")
            yield None
            return
        with _entities(args, client, store) as entities:
            yield entities


@contextmanager
def _client_and_store(args: argparse.Namespace) -> Iterator[tuple[ArchiveClient, Store | None]]:
    with ExitStack() as stack:
        store = None
        if args.store is not None:
            from aerotape.archive.entity.stores.url import open_store

            store = stack.enter_context(open_store(args.store))
        yield stack.enter_context(connect(args)), store


def _entities(args: argparse.Namespace, client: ArchiveClient, store: Store | None) -> Entities:
    return client.entities(args.topic, args.partitions, store, channel=args.channel)
