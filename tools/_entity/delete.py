"""`delete`: delete the events of a journal up to one."""

from __future__ import annotations

import argparse

from aerotape.tools._cli.output import emit
from aerotape.tools._entity._common import Commands, add_journal_command, journals, seq_nr


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_journal_command(commands, "delete", _delete)
    parser.add_argument(
        "--to",
        dest="to_seq_nr",
        metavar="N",
        type=seq_nr,
        required=True,
        help="the last event to delete; more than there are: all",
    )


def _delete(args: argparse.Namespace) -> int:
    """Delete the events of a journal up to one; later events stay.

    Nothing is written when there is no journal.
    """
    with journals(args) as entities:
        place = entities.delete(args.key, args.to_seq_nr)
    written = {} if place is None else place._asdict()
    emit({"topic": args.topic, "key": args.key, "deleted": place is not None, **written}, args)
    return 0
