"""Damaged directories read without an archive: whole data is served, damage is reported."""

from __future__ import annotations

from support.damage.assertions import check_damaged, check_untouched
from support.damage.damaged_directory import BuiltDirectory
from support.damage.damages import Damaged


def test_undamaged_recordings_are_served_whole(built: BuiltDirectory, damaged: Damaged) -> None:
    """Byte by byte."""
    check_untouched(built, damaged.path, damaged.hit)


def test_messages_preceding_the_damage_are_served(built: BuiltDirectory, damaged: Damaged) -> None:
    """Then the error has recording, file, offset and position."""
    check_damaged(built, damaged.path, damaged.hit)
