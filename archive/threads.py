"""Names of the archive's threads, which tools like ps, top and perf show.

`aeron.thread.naming` chooses between Aeron's older names and those with a common prefix.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final, Literal

ThreadNaming = Literal["classic", "new"]

# The roles for which the reference has names, and its prefix for all.
_REFERENCE: Final = {"conductor": "cnd", "recorder": "rec", "replayer": "rep", "worker": "shd"}
_OWN_NAME: Final = Path("/proc/thread-self/comm")


def thread_name(role: str, naming: ThreadNaming) -> str:
    """Return the name of the thread with a role.

    Args:
        role: "conductor", "recorder", "replayer", "worker" (which is both), or one of the threads
            that the reference does not have, in up to six letters.
        naming: the value of ``aeron.thread.naming``.
    """
    return f"archive-{role}" if naming == "classic" else f"aeron-ar-{_REFERENCE.get(role, role)}"


def show_thread_name(name: str) -> None:
    """Give the current thread its name for the operating system too, as Python does from 3.14 on.

    The system stores 15 bytes of it.
    """
    with contextlib.suppress(OSError):
        _OWN_NAME.write_bytes(name.encode())
