"""Owners of locks: texts that identify a process."""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path
from typing import Final

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE: Final = Path("/proc/self/ns/pid")


def new_owner() -> str:
    """Return an owner of this process: host, boot, PID namespace, process, a random part."""
    return f"{_process_space()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


def is_dead(owner: str) -> bool:
    """Whether an owner was a process of this host and PID namespace that has ended.

    A process of another namespace or boot, or of an earlier version, is never found dead.
    """
    space = f"{_process_space()}/"
    if not owner.startswith(space):
        return False
    pid = owner.removeprefix(space).partition("/")[0]
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, ValueError, OverflowError):
        return False
    return False


def _process_space() -> str:
    """Return a text that is the same for all processes whose ids can be compared."""
    try:
        boot, space = _BOOT_ID.read_text().strip(), _PID_NAMESPACE.stat().st_ino
    except OSError:  # without /proc no other process is comparable
        return f"{socket.gethostname()}/{uuid.uuid4().hex}"
    return f"{socket.gethostname()}/{boot}/{space}"
