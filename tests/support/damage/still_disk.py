"""A disk that can be made to stand still, for tests with the marker `root`."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class StillDisk:
    """A mounted ext4 file system in a file.

    Attributes:
        path: its mount point.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Let every write to it wait, as on a disk that does not respond, until the block ends."""
        subprocess.run(["fsfreeze", "--freeze", self.path], check=True)
        try:
            yield
        finally:
            subprocess.run(["fsfreeze", "--unfreeze", self.path], check=True)


@contextlib.contextmanager
def still_disk(path: Path, size_bytes: int) -> Iterator[StillDisk]:
    """Create the directory `path` and mount one there; skip the test if that fails."""
    path.mkdir(parents=True)
    image = path.with_name(path.name + ".ext4")
    with image.open("wb") as file:
        file.truncate(size_bytes)
    commands: list[list[str | Path]] = [
        ["mkfs.ext4", "-q", image],
        ["mount", "-o", "loop", image, path],
    ]
    for command in commands:
        try:
            subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"cannot mount a disk to freeze: {getattr(error, 'stderr', error)}")
    try:
        yield StillDisk(path)
    finally:
        subprocess.run(["umount", "-l", path], check=True)
        image.unlink()
