"""Writes: files replaced whole, names forced to storage, storage reserved in advance."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from aerotape.catalog.no_follow import DIRECTORY_MODE, open_no_follow
from aerotape.errors import StorageError, StorageErrors

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
    with StorageErrors(f"cannot force the names in {path} to storage", path):
        sync_directory(path)


def write_atomically(
    path: Path,
    data: bytes,
    *,
    mode: int | None = None,
    owner: tuple[int, int] | None = None,
    sync: bool = False,
) -> None:
    """Write a file that takes the place of `path` in one step.

    A killed process leaves the old content or the new. A power cut may also leave an empty file,
    unless `sync`: then the content is on storage before the name is.

    Args:
        mode: permissions; by default 0640, less the umask.
        owner: user id and group id; by default those of the process.

    Raises:
        OSError: it cannot be written; `path` is as it was.
    """
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb", opener=open_no_follow) as file:
        try:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            if owner is not None:
                os.fchown(file.fileno(), *owner)
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise


def write_durably(
    path: Path, data: bytes, *, mode: int | None = None, owner: tuple[int, int] | None = None
) -> None:
    """As `write_atomically`; content and name are on storage when this returns (OSError)."""
    write_atomically(path, data, mode=mode, owner=owner, sync=True)
    sync_directory(path.parent)


def write_at(descriptor: int, data: bytes | memoryview, offset: int) -> int:
    """Write all of `data` at an offset of an open file; return the offset after it (OSError)."""
    while data:
        written = os.pwrite(descriptor, data, offset)
        offset, data = offset + written, data[written:]
    return offset


def make_directory(path: Path) -> None:
    """Create a directory and its missing parents, and force their names to storage.

    Raises:
        OSError: it cannot be created, or is not a directory.
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


def reserve(path: Path, descriptor: int, length: int, what: str, kind: type[StorageError]) -> None:
    """Allocate storage for all of a file, so that no write into it is refused on a full disk.

    A file that was created for this is removed when it fails: the Java archive would take an empty
    one for a damaged one.

    Raises:
        StorageError: there is no storage for it; of this kind, with what the file is.
    """
    with StorageErrors(f"cannot reserve {length} bytes of storage for {what} {path}", path, kind):
        status, storage = os.fstat(descriptor), os.fstatvfs(descriptor)
        try:
            # A failed allocation is not undone: the holes that it filled would keep their storage.
            missing = length - status.st_blocks * _BLOCK_LENGTH
            if storage.f_blocks and missing > storage.f_bfree * storage.f_frsize:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.posix_fallocate(descriptor, 0, length)
        except OSError:
            if status.st_size == 0:
                path.unlink(missing_ok=True)
            raise
