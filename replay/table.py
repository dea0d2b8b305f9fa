"""Recordings as tables: batches of Arrow, with the columns that were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.errors import ConfigurationError
from aerotape.replay.column_names import check_columns
from aerotape.replay.damage import Mode, check_mode, parse_mode
from aerotape.replay.reader import COLUMNS, RecordingRange, Scan, arrow_batches, recording_range
from aerotape.text import not_installed
from aerotape.times import TimeLike, TimeRange

if TYPE_CHECKING:
    import pyarrow

    from aerotape._native import ChecksumName
    from aerotape.catalog.directory import Recording
    from aerotape.codecs.payloads import PayloadSchema
    from aerotape.replay.payload_columns import Others, PayloadColumns


def table_columns(mode: Mode, payloads: PayloadColumns | None = None) -> tuple[str, ...]:
    """Return the columns of a table for which none were named.

    With typed columns the payload itself is none of them.
    """
    typed = () if payloads is None else payloads.names
    own = [name for name in COLUMNS if name != "_corrupt" and not (typed and name == "payload")]
    return (*own, *typed, "_corrupt") if mode == "PERMISSIVE" else (*own, *typed)


class TableReader:
    """Reads ranges of recordings into batches that all have the same columns."""

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        checksum: ChecksumName = "none",
        *,
        mode: Mode = "FAILFAST",
        payloads: PayloadColumns | None = None,
        batch_rows: int = 65_536,
        batch_bytes: int = 8_388_608,
    ) -> None:
        """Prepare for any number of ranges. Needs pyarrow.

        Args:
            columns: names of columns in the order wanted; those of `table_columns` when None. What
                is not asked for is not built.
            checksum: which checksum frames are verified with.
            mode: what becomes of messages with a frame that fails it, and of payloads that are
                not what their schema says.
            payloads: typed columns there are, and which messages are rows.
            batch_rows: messages in a batch at most.
            batch_bytes: bytes of payload after which a batch ends.

        Raises:
            ConfigurationError: an argument cannot be.
        """
        self._mode = parse_mode(mode)
        check_mode(self._mode, checksum, decodes=payloads is not None)
        self._columns = table_columns(self._mode, payloads) if columns is None else columns
        self._checksum = checksum
        self._batch_rows = batch_rows
        self._batch_bytes = batch_bytes
        check_columns(self._columns, (*COLUMNS, *(payloads.names if payloads else ())))
        self._typed = None
        if payloads is not None:
            from aerotape.replay.payload_columns import PayloadReader

            self._typed = PayloadReader(payloads, self._columns, self._mode)

    def read(self, part: RecordingRange) -> pyarrow.RecordBatchReader:
        """Return the messages of a range as a stream of batches; nothing is read yet.

        Raises:
            ConfigurationError: a column cannot be.
            SegmentError: while batches are taken, as for `aerotape.replay.reader.read_messages`.
            CodecError: while batches are taken, in mode FAILFAST: a payload is not what its schema
                says; it names recording and position. Messages before it come first.
        """
        return self.scan(part)[1]

    def scan(self, part: RecordingRange) -> tuple[Scan, pyarrow.RecordBatchReader]:
        """Return what `read` does, and the scan behind it, which tells what it has left out."""
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
        return scan, pyarrow.RecordBatchReader.from_batches(schema, batches)


def read_batches(
    recording: Recording,
    from_position: int | None = None,
    to_position: int | None = None,
    checksum: ChecksumName = "none",
    *,
    from_time: TimeLike | None = None,
    to_time: TimeLike | None = None,
    columns: Sequence[str] | None = None,
    mode: Mode = "FAILFAST",
    schema: PayloadSchema | str | Path | None = None,
    template: str | int | None = None,
    others: Others = "drop",
    batch_rows: int = 65_536,
    batch_bytes: int = 8_388_608,
) -> pyarrow.RecordBatchReader:
    """Return the messages of a recording as a stream of Arrow record batches; needs pyarrow.

    The stream is read once, as it is asked for; memory does not grow with the recording. It has
    Arrow's stream interface: DuckDB, Polars, pandas and others take it as it is.

    Args:
        recording: of an opened archive directory, as for `aerotape.replay.reader.read_messages`,
            and so are the positions, the times and the checksum.
        columns: names of `aerotape.replay.reader.COLUMNS` and of typed columns, in the order
            wanted; all when None, but `_corrupt` in mode PERMISSIVE only and `payload` without a
            schema only. What is not asked for is not built.
        mode: what becomes of messages with a frame that fails its checksum, and of payloads that
            are not what the schema says (`aerotape.replay.damage.Mode`).
        schema: an SBE schema: its fields become columns. The file, XML or `.sbeir`, also by its
            URL; or one that was read before (`aerotape.codecs.payloads.PayloadSchema`).
        template: name or id of the message whose fields these are. When None each message of the
            schema is a struct column, and the column `template` has its name.
        others: messages of other templates and schemas are no rows ("drop"), or rows whose typed
            columns are null ("null").
        batch_rows: messages in a batch at most.
        batch_bytes: bytes of payload after which a batch ends.

    Raises:
        ConfigurationError: an argument cannot be, or pyarrow is not installed.
        CodecError: the schema is none, or has no such template; while batches are taken, in mode
            FAILFAST: a payload is not what it says.
        SegmentError: as for `aerotape.replay.reader.read_messages`.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(not_installed("pyarrow", "arrow")) from error
    payloads = None
    if schema is not None:
        from aerotape.replay.payload_columns import PayloadColumns

        payloads = PayloadColumns.of(schema, template, others=others, storage=recording.storage)
    elif template is not None:
        raise ConfigurationError("template: give the schema that has it, too", "template")
    table = TableReader(
        columns,
        checksum,
        mode=mode,
        payloads=payloads,
        batch_rows=batch_rows,
        batch_bytes=batch_bytes,
    )
    times = TimeRange.of(from_time, to_time)
    return table.read(recording_range(recording, from_position, to_position, times))
