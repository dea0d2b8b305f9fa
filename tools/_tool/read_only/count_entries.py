"""`count-entries`: the number of valid recordings."""

from __future__ import annotations

import argparse

from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit_value


def add_commands(commands: Commands) -> None:
    """Add the command."""
    add_command(commands, "count-entries", _count, reads_urls=True)


def _count(args: argparse.Namespace) -> None:
    """Print the number of valid recordings."""
    from aerotape.catalog.layout import RecordingState
    from aerotape.replay.offline.directory import directory_at

    with directory_at(args.directory).open_catalog() as catalog:
        count = sum(entry.state == RecordingState.VALID for entry in catalog.entries())
    emit_value("entries", count, args)
