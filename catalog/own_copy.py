"""Segment files that have several names, and are about to be written to under one of them.

Where a migration of segments was cut short, a file is in two recordings; where a backup was made of
hard links, also in that. What one of them loses or gets behind its end must not change the other.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from aerotape.catalog.durability import sync_directory
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.segments import file_names, parse_segment_file_name
from aerotape.errors import StorageError

_COPY_SUFFIX: Final = ".own"
_CHUNK_LENGTH: Final = 1 << 20


def make_own(path: Path) -> None:
    """Give a file that has other names too a copy under this one; it is on storage then.

    The copy has the same holes, time and mode, and the same owner where that can be. Killed
    meanwhile, it leaves a file that counts for nothing (`remove_copies`).

    Raises:
        StorageError: it cannot be copied; then it is as it was.
    """
    temporary = None
    try:
        if path.lstat().st_nlink < 2:
            return
        temporary = path.with_name(path.name + _COPY_SUFFIX)
        with (
            open(path, "rb", buffering=0, opener=open_no_follow) as source,
            open(temporary, "wb", buffering=0, opener=open_no_follow) as target,
        ):
            before = os.fstat(source.fileno())
            target.truncate(before.st_size)
            _copy_data(source.fileno(), target.fileno(), before.st_size)
            with suppress(OSError):  # only root may give files away
                os.fchown(target.fileno(), before.st_uid, before.st_gid)
            os.fchmod(target.fileno(), stat.S_IMODE(before.st_mode))
            os.utime(target.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))
            os.fsync(target.fileno())
        temporary.rename(path)
        sync_directory(path.parent)
    except OSError as error:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        raise StorageError(
            f"cannot copy {path}, which is also under another name: {error.strerror}", path
        ) from error


def remove_copies(archive_dir: Path, recording_ids: Collection[int] | None = None) -> None:
    """Remove what copies that were killed have left, of some recordings or of all.

    Nobody may be making one of these meanwhile.

    Raises:
        StorageError: it cannot be removed, or the directory cannot be read.
    """
    for name in file_names(archive_dir):
        if not name.endswith(_COPY_SUFFIX):
            continue
        segment = parse_segment_file_name(name.removesuffix(_COPY_SUFFIX))
        if segment is None or (recording_ids is not None and segment[0] not in recording_ids):
            continue
        try:
            (archive_dir / name).unlink(missing_ok=True)
        except OSError as error:
            path = archive_dir / name
            raise StorageError(f"cannot remove {path}: {error.strerror}", path) from error


def _copy_data(source: int, target: int, length: int) -> None:
    offset = 0
    while offset < length:
        try:
            offset = os.lseek(source, offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return  # only a hole is left
            raise
        hole = os.lseek(source, offset, os.SEEK_HOLE)
        while offset < hole:
            data = os.pread(source, min(_CHUNK_LENGTH, hole - offset), offset)
            if not data:
                raise OSError(errno.EIO, "it was cut short meanwhile")
            while data:
                count = os.pwrite(target, data, offset)
                offset, data = offset + count, data[count:]
