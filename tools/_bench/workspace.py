"""The directories of a benchmark, with a check of free space, deleted at the end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Final

from aerotape.catalog.location import why_no_directory
from aerotape.errors import StorageError, StorageErrors

LOG_BUFFER_BYTES: Final = 256 << 20
"""Space for the log buffers of a few streams and the media driver's files."""
_IN_MEMORY: Final = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Workspace:
    """The directories of a benchmark.

    Attributes:
        folder: for recordings and tables.
        aeron_dir: for a media driver; does not exist yet.
    """

    folder: Path
    aeron_dir: Path


@contextmanager
def workspace(parent: Path | None, length: int, *, needs_driver: bool) -> Iterator[Workspace]:
    """Create directories, and delete them with their content at the end.

    Args:
        parent: the parent directory; the system's temporary directory if None.
        length: bytes that must be free.
        needs_driver: whether a media driver will run.

    Raises:
        StorageError: there is no such directory, or not enough space.
    """
    parent = Path(gettempdir()) if parent is None else parent
    if (fault := why_no_directory(parent)) is not None:
        raise StorageError(fault, parent)
    aeron_parent = parent
    # Log buffers are shared memory; on a full tmpfs a write to them ends the process.
    if needs_driver and os.access(_IN_MEMORY, os.W_OK) and _free(_IN_MEMORY) >= LOG_BUFFER_BYTES:
        aeron_parent = _IN_MEMORY
    if needs_driver and parent.stat().st_dev == aeron_parent.stat().st_dev:
        length += LOG_BUFFER_BYTES
    free = _free(parent)
    if free < length:
        raise StorageError(
            f"not enough space in {parent}: {length >> 20:,} MiB required, {free >> 20:,} MiB "
            "free; give another directory with --dir, or a smaller --bytes",
            parent,
        )
    prefix = f"aerotape-bench-{os.getpid()}-"
    with StorageErrors(f"cannot write in {parent}", parent):
        folders = [TemporaryDirectory(prefix=prefix, dir=each) for each in (parent, aeron_parent)]
    with folders[0] as folder, folders[1] as driver:
        yield Workspace(Path(folder), Path(driver) / "aeron")


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free
