"""`pid`: the process id in the mark file."""

from __future__ import annotations

import argparse

from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit_value


def add_commands(commands: Commands) -> None:
    """Add the command."""
    add_command(commands, "pid", _pid)


def _pid(args: argparse.Namespace) -> None:
    """Print the process id of the archive from its mark file."""
    from aerotape.catalog.mark.mark_file import MarkFile

    pid = MarkFile.read(args.directory).header.pid
    emit_value("pid", pid, args)
