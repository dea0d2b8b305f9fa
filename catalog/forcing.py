"""Forcing a recording's files, and the catalog, to storage."""

from __future__ import annotations

import os
from pathlib import Path

from aerotape.catalog.durability import force_names
from aerotape.catalog.layout import CATALOG_FILE_NAME
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.segment_files import list_segment_files, open_regular_file
from aerotape.errors import StorageError


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
