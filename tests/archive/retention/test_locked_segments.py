"""Retention plans exclude segment files that are being read."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest
from support.builders.held_recordings import SEGMENT_LENGTH, add_recording, new_starts, segment

from aerotape.archive.retention.locked_segments import is_read, plan_directory
from aerotape.archive.retention.plan import RetentionPlan
from aerotape.archive.retention.policy import Limit, RetentionPolicy, RetentionRule
from aerotape.catalog.recovery.suspect_marks import SuspectNote, add_notes
from aerotape.replay.offline.directory import Recording, open_directory
from aerotape.replay.offline.reader import Scan, recording_range
from aerotape.replay.offline.selection import Selection

NOW_NS = 1_700_000_000 * 10**9
WEEK = RetentionPolicy((RetentionRule("week", max_age=Limit(7 * 86_400 * 10**9, "7d")),))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "archive"
    add_recording(made, [9, 9, 9, 9], now_ns=NOW_NS)
    add_recording(made, [8, 8], now_ns=NOW_NS)
    return made


def plan_of(directory: Path, policy: RetentionPolicy) -> RetentionPlan:
    return plan_directory(directory, policy, NOW_NS, lambda recording: "")


def begin(recording: Recording, from_position: int = 0) -> Scan:
    """Read only the first message."""
    scan = recording_range(recording, Selection(from_position=from_position)).scan(batch_rows=1)
    messages = scan.next_messages()
    assert messages is not None
    assert messages[0][0] == from_position
    return scan


def test_a_reader_protects_its_segment_and_those_after_it(directory: Path) -> None:
    """A reader protects them from its first read until it is closed; preceding segments are
    deleted."""
    recording = open_directory(directory).recording(0)
    idle = recording_range(recording).scan()
    assert new_starts(plan_of(directory, WEEK)) == {0: None, 1: None}
    scan = begin(recording, SEGMENT_LENGTH)
    plan = plan_of(directory, WEEK)
    assert new_starts(plan) == {0: 1, 1: None}
    assert [(each.recording_id, each.in_use) for each in plan.retained] == [(0, "it is being read")]
    # It continues in the next segment, so that the preceding one can be deleted.
    while messages := scan.next_messages():
        if messages[0][0] >= 2 * SEGMENT_LENGTH:
            break
    assert new_starts(plan_of(directory, WEEK)) == {0: 2, 1: None}
    del scan
    assert new_starts(plan_of(directory, WEEK)) == {0: None, 1: None}
    del idle


def test_a_directory_limit_deletes_from_recordings_not_being_read(directory: Path) -> None:
    size = segment(directory, 1, 0).stat().st_blocks * 512
    policy = RetentionPolicy(max_directory_size=Limit(3 * size, "3"))
    assert new_starts(plan_of(directory, policy)) == {0: 3}
    scan = begin(open_directory(directory).recording(0))
    assert new_starts(plan_of(directory, policy)) == {1: None}
    del scan


def test_readers_share_a_file_and_a_missing_file_is_not_read(
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
        ("flock", errno.EWOULDBLOCK, True),
        ("flock", errno.EOPNOTSUPP, False),
    ],
)
def test_an_unknown_state_counts_as_read(
    directory: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, expected: bool
) -> None:
    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    path = segment(directory, 1, 0)
    with monkeypatch.context() as patch:
        patch.setattr(os if call == "open" else fcntl, call, fail)
        found = is_read(path)
    assert found is expected


def test_a_recording_marked_as_suspect_is_retained(directory: Path) -> None:
    """Its deletion would delete its quarantined data too."""
    add_notes(directory, 0, [SuspectNote("torn tail", "", 0, 0)])
    plan = plan_of(directory, WEEK)
    assert new_starts(plan) == {1: None}
    assert [(each.recording_id, each.in_use) for each in plan.retained] == [
        (0, "it is marked as suspect")
    ]


@pytest.mark.parametrize("number", [1, 3])
def test_a_misplaced_file_protects_the_whole_recording(directory: Path, number: int) -> None:
    """A misplaced file after those to delete counts too, because others may be misplaced as
    well."""
    segment(directory, 0, number).write_bytes(segment(directory, 1, 0).read_bytes())
    size = segment(directory, 1, 0).stat().st_blocks * 512
    policy = RetentionPolicy(max_directory_size=Limit(4 * size, "4"))
    assert new_starts(plan_of(directory, policy)) == {1: None}
