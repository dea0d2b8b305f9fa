"""Durability of a recording that differs from the archive's sync level, and forcing it to storage.

The functions block on the disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aerotape.catalog.durability import force_names
from aerotape.catalog.layout import CATALOG_FILE_NAME
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.segment_files import list_segment_files, open_regular_file
from aerotape.errors import StorageError

OnSynced = Callable[[int, "str | None"], None]
"""Called once: the durable position in bytes, and why the recording failed or None."""


@dataclass(frozen=True)
class Durability:
    """When the recorder makes a recording durable, and the ledger whose counter shows it.

    The position counter of the recording is at what has been written, and a second counter, the
    confirmed position (`CounterType.LEDGER_CONFIRMED`), at what is durable.

    Attributes:
        sync: "pd": all that is written, continuously; "vd": on request, and at the end.
        ledger_key: the qualified id of the ledger, 16 bytes, for the counter's key and label.
    """

    sync: Literal["pd", "vd"]
    ledger_key: bytes


def force_segments(archive_dir: Path, recording_id: int) -> None:
    """Force the segment files of a stopped recording and their names to storage.

    After a crash of the archive its last bytes may be in the page cache only.

    Raises:
        StorageError: that has failed.
    """
    for segment in list_segment_files(archive_dir, recording_id):
        try:
            with open_regular_file(segment.path) as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise StorageError(
                f"cannot sync segment file {segment.path}: {error.strerror}", segment.path
            ) from error
    force_names(archive_dir)


def force_catalog(archive_dir: Path) -> None:
    """Force the catalog and the names of the directory's files to storage (StorageError)."""
    path = archive_dir / CATALOG_FILE_NAME
    try:
        with open(path, "rb", buffering=0, opener=open_no_follow) as file:
            os.fsync(file.fileno())
    except OSError as error:
        raise StorageError(f"cannot force {path} to storage: {error.strerror}", path) from error
    force_names(archive_dir)


def force_recording(archive_dir: Path, recording_id: int) -> None:
    """Force the segment files of a stopped recording to storage, then the catalog (StorageError).

    A file without changes costs next to nothing.
    """
    force_segments(archive_dir, recording_id)
    force_catalog(archive_dir)
