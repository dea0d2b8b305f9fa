"""Helpers of the commands of `aerotape entity`."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from aerotape.tools._cli.arguments import channel, integer
from aerotape.tools._cli.common_options import add_common_options
from aerotape.tools._cli.connection import add_connection_options, connect

if TYPE_CHECKING:
    from aerotape.archive.entity.entities import Entities


class Commands(Protocol):
    """The result of `ArgumentParser.add_subparsers`."""

    def add_parser(self, name: str, **kwargs: Any) -> argparse.ArgumentParser:
        """Add a command."""
        ...


def add_command(
    commands: Commands, name: str, run_it: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """Add a command with its common options.

    Args:
        run_it: runs the command; its docstring is the help.
    """
    text = inspect.cleandoc(run_it.__doc__ or "")
    parser = commands.add_parser(
        name,
        description=text,
        help=text.partition("\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_common_options(parser, default=argparse.SUPPRESS)
    parser.set_defaults(run_action=run_it)
    return parser


def add_journal_command(
    commands: Commands, name: str, run_it: Callable[[argparse.Namespace], int]
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
        "--type",
        choices=("PD_JOURNAL", "VD_JOURNAL"),
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
def journals(args: argparse.Namespace, *, may_be_new: bool = False) -> Iterator[Entities]:
    """Open the topic of a command of `add_journal_command`.

    Args:
        may_be_new: create a topic that has no recording. Else it is refused: also reading writes,
            a mark, and would create it.
    """
    from aerotape.archive.entity.topic import check_topic, existing_recordings_of

    topic = check_topic(args.topic)
    with ExitStack() as stack:
        store = None
        if args.store is not None:
            from aerotape.archive.entity.stores.url import open_store

            store = stack.enter_context(open_store(args.store))
        client = stack.enter_context(connect(args))
        if not may_be_new:
            existing_recordings_of(topic, client.list_recordings())
        yield stack.enter_context(
            client.entities(topic, args.partitions, store, type=args.type, channel=args.channel)
        )
