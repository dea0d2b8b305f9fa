"""`purge`: delete a journal."""

from __future__ import annotations

import argparse

from aerotape.tools._cli.group import Commands
from aerotape.tools._cli.output import emit
from aerotape.tools._entity._common import add_journal_command, journals


def add_commands(commands: Commands) -> None:
    """Add the command."""
    add_journal_command(commands, "purge", _purge)


def _purge(args: argparse.Namespace) -> None:
    """Delete a journal; the next append begins a new one."""
    with journals(args) as entities:
        place = entities.purge(args.key)
    emit({"topic": args.topic, "key": args.key, **place._asdict()}, args)
