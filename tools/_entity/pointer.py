"""`pointer`: print the last sequence number of a journal."""

from __future__ import annotations

import argparse

from aerotape.tools._cli.output import emit
from aerotape.tools._entity._common import Commands, add_journal_command, journals


def add_commands(commands: Commands) -> None:
    """Add the command."""
    add_journal_command(commands, "pointer", _pointer)


def _pointer(args: argparse.Namespace) -> int:
    """Print the last sequence number of a journal; none when there is no journal."""
    with journals(args) as entities:
        last = entities.pointer(args.key)
    emit({"topic": args.topic, "key": args.key, "seq_nr": last}, args)
    return 0
