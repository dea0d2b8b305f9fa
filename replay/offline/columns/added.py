"""Columns that are added to those of a scan: the archive of a message, and when it was recorded.

They are optional: a table has them only where they are selected. A field of an SBE schema with one
of these names is a column under that name, and the column of this module does not exist then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from aerotape.qualified_id import QualifiedId
from aerotape.replay.offline.columns.names import ADDED_TYPES, RECORDED_TIME, SCOPE_NAMES
from aerotape.replay.offline.columns.times import points_in, time_column

if TYPE_CHECKING:
    import pyarrow

    from aerotape.catalog.directory import StoredDirectory, StoredRecording
    from aerotape.catalog.location import StorageOptions
    from aerotape.replay.offline.reader import RecordingRange


def _field(name: str) -> pyarrow.Field:
    import pyarrow

    if name == RECORDED_TIME:
        return pyarrow.field(name, pyarrow.timestamp("us", "UTC"))
    return pyarrow.field(name, pyarrow.type_for_alias(ADDED_TYPES[name]))


def schema_with(others: pyarrow.Schema, names: Iterable[str]) -> pyarrow.Schema:
    """Append columns of this module to the schema of a table."""
    for name in names:
        others = others.append(_field(name))
    return others


class AddedColumns:
    """Adds the selected columns to the batches of a table that has the others."""

    def __init__(
        self,
        columns: Sequence[str],
        names: Iterable[str],
        open_directory: Callable[[str, StorageOptions], StoredDirectory[Any]],
    ) -> None:
        """Prepare for all columns of a table, of which this class adds those in `names`."""
        self._open_directory = open_directory
        self._columns = tuple(columns)
        self._names = frozenset(names).intersection(columns)
        self._own_scopes: dict[str, int] = {}
        self._recordings: dict[str, dict[int, StoredRecording]] = {}
        self._lock = threading.Lock()
        others = tuple(name for name in columns if name not in self._names)
        if "position" not in others and (not others or RECORDED_TIME in self._names):
            others = (*others, "position")
        self.other_columns = others
        """Columns of the batches before: at least one, which has the number of rows."""

    def __bool__(self) -> bool:
        return bool(self._names)

    def schema(self, others: pyarrow.Schema) -> pyarrow.Schema:
        """Return the schema of the table from that of the other columns."""
        import pyarrow

        return pyarrow.schema(
            [_field(name) if name in self._names else others.field(name) for name in self._columns]
        )

    def add(
        self, part: RecordingRange, batches: Iterator[pyarrow.RecordBatch]
    ) -> Iterator[pyarrow.RecordBatch]:
        """Add the columns to the batches of a range (CatalogError, StorageError)."""
        import pyarrow

        values: dict[str, object] = {}
        if not self._names.isdisjoint(SCOPE_NAMES):
            qualified_id = QualifiedId(self._scope_of(part), part.recording_id)
            values = dict(
                zip(SCOPE_NAMES, (qualified_id.signed[0], str(qualified_id)), strict=True)
            )
        points = None
        if RECORDED_TIME in self._names:
            points = points_in(self._recording_of(part), part)
        for batch in batches:
            schema = self.schema(batch.schema)
            arrays = []
            for field in schema:
                if field.name not in self._names:
                    arrays.append(batch.column(field.name))
                elif field.name in values:
                    value = pyarrow.scalar(values[field.name], field.type)
                    arrays.append(pyarrow.repeat(value, batch.num_rows))
                elif points is not None:
                    arrays.append(time_column(points, batch.column("position"), field.type))
            yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)

    def _scope_of(self, part: RecordingRange) -> int:
        if part.imported_from is not None:
            return part.imported_from
        if part.archive_dir not in self._own_scopes:
            directory = self._open_directory(part.archive_dir, part.storage)
            self._own_scopes[part.archive_dir] = directory.own_scope_id()
        return self._own_scopes[part.archive_dir]

    def _recording_of(self, part: RecordingRange) -> StoredRecording | None:
        """Return the recording of a range; None if it is no longer there."""
        # Several threads may read ranges of one directory: one of them reads the catalog.
        with self._lock:
            if part.archive_dir not in self._recordings:
                recordings = self._open_directory(part.archive_dir, part.storage).recordings()
                self._recordings[part.archive_dir] = {
                    each.recording_id: each for each in recordings
                }
            return self._recordings[part.archive_dir].get(part.recording_id)
