"""Storage behind files that are mapped, and behind the names in a directory."""

from __future__ import annotations

import errno
import mmap
import os
from contextlib import suppress
from pathlib import Path

from aerotape.errors import StorageError

_BLOCK_LENGTH = 512  # the unit of st_blocks


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
        each.mkdir(exist_ok=True)
        with suppress(PermissionError):  # a directory that may be written to but not read
            sync_directory(each.parent)


def map_reserved(path: Path, descriptor: int, length: int) -> mmap.mmap:
    """Map a file for writing, with storage behind all of it.

    A store into a hole of a mapped file on a full disk would be SIGBUS. A file that was made for
    this is removed again when it fails: the Java archive would take an empty one for a damaged one.

    Raises:
        OSError: there is no storage for it.
    """
    status, storage = os.fstat(descriptor), os.fstatvfs(descriptor)
    was_empty = status.st_size == 0
    try:
        # A failed allocation is not undone: the holes that it filled would keep their storage.
        missing = length - status.st_blocks * _BLOCK_LENGTH
        if storage.f_blocks and missing > storage.f_bfree * storage.f_frsize:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.posix_fallocate(descriptor, 0, length)
        return mmap.mmap(descriptor, length)
    except OSError:
        if was_empty:
            path.unlink(missing_ok=True)
        raise
