"""Recordings whose storage fails: their position and their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.damage.sync_shim import build_shim
from support.own_process import run_python
from support.worker_rig import IPC, WorkerRig

from aerotape.worker_arguments import RecordArguments

GENERIC, STORAGE_SPACE = 0, 11


def record_until_failure(*arguments: object, **variables: str) -> dict[str, Any]:
    """Run `support.damage.failing_storage`; return its output."""
    done = run_python("-m", "support.damage.failing_storage", *arguments, timeout_s=60, **variables)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def assert_stopped_at_a_whole_frame(outcome: dict[str, Any]) -> int:
    """The stop position is the end of a frame, equal in all places; the file is valid up to it."""
    log, segment = bytes.fromhex(outcome["log"]), bytes.fromhex(outcome["segment"])
    position = int(outcome["event"][2])
    assert position == outcome["counter"]
    assert 0 < position < len(log)
    assert position in outcome["frame_positions"]
    assert segment[:position] == log[:position]
    return position


def test_a_file_that_cannot_grow_stops_its_recording_only(aeron_dir: Path, tmp_path: Path) -> None:
    """A write that is truncated within a frame retains the whole frames and zeroes the torn one."""
    limit = 50_000
    outcome = record_until_failure(aeron_dir, tmp_path, 0, limit)
    position = assert_stopped_at_a_whole_frame(outcome)
    positions = outcome["frame_positions"]
    assert position == max(at for at in positions if at <= limit)
    assert not any(bytes.fromhex(outcome["segment"])[position:])
    assert outcome["other_survived"]
    assert outcome["event"][3] == GENERIC
    assert "0-0.rec" in outcome["event"][4] and "File too large" in outcome["event"][4]


@pytest.mark.parametrize("sync_level", [1, 2])
def test_a_failed_sync_stops_the_recording_at_its_durable_position(
    aeron_dir: Path, tmp_path: Path, sync_level: int
) -> None:
    """After an error of fsync only synced data counts, and the sync is not retried."""
    shim = build_shim(tmp_path)
    archive_dir = tmp_path / "archive"
    archive_dir.mkdir()
    outcome = record_until_failure(
        aeron_dir, archive_dir, sync_level, LD_PRELOAD=str(shim), FAIL_SYNC_AFTER="5"
    )
    assert_stopped_at_a_whole_frame(outcome)
    assert outcome["event"][3] == GENERIC
    assert "sync" in outcome["event"][4] and "Input/output error" in outcome["event"][4]


def test_a_missing_directory_stops_the_recording_at_once(rig: WorkerRig) -> None:
    """A segment that cannot be created is reported with the position of the recording."""
    worker = rig.worker()
    rig.archive_dir.rmdir()
    rig.record(worker)
    event = rig.event("RecordingStopped", 0)
    assert event[2:4] == (0, GENERIC)
    assert "0-0.rec" in event[4] and "No such file" in event[4]


def test_a_foreign_file_at_roll_over_is_not_overwritten(rig: WorkerRig) -> None:
    """The recording stops at the end of its full segment; the existing file is not changed."""
    recording = rig.record(rig.worker())
    recording.offer([bytes(992)] * 10)
    in_the_way = rig.archive_dir / "0-65536.rec"
    in_the_way.write_bytes(b"not ours")
    recording.offer([bytes(992)] * 54)
    event = rig.event("RecordingStopped", 0)
    assert event[2:4] == (65_536, GENERIC) and "0-65536.rec" in event[4]
    assert recording.counter.get() == 65_536
    assert in_the_way.read_bytes() == b"not ours"
    assert (rig.archive_dir / "0-0.rec").read_bytes() == recording.log.data[:65_536]


def test_an_existing_file_is_not_used_for_a_new_recording(rig: WorkerRig) -> None:
    """A new recording whose first segment exists with data in it is refused."""
    path = rig.archive_dir / "0-0.rec"
    path.write_bytes(bytes(5_000) + b"data" + bytes(60_532))
    before = path.read_bytes()
    recording = rig.record(rig.worker())
    event = rig.event("RecordingStopped", 0)
    assert event[2:4] == (0, GENERIC) and "already exists" in event[4]
    recording.publication.close()
    assert path.read_bytes() == before


def test_an_image_polled_by_another_caller_is_not_recorded_with_a_hole(rig: WorkerRig) -> None:
    """If another caller has polled frames of the image, nothing is recorded after them."""
    publication = rig.client.add_exclusive_publication(IPC, 5)
    subscription = rig.client.add_subscription(IPC, 5)
    image = rig.until(lambda: subscription.image_by_session_id(publication.session_id))
    assert publication.offer(b"taken") > 0
    assert rig.receive(subscription, 1)[0][0] == b"taken"
    counter = rig.client.add_counter(100, b"", "rec 0")
    worker = rig.worker()
    worker.record(image, counter, RecordArguments(0, 0, 65_536))
    assert publication.offer(b"next") > 0
    event = rig.event("RecordingStopped", 0)
    assert event[2:4] == (0, GENERIC) and "does another caller poll" in event[4]
    assert counter.get() == 0
    assert not any((rig.archive_dir / "0-0.rec").read_bytes())
