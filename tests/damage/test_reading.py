"""Damaged directories read without an archive: what is whole is served, what is not is named."""

from __future__ import annotations

from support.damage.assertions import check_damaged, check_untouched
from support.damage.damaged_directory import BuiltDirectory
from support.damage.damages import Damaged


def test_what_was_not_touched_is_served_whole(built: BuiltDirectory, damaged: Damaged) -> None:
    """Byte by byte."""
    check_untouched(built, damaged.path, damaged.hit)


def test_what_is_before_the_damage_is_served(built: BuiltDirectory, damaged: Damaged) -> None:
    """And then the error names recording, file, offset and position."""
    check_damaged(built, damaged.path, damaged.hit)
