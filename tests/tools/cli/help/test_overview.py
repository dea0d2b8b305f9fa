"""The groups of commands in the overview."""

from __future__ import annotations

from collections import Counter

from aerotape.tools._cli.help.overview import GROUPS
from aerotape.tools._cli.main import command_files


def test_every_command_is_in_one_group() -> None:
    """A new command is missing in `aerotape --help` until it is added to a group."""
    grouped = Counter(name for names in GROUPS.values() for name in names)
    assert grouped == Counter(command_files().keys())
