"""Record while storage fails, in a separate process, because its limits would affect the tests.

    python -m support.damage.failing_storage AERON_DIR ARCHIVE_DIR SYNC_LEVEL [FILE_SIZE_LIMIT]

Records stream 0 until it stops with an error, and a short stream 1 besides. With a limit in bytes,
files cannot grow past it after the segments are created. Prints one line of JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from support.model.messages import message
from support.worker_rig import TIMEOUT_S, WorkerRig


def main(aeron_dir: Path, archive_dir: Path, sync_level: int, file_size_limit: int) -> None:
    rig = WorkerRig(aeron_dir, archive_dir)
    worker = rig.worker(file_sync_level=sync_level)
    other = rig.record(worker, recording_id=1, stream_id=1, segment_length=262_144)
    rig.await_position(other, other.offer([bytes(992)]))
    failing = rig.record(worker, recording_id=0, stream_id=2, segment_length=262_144)
    # The segment files exist when positions are recorded.
    rig.await_position(failing, failing.offer([message(0, 0)]))
    if file_size_limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size_limit, resource.RLIM_INFINITY))
    rig.poll()
    index = 1
    deadline = time.monotonic() + TIMEOUT_S
    while not any(event[0] == "RecordingStopped" for event in rig.events):
        assert time.monotonic() < deadline, "storage did not fail"
        # Back-pressured while the recorder lags, and for good once it has stopped.
        if failing.publication.offer(message(0, index)) > 0:
            failing.log.append([message(0, index)])
            index += 1
        rig.poll(timeout_ns=500_000)
    event = rig.event("RecordingStopped", 0)
    # Where syncs fail, they fail for the other stream, too.
    survived = False
    if sync_level == 0:
        rig.await_position(other, other.offer([bytes(992)]))
        survived = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(
        json.dumps(
            {
                "event": event,
                "counter": failing.counter.get(),
                "log": failing.log.data.hex(),
                "frame_positions": failing.log.frame_positions,
                "other_survived": survived,
                "segment": (archive_dir / "0-0.rec").read_bytes().hex(),
            }
        )
    )
    sys.stdout.flush()
    rig.close()


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        Path(sys.argv[2]),
        int(sys.argv[3]),
        int(sys.argv[4]) if len(sys.argv) > 4 else 0,
    )
