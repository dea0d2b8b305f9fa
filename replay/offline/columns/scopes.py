"""Columns that name the archive of a message: the scope of its recording, and its qualified name.

They are optional: no table has them by default. A field of an SBE schema with one of these names is
a column under that name, and there is no such column of the scope then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from aerotape.qualified_id import QualifiedId

if TYPE_CHECKING:
    import pyarrow

    from aerotape.replay.offline.columns.payloads import TypedColumns
    from aerotape.replay.offline.reader import RecordingRange

SCOPE_TYPES: Final = {"scope_id": "int64", "qualified_name": "string"}
"""The columns with their Arrow types; `scope_id` is in two's complement."""


def scope_names(payloads: TypedColumns | None = None) -> tuple[str, ...]:
    """Return the names of the columns that a table with these typed columns can have."""
    typed = {name.lower() for name in payloads.names} if payloads is not None else ()
    return tuple(name for name in SCOPE_TYPES if name not in typed)


def schema_with_scopes(others: pyarrow.Schema, names: Sequence[str]) -> pyarrow.Schema:
    """Append columns of this module to the schema of a table."""
    import pyarrow

    for name in names:
        others = others.append(pyarrow.field(name, pyarrow.type_for_alias(SCOPE_TYPES[name])))
    return others


class ScopeColumns:
    """Adds the selected columns to the batches of a table that has the others."""

    def __init__(self, columns: Sequence[str], names: Sequence[str]) -> None:
        """Prepare for any number of recordings.

        Args:
            columns: all columns of the table, in output order.
            names: those of them that this class adds.
        """
        self._columns = tuple(columns)
        self._names = frozenset(names).intersection(columns)
        self._own: dict[str, int] = {}
        others = tuple(name for name in columns if name not in self._names)
        self.other_columns = others or ("position",)
        """Columns of the batches before: at least one, which has the number of rows."""

    def __bool__(self) -> bool:
        return bool(self._names)

    def schema(self, others: pyarrow.Schema) -> pyarrow.Schema:
        """Return the schema of the table from that of the other columns."""
        import pyarrow

        return pyarrow.schema(
            [
                pyarrow.field(name, pyarrow.type_for_alias(SCOPE_TYPES[name]))
                if name in self._names
                else others.field(name)
                for name in self._columns
            ]
        )

    def add(
        self, part: RecordingRange, batches: Iterator[pyarrow.RecordBatch]
    ) -> Iterator[pyarrow.RecordBatch]:
        """Add the columns to the batches of a range (StorageError)."""
        import pyarrow

        qualified_id = QualifiedId(self._scope_of(part), part.recording_id)
        values = {"scope_id": qualified_id.signed[0], "qualified_name": str(qualified_id)}
        for batch in batches:
            schema = self.schema(batch.schema)
            arrays = [
                pyarrow.repeat(pyarrow.scalar(values[field.name], field.type), batch.num_rows)
                if field.name in self._names
                else batch.column(field.name)
                for field in schema
            ]
            yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)

    def _scope_of(self, part: RecordingRange) -> int:
        if part.imported_from is not None:
            return part.imported_from
        if part.archive_dir not in self._own:
            from aerotape.replay.offline.directory import directory_at

            directory = directory_at(part.archive_dir, part.storage)
            self._own[part.archive_dir] = directory.own_scope_id()
        return self._own[part.archive_dir]
