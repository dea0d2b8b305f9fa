"""Room for a benchmark's files, looked for beforehand and given back afterwards."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aerotape.catalog.location import why_no_directory
from aerotape.errors import StorageError
from aerotape.tools._cli.output import note

LOG_BUFFER_BYTES: Final = 256 << 20
"""What the media driver may need for the log buffers of a few streams, and its own files."""
_IN_MEMORY: Final = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where a benchmark may write.

    Attributes:
        folder: for recordings and tables.
        aeron_dir: for a media driver; not there yet.
    """

    folder: Path
    aeron_dir: Path


@contextmanager
def workspace(parent: Path | None, length: int, *, needs_driver: bool) -> Iterator[Workspace]:
    """Make folders, and remove them at the end with all that is in them.

    Args:
        parent: where; the system's place for temporary files when None.
        length: bytes that there must be room for.
        needs_driver: whether a media driver will run.

    Raises:
        StorageError: there is no such folder, or not enough room.
    """
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    if (fault := why_no_directory(parent)) is not None:
        raise StorageError(fault, parent)
    aeron_parent = parent
    if needs_driver:
        # Log buffers are memory that driver and clients share; a full tmpfs ends a process.
        if os.access(_IN_MEMORY, os.W_OK) and _free(_IN_MEMORY) >= LOG_BUFFER_BYTES:
            aeron_parent = _IN_MEMORY
        if _is_one_disk(parent, aeron_parent):
            length += LOG_BUFFER_BYTES
    free = _free(parent)
    if free < length:
        raise StorageError(
            f"not enough room in {parent}: {length >> 20:,} MiB are needed and {free >> 20:,} MiB "
            "are free; choose another place with --dir, or a smaller --bytes",
            parent,
        )
    made: list[Path] = []
    try:
        for each in dict.fromkeys((parent, aeron_parent)):
            made.append(Path(tempfile.mkdtemp(prefix=f"aerotape-bench-{os.getpid()}-", dir=each)))
        yield Workspace(made[0], made[-1] / "aeron")
    except OSError as error:
        if made or not isinstance(error, PermissionError):
            raise
        raise StorageError(f"cannot write in {parent}: {error.strerror}", parent) from error
    finally:
        for folder in made:
            try:
                shutil.rmtree(folder)
            except OSError as error:
                note(f"cannot remove {folder}: {error.strerror}")


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def _is_one_disk(first: Path, second: Path) -> bool:
    return first.stat().st_dev == second.stat().st_dev
