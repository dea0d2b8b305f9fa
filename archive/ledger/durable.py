"""Forces files of a ledger's recording to storage. All functions block on the disk."""

from __future__ import annotations

import os
from pathlib import Path

from aerotape.catalog.durability import force_names
from aerotape.catalog.layout import CATALOG_FILE_NAME
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.segment_files import list_segment_files
from aerotape.errors import StorageError


def force_catalog(archive_dir: Path) -> None:
    """Force the catalog and the names of the directory's files to storage (StorageError)."""
    _force(archive_dir / CATALOG_FILE_NAME)
    force_names(archive_dir)


def force_recording(archive_dir: Path, recording_id: int) -> None:
    """Force the segment files of a stopped recording to storage, then the catalog (StorageError).

    A file without changes costs next to nothing.
    """
    for segment in list_segment_files(archive_dir, recording_id):
        _force(segment.path)
    force_catalog(archive_dir)


def _force(path: Path) -> None:
    try:
        with open(path, "rb", buffering=0, opener=open_no_follow) as file:
            os.fdatasync(file.fileno())
    except OSError as error:
        raise StorageError(f"cannot force {path} to storage: {error.strerror}", path) from error
