"""Tasks of a table job: scan ranges of recordings and write them to Parquet files.

Rows do not pass through the JVM: a task goes from segment files to Arrow to Parquet in one process.
Small recordings share a file, sorted by recording and position; a larger one has its own files. A
row group ends by rows or by bytes of payload, so a task's memory depends neither on the recording
nor on the size of its messages.

A file's name follows from what is in it, and it is complete when it appears under that name: a task
that Spark repeats replaces its own files and adds nothing twice.
"""

from __future__ import annotations

import dataclasses
import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from aerotape import __version__
from aerotape.errors import AerotapeError
from aerotape.replay.offline.columns.names import RECORDED_TIME
from aerotape.replay.offline.read_progress import LastRead
from aerotape.replay.offline.reader import RecordingRange
from aerotape.replay.offline.scan_ahead import scans
from aerotape.replay.offline.table import TableReader
from aerotape.spark.tables.output import OutputStore

if TYPE_CHECKING:
    import pyarrow

    from aerotape.replay.offline.columns.payloads import TypedColumns
    from aerotape.replay.offline.scan_ahead import Scanned
    from aerotape.replay.offline.selection import Selection

_ROW_GROUP_ROWS: Final = 1 << 20
ROW_GROUP_BYTES: Final = 64 << 20
# Up to this length a recording is read as a whole before it joins a file with others.
_SMALL: Final = 8 << 20

_LEVEL: Final = 1
_FAST_LEVEL: Final = -1
_SIMILAR: Final = 1.01
_SAMPLE_BYTES: Final = 1 << 20

# Positions grow steadily and lengths repeat: differences pack well, dictionaries only cost.
_ENCODINGS: Final = dict.fromkeys(
    ("position", "end_position", "term_offset", "reserved_value", "length"), "DELTA_BINARY_PACKED"
)
_WITHOUT_DICTIONARY: Final = frozenset({*_ENCODINGS, "payload"})
RECORDINGS_KEY: Final = "aerotape.recordings"
"""Key of the metadata that says which recordings a file has."""
_UNIQUE: Final = re.compile(
    r"(date=[0-9]{4}-[0-9]{2}-[0-9]{2}/)?part-([0-9a-f]{16}-)?[0-9a-f]{32}\.parquet"
)
_SORTED: Final = ("recording_id", "position")
STATISTICS: Final = (*_SORTED, RECORDED_TIME)
"""Columns of which a table knows the minimum and maximum in each file."""


class Naming(Enum):
    """The naming of files by tasks.

    Attributes:
        BY_CONTENT: by what is in them, with their final names.
        STAGED: by what is in them, in a folder in `STAGED_FOLDER`, from which they are moved.
        UNIQUE: with names that no other file has.
    """

    BY_CONTENT = "by content"
    STAGED = "staged"
    UNIQUE = "unique"


STAGED_FOLDER = "_staged"
"""The folder of files before their commit; readers of Parquet folders skip such names."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of a recording as a task gets it.

    Attributes:
        part: the range.
        date: the partition it belongs to, ISO 8601, or None in a table without partitions.
        is_whole: it is all that is converted of its recording by this job.
    """

    part: RecordingRange
    date: str | None
    is_whole: bool


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """Arguments that all tasks of a job share.

    Attributes:
        store: the table's folder.
        selection: its columns, checksum and mode.
        payloads: typed columns, if any.
        identities: `ReadProgress.identity` of each recording, for the files' metadata.
        naming: how files are named.
        job_id: is in the names of naming `UNIQUE`.
    """

    store: OutputStore
    selection: Selection
    payloads: TypedColumns | None
    identities: dict[int, int]
    naming: Naming
    job_id: str = ""

    def path(self, parts: Sequence[RecordingRange], date: str | None) -> str:
        """Name a file with some ranges, below the table's folder."""
        if self.naming is Naming.UNIQUE:
            return unique_path(date, self.job_id)
        path = path_by_content(parts, date)
        if self.naming is Naming.BY_CONTENT:
            return path
        # Two attempts of a task, one perhaps still running, must not share a file.
        return f"{STAGED_FOLDER}/{uuid.uuid4().hex}/{path}"


@dataclass(frozen=True, slots=True)
class RangeOutcome:
    """The outcome of one range.

    Attributes:
        part: the range; it ends where an unfinished message begins, if there is one.
        rows: messages in it.
        payload_bytes: bytes of their payloads.
        skipped_fragments: fragments that belong to no whole message.
        dropped_messages: messages left out because a frame fails its checksum.
        unfinished_fragments: fragments of a message that had not ended at the range's limit.
        last: its last row, None without rows.
        error: why it failed, or None.
    """

    part: RecordingRange
    rows: int = 0
    payload_bytes: int = 0
    skipped_fragments: int = 0
    dropped_messages: int = 0
    unfinished_fragments: int = 0
    last: LastRead | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class NewFile:
    """A Parquet file that a task has written.

    Attributes:
        path: below the table's folder.
        size: bytes.
        rows: messages in it.
        date: the partition, or None.
        statistics: minimum and maximum of those columns of `STATISTICS` that have values; of
            `recorded_time` in microseconds.
        nulls: numbers of nulls in columns of `STATISTICS` that the file has.
    """

    path: str
    size: int
    rows: int
    date: str | None
    statistics: dict[str, tuple[int, int]]
    nulls: dict[str, int]


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """The outcome of ranges that belong into one file, which is None if they have no message."""

    file: NewFile | None
    ranges: tuple[RangeOutcome, ...]


