"""The index files of a recording, which lie beside its segment files."""

from __future__ import annotations

from pathlib import Path

from aerotape.catalog.seek_index.file import parse_seek_index_name, remove_seek_index
from aerotape.catalog.time_index.file import parse_time_index_name, remove_time_index


def remove_indexes(archive_dir: Path, recording_id: int) -> None:
    """Remove the time index and the seek index of a recording, if there are any (StorageError)."""
    remove_time_index(archive_dir, recording_id)
    remove_seek_index(archive_dir, recording_id)


def parse_index_name(name: str) -> int | None:
    """Return the recording id that an index file is named for, None when it is no such file."""
    recording_id = parse_time_index_name(name)
    return parse_seek_index_name(name) if recording_id is None else recording_id
