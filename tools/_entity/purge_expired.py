"""`purge-expired`: delete the journals that have expired."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit_line
from aerotape.tools._cli.times import time_text
from aerotape.tools._entity._common import add_store, add_topic


@dataclass(frozen=True, slots=True)
class ExpiredJournal:
    """A journal that has expired.

    Attributes:
        topic: topic.
        key: key of the entity.
        expires_ms: expiry, epoch milliseconds.
        purged: whether it was purged.
    """

    topic: str
    key: str
    expires_ms: int
    purged: bool


JSON_ROWS: Final = {"purge-expired": ExpiredJournal}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "purge-expired", _purge_expired)
    add_topic(parser)
    add_store(parser)
    parser.add_argument("--dry-run", action="store_true", help="list them, and purge nothing")
    add_connection_options(parser)


def _purge_expired(args: argparse.Namespace) -> None:
    """Purge the journals whose last append is longer ago than its time of expiry.

    Purges are written into the log; the replicator then deletes the journals from the store. A
    journal with actions that are not replicated yet is left alone.
    """
    from aerotape.entity.retention import purge_expired
    from aerotape.entity.stores.url import open_store
    from aerotape.entity.topic import check_topic, existing_recordings_of

    with ExitStack() as stack:
        store = stack.enter_context(open_store(args.store))
        client = stack.enter_context(connect(args))
        existing_recordings_of(check_topic(args.topic), client.list_recordings())
        entities = stack.enter_context(client.entities(args.topic, None, store))
        for each in purge_expired(entities, store, dry_run=args.dry_run):
            done = "purged" if each.is_purged else "not purged"
            row = ExpiredJournal(
                topic=args.topic,
                key=each.id,
                expires_ms=each.expires_ms,
                purged=each.is_purged,
            )
            emit_line(row, f"{each.id}: expired at {time_text(each.expires_ms)}, {done}", args)
