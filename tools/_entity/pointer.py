"""`pointer`: print the last sequence number of a journal."""

from __future__ import annotations

import argparse

from aerotape.tools._cli.group import Commands
from aerotape.tools._cli.output import emit
from aerotape.tools._entity._common import add_journal_command, existing_journals


def add_commands(commands: Commands) -> None:
    """Add the command."""
    add_journal_command(commands, "pointer", _pointer)


def _pointer(args: argparse.Namespace) -> None:
    """Print the last sequence number of a journal; none when there is no journal."""
    with existing_journals(args) as entities:
        last = None if entities is None else entities.pointer(args.key)
    emit({"topic": args.topic, "key": args.key, "seq_nr": last}, args)