def write_files(
    partitions: Iterator[tuple[Piece, ...]], settings: WriteSettings
) -> Iterator[TaskOutcome]:
    """Write the pieces of a task's partitions.

    A fault of a recording is an outcome, not a failed task: a retry would not help, and the other
    recordings are converted. A fault of the output fails the task, which Spark may retry.
    """
    for partition in partitions:
        for group in _files(partition):
            yield _write(group, settings)


def _files(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Group pieces by the file they belong into."""
    shared: dict[tuple[str | None, int | None], list[Piece]] = {}
    for piece in pieces:
        if piece.is_whole and piece.part.length <= _SMALL:
            # In one file recording ids ascend.
            shared.setdefault((piece.date, piece.part.imported_from), []).append(piece)
        else:
            yield [piece]
    yield from shared.values()


def _write(pieces: Sequence[Piece], settings: WriteSettings) -> TaskOutcome:
    reader = TableReader(
        settings.selection,
        settings.payloads,
        batch_rows=_ROW_GROUP_ROWS,
        batch_bytes=ROW_GROUP_BYTES,
    )
    date = pieces[0].date
    file = ParquetFile(settings.store, settings.path([piece.part for piece in pieces], date))
    outcomes: list[RangeOutcome] = []
    try:
        for part, scanned in scans(reader, [piece.part for piece in pieces]):
            try:
                outcomes.append(_add(part, scanned, file, settings, alone=len(pieces) == 1))
            except AerotapeError as error:
                outcomes.append(RangeOutcome(part, error=str(error)))
                if len(pieces) == 1:
                    file.abandon()
        metadata = recordings_metadata(outcomes, settings.identities)
        return TaskOutcome(file.finish(date, metadata), tuple(outcomes))
    finally:
        file.abandon()


def _add(
    part: RecordingRange,
    scanned: Callable[[], Scanned],
    file: ParquetFile,
    settings: WriteSettings,
    *,
    alone: bool,
) -> RangeOutcome:
    """Write a range; one that shares its file is read to its end first, as it may fail."""
    from pyarrow import compute

    scan, batches = scanned()
    rows = payload_bytes = 0
    position = end_position = part.from_position
    for batch in batches if alone else list(batches):
        rows += batch.num_rows
        payload_bytes += compute.sum(batch.column("length")).as_py()
        position, end_position = (
            batch.column(name)[-1].as_py() for name in ("position", "end_position")
        )
        file.add(batch)
    unfinished = scan.unfinished_fragments
    return RangeOutcome(
        # The next job begins with the message that had not ended.
        part.part(part.from_position, end_position) if unfinished else part,
        rows,
        payload_bytes,
        scan.skipped_fragments,
        scan.dropped_messages,
        unfinished,
        None if rows == 0 else LastRead.at(part, position, end_position),
    )


def unique_path(date: str | None, job_id: str) -> str:
    """Return a name for a new file that no other file has."""
    return _in_partition(f"part-{job_id}-{uuid.uuid4().hex}.parquet", date)


def is_unique_path(path: str) -> bool:
    """Return whether a path is one of `unique_path`."""
    return _UNIQUE.fullmatch(path) is not None


def path_by_content(parts: Sequence[RecordingRange], date: str | None) -> str:
    """Name a file by the ranges in it."""
    first, last = parts[0], parts[-1]
    name = f"part-{first.key:010d}-{first.from_position:019d}"
    if len(parts) > 1:
        name += f"-{last.key:010d}"
    name += f"-{sum(part.to_position for part in parts):x}.parquet"
    return _in_partition(name, date)


def _in_partition(name: str, date: str | None) -> str:
    return name if date is None else f"date={date}/{name}"


def recordings_metadata(
    outcomes: Iterable[RangeOutcome], identities: Mapping[int, int]
) -> dict[str, str]:
    """Return the key-value metadata of a file: which positions of which recordings it has."""
    recordings = [
        {
            "recording_id": outcome.part.key,
            "identity": identities[outcome.part.key],
            "range": outcome.part.positions,
            "last_message": None if outcome.last is None else dataclasses.astuple(outcome.last),
        }
        for outcome in outcomes
        if outcome.error is None
    ]
    return {"aerotape.version": __version__, RECORDINGS_KEY: json.dumps(recordings)}


class ParquetFile:
    """A Parquet file that appears under its name when it is finished.

    Batches are gathered into row groups. Without batches there is no file.
    """

    def __init__(self, store: OutputStore, path: str) -> None:
        """Write nothing yet."""
        self._store = store
        self._path = path
        self._stack = ExitStack()
        self._writer: Any = None
        self._stream: Any = None
        self._pending: list[pyarrow.RecordBatch] = []
        self._pending_bytes = 0
        self._rows = 0
        self._statistics: dict[str, tuple[int, int]] = {}
        self._nulls: dict[str, int] = {}

    def add(self, batch: pyarrow.RecordBatch) -> None:
        """Add rows; their recording ids and positions ascend (OSError)."""
        from pyarrow import compute

        if not batch.num_rows:
            return
        for name in set(STATISTICS).intersection(batch.schema.names):
            column = batch.column(name)
            self._nulls[name] = self._nulls.get(name, 0) + column.null_count
            found = compute.min_max(column.cast("int64")).as_py()
            if found["min"] is not None:
                low, high = self._statistics.get(name, (found["min"], found["max"]))
                self._statistics[name] = (min(low, found["min"]), max(high, found["max"]))
        self._rows += batch.num_rows
        self._pending.append(batch)
        self._pending_bytes += batch.nbytes
        pending_rows = sum(each.num_rows for each in self._pending)
        if self._pending_bytes >= ROW_GROUP_BYTES or pending_rows >= _ROW_GROUP_ROWS:
            self._flush()

    def finish(self, date: str | None, metadata: dict[str, str]) -> NewFile | None:
        """Write what is left and let the file appear (OSError); None without rows."""
        self._flush()
        if self._writer is None:
            return None
        with self._store.writing(self._path):
            self._writer.add_key_value_metadata(metadata)
            self._writer.close()
        size = self._stream.tell()
        self._stack.close()
        self._writer = None
        return NewFile(self._path, size, self._rows, date, self._statistics, self._nulls)

    def abandon(self) -> None:
        """Delete an unfinished file. Idempotent, and without effect after `finish`."""
        self._pending.clear()
        if self._writer is None:
            return
        self._writer = None
        # The file is deleted by the stream's context, as for any error.
        self._stack.__exit__(AerotapeError, AerotapeError("abandoned"), None)

    def _flush(self) -> None:
        import pyarrow

        if not self._pending:
            return
        table = pyarrow.Table.from_batches(self._pending).combine_chunks()
        self._pending, self._pending_bytes = [], 0
        if self._writer is None:
            self._open(table)
        with self._store.writing(self._path):
            self._writer.write_table(table, row_group_size=table.num_rows)

    def _open(self, first: pyarrow.Table) -> None:
        from pyarrow import parquet

        self._stream = self._stack.enter_context(self._store.new_file(self._path))
        schema = first.schema
        leaves = _leaves(schema)
        self._writer = parquet.ParquetWriter(
            self._stream,
            schema,
            compression="zstd",
            compression_level={
                name: payload_level(first.column(name)) if name == "payload" else _LEVEL
                for name in leaves
            },
            use_dictionary=[
                name for name in leaves if name.partition(".")[0] not in _WITHOUT_DICTIONARY
            ],
            column_encoding={
                name: encoding for name, encoding in _ENCODINGS.items() if name in leaves
            },
            write_statistics=[name for name in leaves if name != "payload"],
            sorting_columns=[
                parquet.SortingColumn(schema.get_field_index(name)) for name in _SORTED
            ],
        )


def payload_level(payloads: pyarrow.ChunkedArray) -> int:
    """Choose zstd's level for payloads by trying two on some of them.

    The faster one leaves out the entropy coding. Numbers that are nearly random, or compressed
    payloads, become as small with it in two thirds of the time.
    """
    import pyarrow

    data = payloads.chunk(0).buffers()[-1]
    if data is None or not data.size:
        return _LEVEL
    sample = data.slice(0, min(data.size, _SAMPLE_BYTES))
    size, fast_size = (
        len(pyarrow.Codec("zstd", level).compress(sample)) for level in (_LEVEL, _FAST_LEVEL)
    )
    return _FAST_LEVEL if fast_size <= size * _SIMILAR else _LEVEL


def _leaves(schema: pyarrow.Schema) -> list[str]:
    """Name the columns as Parquet sees them: those of structs and lists by their paths."""
    return [path for field in schema for path in _paths(field)]


def _paths(field: pyarrow.Field) -> list[str]:
    import pyarrow

    kind = field.type
    if pyarrow.types.is_struct(kind):
        return [f"{field.name}.{path}" for child in kind for path in _paths(child)]
    if pyarrow.types.is_list(kind):
        inner = kind.value_field.with_name("element")
        return [f"{field.name}.list.{path}" for path in _paths(inner)]
    return [str(field.name)]
