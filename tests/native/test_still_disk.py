"""A client that closes while its worker waits for a disk."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support.damage.still_disk import still_disk
from support.processes import ROOT, ChildProcess

pytestmark = pytest.mark.root
_PROGRAM = """
import sys, threading, time
from pathlib import Path
from support.worker_rig import WorkerRig

rig = WorkerRig(Path(sys.argv[1]), Path(sys.argv[2]))
live = rig.record(rig.worker())
end = live.offer([b"before"])
rig.until(lambda: live.counter.get() == end or None)
print("recorded", flush=True)
sys.stdin.readline()
live.offer([b"while it stands still"])
time.sleep(0.5)
closing = threading.Thread(target=rig.client.close)
closing.start()
time.sleep(0.5)
print(rig.client.is_closed, live.counter.is_closed, closing.is_alive(), flush=True)
sys.stdin.readline()
closing.join()
rig.close()
print("closed", flush=True)
"""


def test_other_calls_do_not_wait_for_the_close(tmp_path: Path, aeron_dir: Path) -> None:
    """While a close waits for a block that is being written, other calls find the client closed."""
    with still_disk(tmp_path / "still", 64 << 20) as disk:
        archive_dir = disk.path / "archive"
        archive_dir.mkdir()
        child = ChildProcess(
            [sys.executable, "-c", _PROGRAM, str(aeron_dir), str(archive_dir)],
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
            dies_with_parent=True,
        )
        assert child.receive(60.0) == "recorded"
        with disk.frozen():
            child.send("frozen")
            assert child.receive(20.0) == "True True True"
        child.send("thawed")
        assert child.receive(60.0) == "closed"
        assert child.wait(60.0) == 0
