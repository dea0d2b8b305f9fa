"""The index files of a recording, which lie beside its segment files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from aerotape.catalog.time_index.file import time_index_path
from aerotape.errors import StorageErrors

_NAME: Final = re.compile(r"aerotape-(0|[1-9][0-9]{0,18})\.(?:time|seek)-index", re.ASCII)


def remove_indexes(archive_dir: Path, recording_id: int) -> None:
    """Remove the index files of a recording, if there are any (StorageError)."""
    for path in (
        time_index_path(archive_dir, recording_id),
        # Created by earlier versions for recordings of raft journals, and not read any more.
        archive_dir / f"aerotape-{recording_id}.seek-index",
    ):
        with StorageErrors(f"cannot remove index {path}", path):
            path.unlink(missing_ok=True)


def parse_index_name(name: str) -> int | None:
    """Return the recording id that an index file is named for, None when it is no such file."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1])
