"""Forces what a ledger's recording consists of to storage. All functions block on the disk."""

from __future__ import annotations

import os
from pathlib import Path

from aerotape.archive.recording.durability import force_segments
from aerotape.catalog.durability import force_names
from aerotape.catalog.layout import CATALOG_FILE_NAME
from aerotape.catalog.no_follow import open_no_follow
from aerotape.errors import StorageError


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
