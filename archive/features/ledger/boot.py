"""The id of this run of the machine: what was not forced to storage is there until it changes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Return an id of this run of the machine; "" where the kernel has none."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""
