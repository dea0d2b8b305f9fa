"""What is being read from a directory's files is seen, and stays."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest
from support.builders.held_recordings import SEGMENT_LENGTH, add_recording, segment

from aerotape.archive.retention.locked_segments import is_read, plan_directory
from aerotape.archive.retention.plan import RetentionPlan
from aerotape.archive.retention.policy import Limit, RetentionPolicy, RetentionRule
from aerotape.catalog.recovery.suspect_marks import SuspectNote, add_notes
from aerotape.replay.offline.directory import Recording, open_directory
from aerotape.replay.offline.reader import Scan, recording_range

NOW_NS = 1_700_000_000 * 10**9
WEEK = RetentionPolicy((RetentionRule("week", max_age=Limit(7 * 86_400 * 10**9, "7d")),))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "archive"
    add_recording(made, [9, 9, 9, 9], now_ns=NOW_NS)
    add_recording(made, [8, 8], now_ns=NOW_NS)
    return made


def gone(plan: RetentionPlan) -> dict[int, int | None]:
    return {
        each.recording_id: None
        if each.new_start_position is None
        else each.new_start_position // SEGMENT_LENGTH
        for each in plan.removals
    }


def begin(recording: Recording, from_position: int = 0) -> Scan:
    """Read the first message and no other."""
    scan = recording_range(recording, from_position).scan(batch_rows=1)
    messages = scan.next_messages()
    assert messages is not None
    assert messages[0][0] == from_position
    return scan


def test_what_a_reader_is_in_stays_with_all_behind_it(directory: Path) -> None:
    """From the moment it has begun until it is done; what is before it goes."""
    recording = open_directory(directory).recording(0)
    idle = recording_range(recording).scan()
    assert gone(plan_directory(directory, WEEK, NOW_NS)) == {0: None, 1: None}
    scan = begin(recording, SEGMENT_LENGTH)
    plan = plan_directory(directory, WEEK, NOW_NS)
    assert gone(plan) == {0: 1, 1: None}
    assert [(kept.recording_id, kept.in_use) for kept in plan.kept] == [(0, "it is being read")]
    # It goes on into the next segment, and what it leaves behind may go.
    while messages := scan.next_messages():
        if messages[0][0] >= 2 * SEGMENT_LENGTH:
            break
    assert gone(plan_directory(directory, WEEK, NOW_NS)) == {0: 2, 1: None}
    del scan
    assert gone(plan_directory(directory, WEEK, NOW_NS)) == {0: None, 1: None}
    del idle


def test_a_limit_of_all_takes_from_others_what_a_reader_keeps(directory: Path) -> None:
    size = segment(directory, 1, 0).stat().st_blocks * 512
    policy = RetentionPolicy(max_directory_size=Limit(3 * size, "3"))
    assert gone(plan_directory(directory, policy, NOW_NS)) == {0: 3}
    scan = begin(open_directory(directory).recording(0))
    assert gone(plan_directory(directory, policy, NOW_NS)) == {1: None}
    del scan


def test_readers_do_not_hinder_each_other_and_a_missing_file_is_not_read(
    directory: Path,
) -> None:
    path = segment(directory, 1, 0)
    with path.open("rb") as first, path.open("rb") as second:
        fcntl.flock(first, fcntl.LOCK_SH)
        fcntl.flock(second, fcntl.LOCK_SH | fcntl.LOCK_NB)
        assert is_read(path)
        fcntl.flock(first, fcntl.LOCK_UN)
        assert is_read(path)
        assert len(list(open_directory(directory).recording(1).messages())) > 100
    assert not is_read(path)
    assert not is_read(directory / "none.rec")


@pytest.mark.parametrize(
    ("call", "number", "expected"),
    [
        ("open", errno.EMFILE, True),
        ("open", errno.EACCES, True),
        ("open", errno.ENOENT, False),
        ("flock", errno.EIO, True),
        ("flock", errno.EOPNOTSUPP, False),
    ],
)
def test_what_cannot_be_found_out_is_taken_for_read(
    directory: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, expected: bool
) -> None:
    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    path = segment(directory, 1, 0)
    with monkeypatch.context() as patch:
        patch.setattr(os if call == "open" else fcntl, call, fail)
        found = is_read(path)
    assert found is expected


def test_a_recording_marked_as_suspect_stays(directory: Path) -> None:
    """For what was taken out of it would go with it."""
    add_notes(directory, 0, [SuspectNote("torn tail", "", 0, 0)])
    plan = plan_directory(directory, WEEK, NOW_NS)
    assert gone(plan) == {1: None}
    assert [(kept.recording_id, kept.in_use) for kept in plan.kept] == [
        (0, "it is marked as suspect")
    ]


@pytest.mark.parametrize("number", [1, 3])
def test_one_file_of_another_place_keeps_the_whole_recording(directory: Path, number: int) -> None:
    """Whichever it is, among those that would go or behind them: others may be as wrong."""
    segment(directory, 0, number).write_bytes(segment(directory, 1, 0).read_bytes())
    size = segment(directory, 1, 0).stat().st_blocks * 512
    policy = RetentionPolicy(max_directory_size=Limit(4 * size, "4"))
    assert gone(plan_directory(directory, policy, NOW_NS)) == {1: None}
