"""Group commit, and recordings with a durability other than the archive's sync level."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.damage.sync_shim import build_shim
from support.model.messages import messages
from support.own_process import run_python
from support.worker_rig import WorkerRig

from aerotape.errors import ClosedError
from aerotape.worker_arguments import RecordArguments


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library to preload, which controls the syncs of segment files."""
    return build_shim(tmp_path_factory.mktemp("shim"))


@pytest.mark.parametrize("scenario", ["hung", "hung_plain", "failing", "volatile"])
def test_syncs(scenario: str, shim: Path, aeron_dir: Path, tmp_path: Path) -> None:
    """What waits for a sync that hangs, what a failed one stops, and when there is none.

    See the functions of `support.damage.held_sync`.
    """
    archive_dir, control = tmp_path / "archive", tmp_path / "control"
    archive_dir.mkdir()
    control.mkdir()
    done = run_python(
        *("-m", "support.damage.held_sync", scenario, aeron_dir, archive_dir, control),
        LD_PRELOAD=str(shim),
        SYNC_CONTROL=str(control),
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_ledgers_counters_reach_its_end(rig: WorkerRig, level: int) -> None:
    """Whatever the archive's sync level, "pd" is confirmed by itself and "vd" when it stops."""
    worker = rig.worker(file_sync_level=level)
    persistent = rig.record(worker, recording_id=0, stream_id=1, durability="pd")
    volatile = rig.record(worker, recording_id=1, stream_id=2, durability="vd")
    for recording in (persistent, volatile):
        recording.offer(messages(4, 60, 0, 6_000))
        rig.await_position(recording, len(recording.log.data))
    rig.await_confirmed(persistent, len(persistent.log.data))
    assert volatile.confirmed is not None
    assert volatile.confirmed.get() == 0
    for recording in (persistent, volatile):
        end = len(recording.log.data)
        recording.publication.close()
        event = rig.event("RecordingStopped", recording.recording_id)
        assert event[2:] == (end, 0, None)
        rig.await_confirmed(recording, end)
        assert rig.segment_bytes(recording)[:end] == recording.log.data


def test_closing_the_worker_confirms_its_ledgers(rig: WorkerRig) -> None:
    """Each is durable to its end before its last event is posted."""
    worker = rig.worker()
    recordings = [
        rig.record(worker, recording_id=index, stream_id=index + 1, durability="vd")
        for index in range(3)
    ]
    for recording in recordings:
        rig.await_position(recording, recording.offer(messages(1, 10)))
    worker.close()
    for recording in recordings:
        end = len(recording.log.data)
        assert rig.event("RecordingStopped", recording.recording_id)[2:] == (end, 0, None)
        rig.await_confirmed(recording, end)
    with pytest.raises(ClosedError, match="worker is closed"):
        worker.stop_recording(0)


def test_a_request_for_a_recording_that_is_not_synced_is_ignored(rig: WorkerRig) -> None:
    """Neither a plain recording at level 0 nor an unknown one has anything to report."""
    worker = rig.worker()
    recording = rig.record(worker)
    worker.request_sync(0)
    worker.request_sync(77)
    rig.await_position(recording, recording.offer(messages(1, 10)))
    rig.poll()
    assert not [event for event in rig.events if event[0] == "RecordingSynced"]


def test_an_invalid_durability_is_refused(rig: WorkerRig) -> None:
    """A durability has one of two names, and a confirmed counter belongs to one."""
    with pytest.raises(TypeError, match=r"RecordArguments\.durability") as failure:
        rig.record(rig.worker(), durability="no")  # type: ignore[arg-type]
    assert str(failure.value.__cause__) == 'durability="no": use "pd" or "vd"'
    publication = rig.client.add_exclusive_publication("aeron:ipc", 7)
    subscription = rig.client.add_subscription("aeron:ipc", 7)
    image = rig.until(lambda: subscription.image_by_session_id(publication.session_id))
    counter = rig.client.add_counter(100, b"", "counter")
    with pytest.raises(ValueError, match="confirmed_counter"):
        task = RecordArguments(0, 0, 1 << 26, confirmed_counter=counter)
        rig.worker().record(image, counter, task)
