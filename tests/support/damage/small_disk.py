"""A small tmpfs, for tests of a full disk, which have the marker `root`."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

_BLOCK = 4_096


class SmallDisk:
    """A mounted file system of some megabytes.

    Attributes:
        path: its mount point.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    @property
    def usable_bytes(self) -> int:
        """The free space."""
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize

    def fill(self, leave_bytes: int = 0) -> None:
        """Use all space except `leave_bytes` (a multiple of 4096)."""
        with self._filler.open("ab", buffering=0) as filler:
            while (rest := self.usable_bytes - leave_bytes) > 0:
                try:
                    filler.write(bytes(min(rest, 1 << 20)))
                except OSError:
                    break
        # A running archive may meanwhile allocate a block for a segment and one for a time index.
        assert leave_bytes - 2 * _BLOCK <= self.usable_bytes <= leave_bytes

    def clear(self) -> None:
        """Release the space that `fill` used."""
        self._filler.unlink(missing_ok=True)


@contextlib.contextmanager
def small_disk(path: Path, size_bytes: int, options: str = "") -> Iterator[SmallDisk]:
    """Create the directory `path` and mount one there; skip the test if that fails."""
    path.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}{options}", "tmpfs", str(path)],
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small disk to fill up: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        # Lazily: a process that has just ended may hold a file for a moment longer.
        subprocess.run(["umount", "-l", str(path)], check=True)
