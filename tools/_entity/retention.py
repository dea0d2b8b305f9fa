"""`retention`: purge old segments of a topic's log."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Final

from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit_line
from aerotape.tools._entity._common import add_topic, age_ns


@dataclass(frozen=True, slots=True)
class RetainedPartition:
    """A partition whose segment files were purged.

    Attributes:
        topic: topic.
        partition: partition of the topic.
        recording_id: recording id.
        start_position: start position, bytes.
        segment_files: number of segment files purged.
        replicated_to: position up to which replicators have it, bytes.
        held_files: older segment files that are not deleted because they are not replicated.
    """

    topic: str
    partition: int
    recording_id: int
    start_position: int
    segment_files: int
    replicated_to: int | None
    held_files: int


JSON_ROWS: Final = {"retention": RetainedPartition}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "retention", _retention)
    add_topic(parser)
    parser.add_argument(
        "--store",
        metavar="URL",
        action="append",
        default=[],
        help="the store of a replicator of the topic (repeatable)",
    )
    parser.add_argument(
        "--max-age",
        metavar="TIME",
        type=age_ns,
        required=True,
        help="purge segments whose records are all older: 24h, 90m, 30s",
    )
    parser.add_argument(
        "--force", action="store_true", help="purge also segments that are not replicated"
    )
    parser.add_argument("--dry-run", action="store_true", help="report, and purge nothing")
    add_connection_options(parser)


def _retention(args: argparse.Namespace) -> None:
    """Purge segments of a topic's recordings by age, never past the slowest pointer.

    The pointers are those of the stores given. With --force, pointers do not count, and events that
    are not replicated are lost.
    """
    from aerotape.entity.retention import retain
    from aerotape.entity.stores.url import open_store

    with ExitStack() as stack:
        stores = [stack.enter_context(open_store(url)) for url in args.store]
        client = stack.enter_context(connect(args))
        purged = retain(
            client, args.topic, stores, args.max_age, force=args.force, dry_run=args.dry_run
        )
    for each in purged:
        held = f", {each.held_files} held because not replicated" if each.held_files else ""
        done = "would purge" if args.dry_run else "purged"
        text = f"partition {each.partition}: {done} {each.segment_files} segment files{held}"
        emit_line(RetainedPartition(topic=args.topic, **asdict(each)), text, args)
