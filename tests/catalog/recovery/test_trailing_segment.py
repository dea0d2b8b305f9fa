"""The empty segment file after a recording that ends with a full one."""

from __future__ import annotations

import errno

import pytest
from support.builders.crashed_recording import SEGMENT_LENGTH, Crashed

from aerotape.catalog.recovery import trailing_segment
from aerotape.catalog.recovery.refresh import Outcome

BLANK = bytes(SEGMENT_LENGTH)


def test_a_zero_length_segment_after_a_full_one_is_harmless(crashed: Crashed) -> None:
    """The crash followed the creation of the next file: the recording ends with the full
    segment."""
    crashed.fill_first_segment()
    crashed.write()
    crashed.segment(SEGMENT_LENGTH).touch()
    before = crashed.files()
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.suspect) == (Outcome.ZERO_LENGTH_SEGMENT, False)
    assert outcome.stop_position == SEGMENT_LENGTH
    assert crashed.files() == {**before, crashed.segment(SEGMENT_LENGTH).name: BLANK}
    assert crashed.is_verified()


def test_a_zero_length_first_segment_is_an_empty_recording(crashed: Crashed) -> None:
    """No byte of it was written."""
    crashed.segment().touch()
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.stop_position) == (Outcome.ZERO_LENGTH_SEGMENT, 0)
    assert not outcome.suspect
    assert crashed.files() == {crashed.segment().name: BLANK}
    assert crashed.is_verified()


def test_a_next_segment_whose_name_is_lost_is_recreated(crashed: Crashed) -> None:
    """Without it `verify` would report frames missing after the last file."""
    crashed.fill_first_segment()
    crashed.write()
    before = crashed.files()
    assert not crashed.refresh().findings
    assert crashed.files() == {**before, crashed.segment(SEGMENT_LENGTH).name: BLANK}
    assert crashed.is_verified()


def test_the_next_segment_of_a_stopped_recording_is_recreated(
    crashed: Crashed,
) -> None:
    """A truncation to the end of a segment has deleted it."""
    crashed.fill_first_segment()
    crashed.write()
    crashed.refresh()
    after = crashed.files()
    crashed.segment(SEGMENT_LENGTH).unlink()
    outcome = crashed.refresh()
    assert (outcome.findings, outcome.repaired, outcome.stop_position) == (
        (),
        False,
        SEGMENT_LENGTH,
    )
    assert crashed.files() == after
    assert crashed.is_verified()


def test_no_next_segment_is_created_where_the_last_one_is_lost(crashed: Crashed) -> None:
    """The recording would look complete."""
    crashed.fill_first_segment()
    crashed.write()
    crashed.refresh()
    for path in (crashed.segment(), crashed.segment(SEGMENT_LENGTH)):
        path.unlink()
    assert crashed.refresh().outcome == Outcome.MISSING_SEGMENTS
    assert not crashed.segment(SEGMENT_LENGTH).exists()


def test_a_failure_to_create_the_next_segment_is_ignored(
    crashed: Crashed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recording still gets its stop position."""

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(trailing_segment, "make_blank_segment", fail)
    crashed.fill_first_segment()
    crashed.write()
    outcome = crashed.refresh()
    assert (outcome.repaired, outcome.stop_position) == (True, SEGMENT_LENGTH)
