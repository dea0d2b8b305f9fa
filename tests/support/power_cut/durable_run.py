"""Recordings with different durabilities, for `power_cut`: a separate process.

    python -m support.power_cut.durable_run ARCHIVE_DIR AERON_DIR SEED

Recording 0 is a "pd" ledger and recording 1 a "vd" ledger in an archive with sync level 0,
recording 2 a plain one at sync level 1. The counters that promise what is durable are watched in
this order. Ends in the middle of it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import sys
from pathlib import Path

from aerotape import _native
from aerotape.cnc import CncFile
from support.model.messages import messages
from support.worker_rig import WorkerRig

_SHIM = ctypes.CDLL(None)
_VALUE_LENGTH = 128


def main(archive_dir: Path, aeron_dir: Path, seed: int) -> None:
    draw = random.Random(seed)
    rig = WorkerRig(aeron_dir, archive_dir)
    worker = rig.worker()
    recordings = [
        rig.record(worker, recording_id=0, stream_id=1, durability="pd"),
        rig.record(worker, recording_id=1, stream_id=2, durability="vd"),
        rig.record(rig.worker(file_sync_level=1), recording_id=2, stream_id=3),
    ]
    cnc = CncFile(aeron_dir)
    with cnc.path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    base = ctypes.addressof(ctypes.c_char.from_buffer(mapped)) + cnc._values
    for recording in recordings:
        counter: _native.Counter = recording.confirmed or recording.counter
        _SHIM.power_cut_watch(ctypes.c_void_p(base + counter.id * _VALUE_LENGTH))
    while len(recordings[0].log.data) < 100_000:
        for recording in recordings:
            recording.offer(messages(draw.randrange(1 << 30), draw.randint(1, 6), 0, 3_000))
        if draw.random() < 0.3:
            rig.until(lambda: recordings[1].counter.get() == len(recordings[1].log.data) or None)
            worker.request_sync(1)
        if draw.random() < 0.3:
            rig.await_confirmed(recordings[0], len(recordings[0].log.data))
            rig.await_position(recordings[2], len(recordings[2].log.data))
    rig.await_confirmed(recordings[0], len(recordings[0].log.data))
    rig.await_position(recordings[2], len(recordings[2].log.data))
    _SHIM.power_cut_note(b"the end")
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
