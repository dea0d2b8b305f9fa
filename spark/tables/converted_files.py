"""Files next to the log of a Delta table, of what it has of each recording, in Arrow's format.

    TABLE/_aerotape/ID.arrow

A commit writes a new file with all recordings of the table. ID is the version of the log's
application transaction of ours, ``aerotape``: so the commit that adds rows also names the file.
Older files are retained for a while, because an earlier version of the table may be restored.
Readers of Delta tables skip folders with such a name.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Collection, Mapping
from typing import Final

from aerotape.catalog.directory import recording_key, split_key
from aerotape.errors import StorageError
from aerotape.replay.offline.read_progress import LastRead, ReadProgress
from aerotape.spark.tables.output import OutputStore

APPLICATION: Final = "aerotape"
"""Id of the application transaction whose version is the id of the file."""

CONVERTED_FOLDER: Final = "_aerotape"
"""The folder of the files."""

_RETAINED: Final = 100
_HOUR_NS: Final = 3_600_000_000_000
_COLUMNS: Final = {
    "scope_id": "uint64",  # null for recordings of the archive itself
    "recording_id": "int64",
    "from_position": "int64",
    "to_position": "int64",
    "identity": "int64",
    "last_position": "int64",
    "last_end_position": "int64",
    "last_crc32c": "int64",
}


def read_converted(store: OutputStore, id: int) -> dict[int, ReadProgress] | None:
    """The converted ranges in a file, by key of the recording; None if there is no such file.

    Raises:
        StorageError: the file cannot be read.
    """
    from pyarrow import feather

    path = _path(id)
    if not store.exists(path):
        return None
    with store.open_file(path) as stream:
        rows = feather.read_table(stream).to_pylist()
    return {
        recording_key(row["scope_id"], row["recording_id"]): ReadProgress(
            begin=row["from_position"],
            position=row["to_position"],
            identity=row["identity"],
            last=None
            if row["last_position"] is None
            else LastRead(row["last_position"], row["last_end_position"], row["last_crc32c"]),
        )
        for row in rows
    }


def write_converted(store: OutputStore, converted: Mapping[int, ReadProgress]) -> int:
    """Write a file and return its id, which no other file has (StorageError)."""
    import pyarrow
    from pyarrow import feather

    rows = []
    for key, part in sorted(converted.items()):
        last = part.last
        last_row = (None,) * 3 if last is None else dataclasses.astuple(last)
        row = (*split_key(key), part.begin, part.position, part.identity, *last_row)
        rows.append(dict(zip(_COLUMNS, row, strict=True)))
    schema = pyarrow.schema(
        [(name, pyarrow.type_for_alias(kind)) for name, kind in _COLUMNS.items()]
    )
    id = secrets.randbits(63)
    path = _path(id)
    try:
        with store.new_file(path) as stream:
            feather.write_feather(pyarrow.Table.from_pylist(rows, schema), stream, "zstd")
    except OSError as error:
        raise StorageError(f"cannot write {store.name}/{path}: {error.strerror}") from error
    return id


def delete_old_files(store: OutputStore) -> None:
    """Delete all but the latest files, so that they do not become more with each commit.

    The rows of a version that is restored without its file show their positions themselves.
    """
    for path, _ in _files(store)[:-_RETAINED]:
        store.delete_file(path)


def vacuum_files(store: OutputStore, present: Collection[int], retention_hours: int) -> None:
    """Delete files that were replaced before the last hours, except some (StorageError)."""
    before_ns = time.time_ns() - retention_hours * _HOUR_NS
    retained = {_path(id) for id in present}
    files = _files(store)
    # A file was replaced when the next one was written.
    replaced_ns = [*(ns for _, ns in files[1:]), time.time_ns()]
    for (path, _), ns in zip(files, replaced_ns, strict=True):
        if path not in retained and ns <= before_ns:
            store.delete_file(path)


def _files(store: OutputStore) -> list[tuple[str, int]]:
    """Return the paths of all files with the times when they were written, the oldest first."""
    found = store.files(CONVERTED_FOLDER).items()
    files = [(f"{CONVERTED_FOLDER}/{name}", int(info["mtime"] * 10**9)) for name, info in found]
    return sorted(files, key=lambda file: file[1])


def _path(id: int) -> str:
    return f"{CONVERTED_FOLDER}/{id}.arrow"
