"""The index files of a recording, which lie beside its segment files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from aerotape.catalog.seek_index.file import seek_index_path
from aerotape.catalog.time_index.file import time_index_path
from aerotape.errors import StorageErrors

_NAME: Final = re.compile(r"aerotape-(0|[1-9][0-9]{0,18})\.(?:time|seek)-index", re.ASCII)


def remove_indexes(archive_dir: Path, recording_id: int) -> None:
    """Remove the time index and the seek index of a recording, if there are any (StorageError)."""
    for path_of in (time_index_path, seek_index_path):
        path = path_of(archive_dir, recording_id)
        with StorageErrors(f"cannot remove index {path}", path):
            path.unlink(missing_ok=True)


def parse_index_name(name: str) -> int | None:
    """Return the recording id that an index file is named for, None when it is no such file."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1])
