"""Recordings as tables: Arrow record batches with the selected columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.errors import ConfigurationError
from aerotape.formatting import not_installed
from aerotape.replay.offline.columns.added import AddedColumns
from aerotape.replay.offline.columns.names import (
    COLUMN_TYPES,
    added_names,
    check_columns,
    known_columns,
    table_columns,
)
from aerotape.replay.offline.columns.typed import typed_columns
from aerotape.replay.offline.reader import RecordingRange, Scan, arrow_batches, recording_range
from aerotape.replay.offline.selection import EVERYTHING, Selection

if TYPE_CHECKING:
    import pyarrow

    from aerotape.catalog.directory import StoredRecording
    from aerotape.catalog.location import StorageOptions
    from aerotape.replay.offline.columns.payloads import TypedColumns
    from aerotape.replay.offline.directory import ArchiveDirectory
    from aerotape.replay.offline.read_mode import Mode


def _directory_at(archive_dir: str, storage: StorageOptions) -> ArchiveDirectory:
    # Loads slowly, and most tables have no added columns.
    from aerotape.replay.offline.directory import directory_at

    return directory_at(archive_dir, storage)


def table_schema(mode: Mode, payloads: TypedColumns | None = None) -> pyarrow.Schema:
    """Return the Arrow schema of a table with the columns of `table_columns`."""
    import pyarrow

    typed = {} if payloads is None else {each.name: each for each in payloads.arrow_schema}
    return pyarrow.schema(
        [
            typed[name]
            if name in typed
            else pyarrow.field(name, pyarrow.type_for_alias(COLUMN_TYPES[name]))
            for name in table_columns(mode, payloads)
        ]
    )


class TableReader:
    """Reads ranges of recordings into batches that all have the same columns."""

    def __init__(
        self,
        selection: Selection = EVERYTHING,
        payloads: TypedColumns | None = None,
        *,
        batch_rows: int = 65_536,
        batch_bytes: int = 8_388_608,
    ) -> None:
        """Prepare for any number of ranges. Needs pyarrow.

        Args:
            selection: its columns, checksum and mode; columns that it does not have are not built.
                Without columns those of `table_columns`; those of `added_names` are possible too.
            payloads: available typed columns, and the selection of messages (`typed_columns`).
            batch_rows: maximum number of messages in a batch.
            batch_bytes: bytes of payload after which a batch ends.

        Raises:
            ConfigurationError: a column is not valid, or pyarrow is not installed.
        """
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise ConfigurationError(not_installed("pyarrow", "arrow")) from error
        self._mode = selection.mode
        self._columns = selection.columns or table_columns(self._mode, payloads)
        if selection.columns is not None:
            check_columns(selection.columns, known_columns(payloads))
        self._checksum = selection.checksum
        self._batch_rows = batch_rows
        self._batch_bytes = batch_bytes
        self._added = AddedColumns(self._columns, added_names(payloads), _directory_at)
        if self._added:
            self._columns = self._added.other_columns
        self._typed = None
        if payloads is not None:
            from aerotape.replay.offline.columns.payloads import PayloadReader

            self._typed = PayloadReader(payloads, self._columns, self._mode)

    def read(self, part: RecordingRange) -> pyarrow.RecordBatchReader:
        """Return the messages of a range as a stream of batches; nothing is read yet.

        Raises:
            ConfigurationError: a column is not valid.
            SegmentError: while batches are taken, as for `Recording.messages`.
            CodecError: while batches are taken, in mode FAILFAST: a payload does not match its
                schema; the error names recording and position. Messages before it come first.
        """
        return self.scan(part)[1]

    def scan(self, part: RecordingRange) -> tuple[Scan, pyarrow.RecordBatchReader]:
        """As `read`; also return the scan, which counts what it has left out."""
        import pyarrow

        scan = part.scan(
            self._columns if self._typed is None else self._typed.scan_columns,
            self._checksum,
            batch_rows=self._batch_rows,
            batch_bytes=self._batch_bytes,
            mode=self._mode if self._checksum != "none" else "FAILFAST",
        )
        schema, batches = pyarrow.schema(scan.schema), arrow_batches(scan)
        if self._typed is not None:
            batches = self._typed.read(part.recording_id, batches)
            schema = self._typed.arrow_schema(schema)
        if self._added:
            batches = self._added.add(part, batches)
            schema = self._added.schema(schema)
        return scan, pyarrow.RecordBatchReader.from_batches(schema, batches)


def read_batches(
    recording: StoredRecording,
    selection: Selection,
    *,
    batch_rows: int = 65_536,
    batch_bytes: int = 8_388_608,
) -> pyarrow.RecordBatchReader:
    """Return the messages of a recording that a selection has, as `Recording.to_batches`."""
    payloads = typed_columns(selection, recording.storage)
    table = TableReader(selection, payloads, batch_rows=batch_rows, batch_bytes=batch_bytes)
    return table.read(recording_range(recording, selection))
