"""`replicate`: store the journals of a topic."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.tools._cli.arguments import duration_ns
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit_line
from aerotape.tools._entity._common import add_store, add_topic

if TYPE_CHECKING:
    from aerotape.entity.replicator import Progress


@dataclass(frozen=True, slots=True)
class ReplicatedBatch:
    """A batch that was replicated.

    Attributes:
        topic: topic.
        partition: partition of the topic.
        offset: position of the last record, bytes.
        next_position: position after the record, bytes.
        end_position: recorded position of the partition, bytes.
        records: number of records.
        events: number of events.
    """

    topic: str
    partition: int
    offset: int
    next_position: int
    end_position: int
    records: int
    events: int


JSON_ROWS: Final = {"replicate": ReplicatedBatch}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "replicate", _replicate)
    add_topic(parser)
    add_store(parser)
    parser.add_argument(
        "--until-caught-up",
        action="store_true",
        help="end when all that is recorded now is stored (default: follow for ever)",
    )
    parser.add_argument(
        "--retry",
        metavar="TIME",
        type=duration_ns,
        default=60_000_000_000,
        help="how long to reconnect after the archive or the store went away (default: 60s)",
    )
    parser.add_argument(
        "--index-positions",
        action=argparse.BooleanOptionalAction,
        help="whether the store indexes all events by position, for `follow --store`; storing them "
        "takes a tenth longer (default: if it can, which Cassandra cannot)",
    )
    add_connection_options(parser)


def _replicate(args: argparse.Namespace) -> None:
    """Follow the recordings of a topic and store heads and events, one line for each batch.

    One replicator serves a namespace of a store. It continues at the pointers in the store, so it
    may be ended and started again at any time.
    """
    from aerotape.entity.replicator import Replicator
    from aerotape.entity.stores.url import open_store

    with Replicator(
        args.topic,
        lambda: connect(args),
        lambda: open_store(args.store, writable=True),
        retry_s=args.retry / 1e9,
        index_positions=args.index_positions,
    ) as replicator:
        for progress in replicator.run(args.until_caught_up):
            emit_line(_row(args.topic, progress), _text(progress), args)


def _row(topic: str, progress: Progress) -> ReplicatedBatch:
    return ReplicatedBatch(
        topic=topic,
        partition=progress.partition,
        **progress.pointer._asdict(),
        end_position=progress.end_position,
        records=progress.records,
        events=progress.events,
    )


def _text(progress: Progress) -> str:
    return (
        f"partition {progress.partition}: {progress.records} records, {progress.events} events, "
        f"replicated to {progress.pointer.next_position} of {progress.end_position}"
    )
