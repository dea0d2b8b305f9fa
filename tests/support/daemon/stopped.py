"""A process whose threads all stand still for a while."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.daemon.control_rig import await_true


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stop all threads of a process, and let it go on afterwards."""
    os.kill(pid, signal.SIGSTOP)
    threads = Path(f"/proc/{pid}/task")
    await_true(
        lambda: all(
            (thread / "stat").read_text().rpartition(") ")[2][0] == "T"
            for thread in threads.iterdir()
        )
    )
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
