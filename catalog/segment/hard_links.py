"""Copy-on-write for segment files with several names (hard links).

After an interrupted migration of segments a file is in two recordings; after a backup with hard
links it is in the backup too. A change for one of them must not change the others.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from aerotape.catalog.durability import sync_directory
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.segment.data_extents import copy_data
from aerotape.catalog.segment_files import DELETE_SUFFIX
from aerotape.errors import StorageError


def break_hard_link(path: Path) -> None:
    """Replace one name of a file that has several by a copy, which is on storage afterwards.

    The copy has the same holes, time and mode, and the same owner where that can be. A copy that a
    crash left incomplete has the name of a file to be deleted, which the next start does.

    Raises:
        StorageError: it cannot be copied; then it is as it was.
    """
    temporary = None
    try:
        if path.lstat().st_nlink < 2:
            return
        temporary = path.with_name(path.name + DELETE_SUFFIX)
        with (
            open(path, "rb", buffering=0, opener=open_no_follow) as source,
            open(temporary, "wb", buffering=0, opener=open_no_follow) as target,
        ):
            before = os.fstat(source.fileno())
            target.truncate(before.st_size)
            copy_data(source.fileno(), target.fileno(), before.st_size)
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
