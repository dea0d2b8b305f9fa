"""`count-entries`, `pid` and `errors`: figures and logs of an archive directory."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit_value


@dataclass(frozen=True, slots=True)
class Entries:
    """The valid recordings.

    Attributes:
        entries: number of valid recordings.
    """

    entries: int


@dataclass(frozen=True, slots=True)
class Pid:
    """The archive's process.

    Attributes:
        pid: process id of the archive.
    """

    pid: int


JSON_ROWS: Final = {
    "count-entries": Entries,
    "pid": Pid,
    "errors": "aerotape.tools.diagnostics.errors:LoggedError",
}


def add_commands(commands: Commands) -> None:
    """Add the commands."""
    add_command(commands, "count-entries", _count, reads_urls=True)
    add_command(commands, "pid", _pid)
    add_command(commands, "errors", _errors)


def _count(args: argparse.Namespace) -> None:
    """Print the number of valid recordings."""
    from aerotape.catalog.layout import RecordingState
    from aerotape.replay.offline.directory import directory_at

    with directory_at(args.directory).open_catalog() as catalog:
        count = sum(entry.state == RecordingState.VALID for entry in catalog.entries())
    emit_value(Entries(count), args)


def _pid(args: argparse.Namespace) -> None:
    """Print the process id of the archive from its mark file."""
    from aerotape.catalog.mark.mark_file import MarkFile

    emit_value(Pid(MarkFile.read(args.directory).header.pid), args)


def _errors(args: argparse.Namespace) -> None:
    """Show the error logs of the archive and of its media driver."""
    from aerotape.tools.diagnostics.errors import show_errors

    show_errors(args.directory, args)
