"""`errors`: the error logs of an archive and of its media driver."""

from __future__ import annotations

import argparse

from aerotape.tools._cli.group import Commands, add_command


def add_commands(commands: Commands) -> None:
    """Add the command."""
    add_command(commands, "errors", _errors)


def _errors(args: argparse.Namespace) -> None:
    """Show the error logs of the archive and of its media driver."""
    from aerotape.tools.errors import show_errors

    show_errors(args.directory, args)
