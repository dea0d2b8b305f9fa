"""Record while the syncs of some files hang, fail or are counted, in a separate process.

    python -m support.damage.held_sync SCENARIO AERON_DIR ARCHIVE_DIR CONTROL_DIR

`failing_sync.c` is preloaded, with SYNC_CONTROL=CONTROL_DIR. A scenario is one of the functions
below; it asserts what it shows.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from support.daemon.recording import wait_until
from support.model.messages import messages
from support.worker_rig import LiveRecording, WorkerRig

MIB = 1 << 20


class Syncs:
    """The syncs of the segment files in this process."""

    def __init__(self, control: Path) -> None:
        self._control = control

    def hold(self, name: str) -> None:
        (self._control / f"{name}.hold").touch()

    def release(self, name: str) -> None:
        (self._control / f"{name}.hold").unlink()

    def fail(self, name: str) -> None:
        (self._control / f"{name}.fail").touch()

    def count(self, name: str = "") -> int:
        """How many syncs of a file have begun, or of all files."""
        log = self._control / "log"
        names = log.read_text().splitlines() if log.exists() else []
        return len([each for each in names if name in ("", each)])

    def await_begun(self, name: str, count: int = 1) -> None:
        WorkerRig.until(lambda: self.count(name) >= count or None)


def confirmed(recording: LiveRecording) -> int:
    assert recording.confirmed is not None
    return recording.confirmed.get()


def hung(rig: WorkerRig, syncs: Syncs) -> None:
    """A ledger whose sync hangs is written on; plain recordings and other ledgers do not wait."""
    worker = rig.worker()
    syncs.hold("0-0.rec")
    held = rig.record(worker, recording_id=0, stream_id=1, durability="pd")
    plain = rig.record(worker, recording_id=1, stream_id=2)
    ledger = rig.record(worker, recording_id=2, stream_id=3, durability="pd")
    volatile = rig.record(worker, recording_id=3, stream_id=4, durability="vd")
    position = held.offer(messages(0, 10))
    rig.await_position(held, position)
    syncs.await_begun("0-0.rec")
    for round_ in range(20):
        # Over several segment files, of the one that hangs too.
        position = held.offer(messages(round_, 5, 0, 3_000))
        rig.await_position(held, position)
        rig.await_position(plain, plain.offer(messages(round_, 5, 0, 3_000)))
        rig.await_confirmed(ledger, ledger.offer(messages(round_, 5, 0, 3_000)))
        rig.await_position(volatile, volatile.offer(messages(round_, 5, 0, 3_000)))
        worker.request_sync(3)
        rig.await_confirmed(volatile, len(volatile.log.data))
        assert rig.event("RecordingSynced", 3)[2] == len(volatile.log.data)
    assert position > 65_536
    assert (confirmed(held), syncs.count("0-0.rec")) == (0, 1)
    # It stops once it is durable; others record and stop meanwhile.
    worker.stop_recording(0)
    worker.request_sync(0)
    rig.await_confirmed(ledger, ledger.offer(messages(20, 5, 0, 3_000)))
    worker.stop_recording(2)
    assert rig.event("RecordingStopped", 2)[2:] == (len(ledger.log.data), 0, None)
    rig.poll(timeout_ns=50_000_000)
    assert not [event for event in rig.events if event[:2] == ("RecordingStopped", 0)]
    assert confirmed(held) == 0
    syncs.release("0-0.rec")
    assert rig.event("RecordingStopped", 0)[2:] == (position, 0, None)
    assert confirmed(held) == position
    assert rig.segment_bytes(held)[:position] == held.log.data


def hung_plain(rig: WorkerRig, syncs: Syncs) -> None:
    """At sync level 1 positions wait for their own file; a slow disk holds up the publisher."""
    worker = rig.worker(file_sync_level=1)
    syncs.hold("0-0.rec")
    held = rig.record(
        worker, "aeron:ipc?term-length=8m", recording_id=0, stream_id=1, segment_length=64 * MIB
    )
    other = rig.record(worker, recording_id=1, stream_id=2)
    held.offer(messages(0, 10))
    syncs.await_begun("0-0.rec")
    for round_ in range(10):
        rig.await_position(other, other.offer(messages(round_, 5, 0, 3_000)))
    assert held.counter.get() == 0
    block = bytes(60_000)
    offered = 0
    deadline = time.monotonic() + 20
    while held.publication.offer_within(block, 300_000_000) > 0:
        assert time.monotonic() < deadline
        offered += len(block)
    # What may be written and not synced, and the log buffers.
    assert 32 * MIB < offered < 64 * MIB
    rig.await_position(other, other.offer(messages(10, 5, 0, 3_000)))
    assert (held.counter.get(), syncs.count("0-0.rec")) == (0, 1)
    syncs.release("0-0.rec")
    rig.until(lambda: held.counter.get() == held.publication.position or None)
    assert held.publication.offer_within(block, 10**10) > 0


def failing(rig: WorkerRig, syncs: Syncs) -> None:
    """A failed sync stops its ledger at the confirmed position, and no other recording."""
    worker = rig.worker()
    failed = rig.record(worker, recording_id=0, stream_id=1, durability="pd")
    plain = rig.record(worker, recording_id=1, stream_id=2)
    ledger = rig.record(worker, recording_id=2, stream_id=3, durability="pd")
    volatile = rig.record(worker, recording_id=3, stream_id=4, durability="vd")
    good = failed.offer(messages(0, 10))
    rig.await_confirmed(failed, good)
    syncs.fail("0-0.rec")
    failed.offer(messages(1, 10))
    event = rig.event("RecordingStopped", 0)
    assert event[2:4] == (good, 0)
    assert "cannot sync segment file" in event[4] and "0-0.rec" in event[4]
    assert "Input/output error" in event[4] and f"stopped at position {good}" in event[4]
    assert confirmed(failed) == good
    syncs_before = syncs.count("0-0.rec")
    rig.await_position(plain, plain.offer(messages(2, 10)))
    rig.await_confirmed(ledger, ledger.offer(messages(2, 10)))
    # On request, and at the end.
    good = volatile.offer(messages(2, 10))
    rig.await_position(volatile, good)
    worker.request_sync(3)
    rig.await_confirmed(volatile, good)
    syncs.fail("3-0.rec")
    rig.await_position(volatile, volatile.offer(messages(3, 10)))
    worker.stop_recording(3)
    event = rig.event("RecordingStopped", 3)
    assert event[2] == good and "3-0.rec" in event[4]
    rig.await_confirmed(ledger, ledger.offer(messages(3, 10)))
    assert syncs.count("0-0.rec") == syncs_before, "a failed sync is not repeated"


def volatile(rig: WorkerRig, syncs: Syncs) -> None:
    """Full files of a volatile ledger are synced, so that they can be closed; nothing counts before
    the request. The last one is synced at the request, and at its end.
    """
    worker = rig.worker()
    recording = rig.record(worker, durability="vd")
    for round_ in range(1_000):
        # A write each.
        rig.await_position(recording, recording.offer(messages(round_, 1, 0, 200)))
    position = len(recording.log.data)
    assert position > 65_536, "there is a full segment"
    files = len(list(rig.archive_dir.glob("*.rec")))
    wait_until(lambda: syncs.count() == files - 1, "syncs of full files")
    assert confirmed(recording) == 0
    worker.request_sync(0)
    assert rig.event("RecordingSynced", 0) == ("RecordingSynced", 0, position)
    assert confirmed(recording) == position
    assert syncs.count() == files > 1
    worker.request_sync(0)
    assert rig.event("RecordingSynced", 0) == ("RecordingSynced", 0, position)
    assert syncs.count() == files, "nothing was written"
    end = recording.offer(messages(0, 10))
    rig.await_position(recording, end)
    time.sleep(0.05)
    assert (confirmed(recording), syncs.count()) == (position, files)
    worker.stop_recording(0)
    assert rig.event("RecordingStopped", 0)[2:] == (end, 0, None)
    assert (confirmed(recording), syncs.count()) == (end, files + 1)


def main(scenario: str, aeron_dir: Path, archive_dir: Path, control: Path) -> None:
    rig = WorkerRig(aeron_dir, archive_dir)
    globals()[scenario](rig, Syncs(control))
    rig.close()


if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:]))
