"""`pointer`, `delete` and `purge`: the last event of a journal, and the end of events."""

from __future__ import annotations

import argparse

from aerotape.tools._cli.group import Commands
from aerotape.tools._cli.output import emit
from aerotape.tools._entity._common import (
    add_journal_command,
    add_store_only,
    journals,
    readable_journals,
    seq_nr,
)


def add_commands(commands: Commands) -> None:
    """Add the commands."""
    add_store_only(add_journal_command(commands, "pointer", _pointer))
    delete = add_journal_command(commands, "delete", _delete)
    delete.add_argument(
        "--to",
        dest="to_seq_nr",
        metavar="N",
        type=seq_nr,
        required=True,
        help="the last event to delete; more than there are: all",
    )
    add_journal_command(commands, "purge", _purge)


def _pointer(args: argparse.Namespace) -> None:
    """Print the last sequence number of a journal; none when there is no journal."""
    with readable_journals(args) as entities:
        last = entities.pointer(args.key)
    emit({"topic": args.topic, "key": args.key, "seq_nr": last}, args)


def _delete(args: argparse.Namespace) -> None:
    """Delete the events of a journal up to one; later events stay.

    Nothing is written when there is no journal.
    """
    with journals(args) as entities:
        place = entities.delete(args.key, args.to_seq_nr)
    written = {} if place is None else place._asdict()
    emit({"topic": args.topic, "key": args.key, "deleted": place is not None, **written}, args)


def _purge(args: argparse.Namespace) -> None:
    """Delete a journal; the next append begins a new one."""
    with journals(args) as entities:
        place = entities.purge(args.key)
    emit({"topic": args.topic, "key": args.key, **place._asdict()}, args)
