"""Stop signals of commands that run until they are stopped."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, signal, threading
from aerotape.tools._cli.daemon.stop_signals import StopSignals

stop = StopSignals()
for round in range(200):
    sender = threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGTERM))
    sender.start()
    # Many short waits: the signal comes while the thread enters, waits or leaves.
    while not stop.wait(0.00001):
        pass
    sender.join()
assert not stop.wait(0.0)
print("done")
"""


def test_a_signal_at_any_moment_ends_the_wait() -> None:
    """The handler runs in the waiting thread, and must not wait for it."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "done\n", done.stderr
