"""What a table job needs of the table that it writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from aerotape.errors import AerotapeError
from aerotape.spark.tables.extent import Extent
from aerotape.spark.tables.output import OutputStore
from aerotape.spark.tables.writer import (
    RECORDINGS_KEY,
    Naming,
    NewFile,
    ParquetFile,
)

if TYPE_CHECKING:
    import pyarrow


class TableChangedError(AerotapeError):
    """Another job has changed the table since it was read: read it again and plan again."""


class Table(Protocol):
    """A table of recordings. For one thread."""

    @property
    def store(self) -> OutputStore:
        """Its folder, into which tasks write files."""

    @property
    def naming(self) -> Naming:
        """How tasks name these."""

    def begin(self, schema: pyarrow.Schema) -> None:
        """Create the table if it does not exist; reserve it if it takes only one writer.

        Args:
            schema: of its files.

        Raises:
            TableInUseError: another job is writing to it.
            StorageError: it cannot be written.
        """

    def close(self) -> None:
        """Release the table. Idempotent."""

    def refresh(self) -> None:
        """Read what the table has now (StorageError)."""

    def columns(self) -> dict[str, str] | None:
        """Return its columns and their Arrow types, without the date; None if it has no rows."""

    def extents(self, recording_ids: Iterable[int]) -> dict[int, Extent]:
        """Return what the table has of recordings, for those of which it has something."""

    def commit(
        self,
        files: Sequence[NewFile],
        extents: Mapping[int, Extent],
        replaced: Mapping[int, int],
    ) -> None:
        """Add files.

        Args:
            files: those that tasks have written.
            extents: what the table has then of each recording that is in them.
            replaced: recordings whose rows are removed, with the position from which on.

        Raises:
            TableChangedError: another job has changed the same recordings meanwhile.
            StorageError: it cannot be written.
        """

    def discard(self, files: Iterable[NewFile]) -> None:
        """Delete files that were not committed (StorageError)."""


def without_rows(
    store: OutputStore, path: str, replaced: Mapping[int, int], new_path: str, date: str | None
) -> NewFile | None:
    """Copy a Parquet file of a table without some rows; None if none are left.

    Args:
        store: the table's folder.
        path: the file.
        replaced: recordings whose rows are left out, with the position from which on.
        new_path: name of the copy.
        date: its partition.

    Raises:
        StorageError: the file cannot be read.
        OSError: the copy cannot be written.
    """
    from pyarrow import compute, parquet

    copy = ParquetFile(store, new_path)
    with store.open_file(path) as stream:
        source = parquet.ParquetFile(stream)
        try:
            for batch in source.iter_batches():
                for id, position in replaced.items():
                    others = compute.not_equal(batch.column("recording_id"), id)
                    before = compute.less(batch.column("position"), position)
                    batch = batch.filter(compute.or_(others, before))
                copy.add(batch)
            return copy.finish(date, _metadata_without(source.metadata.metadata, replaced))
        finally:
            copy.abandon()


def _metadata_without(
    metadata: Mapping[bytes, bytes] | None, replaced: Mapping[int, int]
) -> dict[str, str]:
    """Leave replaced positions out of what `recordings_metadata` has made."""
    found = {
        key.decode(): value.decode()
        for key, value in (metadata or {}).items()
        if key.startswith(b"aerotape.")
    }
    if RECORDINGS_KEY in found:
        recordings = json.loads(found[RECORDINGS_KEY])
        for each in recordings:
            limit = replaced.get(each["recording_id"])
            if limit is not None:
                begin, end = each["range"]
                each["range"] = (begin, min(end, limit))
                if each["last"] is not None and each["last"][0] >= limit:
                    each["last"] = None
        kept = [each for each in recordings if each["range"][0] < each["range"][1]]
        found[RECORDINGS_KEY] = json.dumps(kept)
    return found
