"""Files and directories: access to new ones, storage behind mapped ones and behind names."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path

from aerotape.errors import StorageError

FILE_MODE = 0o640
"""Access to new files of an archive directory, of which the umask may take more away."""
DIRECTORY_MODE = 0o750
"""Access to new directories, of which the umask may take more away."""


def private(path: str, flags: int) -> int:
    """Open a file, with `FILE_MODE` where that creates it; an `opener` for `open`."""
    return os.open(path, flags, FILE_MODE)


def sync_directory(path: Path) -> None:
    """Force the names in a directory to storage (OSError)."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def force_names(path: Path) -> None:
    """As `sync_directory`, with StorageError when it cannot be done."""
    try:
        sync_directory(path)
    except OSError as error:
        raise StorageError(
            f"cannot force the names in {path} to storage: {error.strerror}", path
        ) from error


def make_directory(path: Path) -> None:
    """Make a directory, with those above it that are not there, and force their names to storage.

    Raises:
        OSError: it cannot be made, or is no directory.
    """
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for each in reversed(missing):
        if each.is_dir():
            continue
        each.mkdir(DIRECTORY_MODE, exist_ok=True)
        with suppress(PermissionError):  # a directory that may be written to but not read
            sync_directory(each.parent)


def map_reserved(path: Path, descriptor: int, length: int) -> mmap.mmap:
    """Map a file for writing, with storage behind all of it.

    A store into a hole of a mapped file on a full disk would be SIGBUS. A file that was made for
    this is removed again when it fails: the Java archive would take an empty one for a damaged one.

    Raises:
        OSError: there is no storage for it.
    """
    was_empty = os.fstat(descriptor).st_size == 0
    try:
        os.posix_fallocate(descriptor, 0, length)
        return mmap.mmap(descriptor, length)
    except OSError:
        if was_empty:
            path.unlink(missing_ok=True)
        raise
