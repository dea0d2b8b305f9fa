"""Tasks of the Parquet job: each scans a range and writes it as one Parquet file.

Rows do not pass through the JVM: a task goes from segment files to Arrow to Parquet in one
process. It writes to a temporary name; the driver puts files in place (`commit`). So a task that
fails, is repeated or runs twice leaves nothing in the table.

A row group is one batch of the scan, limited in rows and in bytes of payload, so a task's memory
depends neither on the recording nor on the size of its messages.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from aerotape import __version__
from aerotape.errors import AerotapeError
from aerotape.replay.offline.reader import RecordingRange
from aerotape.replay.offline.table import TableReader, table_columns
from aerotape.spark.parquet.store import OutputStore

if TYPE_CHECKING:
    import pyarrow

    from aerotape._native import ChecksumName
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.replay.offline.payload_columns import PayloadColumns
    from aerotape.replay.offline.read_mode import Mode


def file_columns(mode: Mode = "FAILFAST", payloads: PayloadColumns | None = None) -> list[str]:
    """Return the columns in a file.

    The recording id is the folder's name, as in any partitioned table.
    """
    return [name for name in table_columns(mode, payloads) if name != "recording_id"]


FILE_COLUMNS: Final = tuple(file_columns())
"""The columns without typed ones, in mode FAILFAST."""

_ROW_GROUP_ROWS: Final = 1 << 20
_ROW_GROUP_BYTES: Final = 64 << 20

_LEVEL: Final = 1
_FAST_LEVEL: Final = -1
_AS_SMALL: Final = 1.01
_SAMPLE_BYTES: Final = 1 << 20

# Positions grow steadily and lengths repeat: delta encoding is small, and dictionaries are not.
_ENCODINGS: Final = {
    "position": "DELTA_BINARY_PACKED",
    "end_position": "DELTA_BINARY_PACKED",
    "term_offset": "DELTA_BINARY_PACKED",
    "reserved_value": "DELTA_BINARY_PACKED",
    "length": "DELTA_BINARY_PACKED",
}
_OWN_WITHOUT_DICTIONARY: Final = frozenset({*_ENCODINGS, "payload"})


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """Settings of all tasks of a job.

    Attributes:
        store: the table's folder.
        attempts: where tasks write, a folder for each recording, by its id.
        checksum: the checksum to verify frames with.
        mode: treatment of messages with a frame that fails it, and of malformed payloads.
        payloads: typed columns, if any.
        metadata: key-value metadata of each recording's files, by recording id.
    """

    store: OutputStore
    attempts: dict[int, str]
    checksum: ChecksumName
    metadata: dict[int, dict[str, str]]
    mode: Mode = "FAILFAST"
    payloads: PayloadColumns | None = None


@dataclass(frozen=True, slots=True)
class RangeOutcome:
    """The outcome of one range.

    Attributes:
        part: the range; it ends where an unfinished message begins, if there is one.
        path: the file, or None if there is no message or the range failed.
        rows: messages in it.
        payload_bytes: bytes of their payloads.
        file_bytes: length of the file.
        columns: the file's columns and their Arrow types.
        skipped_fragments: fragments that belong to no whole message.
        dropped_messages: messages with a frame that failed its checksum, where the mode drops them.
        unfinished_fragments: fragments of a message that had not ended at the range's limit.
        error: why it failed, or None.
    """

    part: RecordingRange
    path: str | None = None
    rows: int = 0
    payload_bytes: int = 0
    file_bytes: int = 0
    columns: dict[str, str] = field(default_factory=dict)
    skipped_fragments: int = 0
    dropped_messages: int = 0
    unfinished_fragments: int = 0
    error: str | None = None


def write_ranges(
    partitions: Iterator[tuple[RecordingRange, ...]], settings: WriteSettings
) -> Iterator[RangeOutcome]:
    """Write each range of a task's partitions to a separate file.

    Damage to a recording is an outcome, not a failed task: a retry would not help, and other
    recordings are to be converted. A failure to write is a failed task, which Spark may retry.
    """
    for partition in partitions:
        for part in partition:
            try:
                yield _write_range(part, settings)
            except AerotapeError as error:
                yield RangeOutcome(part, error=str(error))


def _write_range(part: RecordingRange, settings: WriteSettings) -> RangeOutcome:
    import pyarrow
    from pyarrow import compute, parquet

    scan, batches = TableReader(
        file_columns(settings.mode, settings.payloads),
        settings.checksum,
        mode=settings.mode,
        payloads=settings.payloads,
        batch_rows=_ROW_GROUP_ROWS,
        batch_bytes=_ROW_GROUP_BYTES,
    ).scan(part)
    metadata = {
        **settings.metadata[part.recording_id],
        "aerotape.from_position": str(part.from_position),
        "aerotape.to_position": str(part.to_position),
    }
    schema = batches.schema.with_metadata(metadata)
    first = next(batches, None)
    path = None
    rows = payload_bytes = file_bytes = 0
    end_position = part.from_position
    if first is not None:
        # Two attempts at one range, one perhaps still running, must not share a file. Patterns for
        # Parquet files do not match the name.
        path = f"{settings.attempts[part.recording_id]}/{part.from_position}-{uuid.uuid4().hex}"
        with settings.store.new_file(path) as stream:
            with parquet.ParquetWriter(
                stream,
                schema,
                compression="zstd",
                compression_level={
                    name: payload_level(first.column(name)) if name == "payload" else _LEVEL
                    for name in _leaves(schema)
                },
                use_dictionary=_dictionary_columns(schema),
                column_encoding=_ENCODINGS,
                write_statistics=[name for name in _leaves(schema) if name != "payload"],
                sorting_columns=[parquet.SortingColumn(schema.get_field_index("position"))],
            ) as writer:
                for batch in itertools.chain([first], batches):
                    rows += batch.num_rows
                    payload_bytes += compute.sum(batch.column("length")).as_py()
                    end_position = batch.column("end_position")[-1].as_py()
                    table = pyarrow.Table.from_batches([batch])
                    writer.write_table(table, row_group_size=batch.num_rows)
            file_bytes = stream.tell()
    unfinished = scan.unfinished_fragments
    return RangeOutcome(
        # The next job begins with the message that had not ended.
        part.part(part.from_position, end_position) if unfinished else part,
        path=path,
        rows=rows,
        payload_bytes=payload_bytes,
        file_bytes=file_bytes,
        columns={field.name: str(field.type) for field in schema},
        skipped_fragments=scan.skipped_fragments,
        dropped_messages=scan.dropped_messages,
        unfinished_fragments=unfinished,
    )


def payload_level(payloads: pyarrow.Array) -> int:
    """Choose zstd's level for payloads by a trial on some of them.

    The fast level omits entropy coding. For nearly random or compressed payloads the result is as
    small, in two thirds of the time.
    """
    import pyarrow

    data = payloads.buffers()[-1]
    if data is None or not data.size:
        return _LEVEL
    sample = data.slice(0, min(data.size, _SAMPLE_BYTES))
    size, fast_size = (
        len(pyarrow.Codec("zstd", level).compress(sample)) for level in (_LEVEL, _FAST_LEVEL)
    )
    return _FAST_LEVEL if fast_size <= size * _AS_SMALL else _LEVEL


def _dictionary_columns(schema: pyarrow.Schema) -> list[str]:
    return [
        name for name in _leaves(schema) if name.partition(".")[0] not in _OWN_WITHOUT_DICTIONARY
    ]


def _leaves(schema: pyarrow.Schema) -> list[str]:
    """Return the names of Parquet's leaf columns: in structs and lists, their paths."""
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


def key_value_metadata(
    descriptor: RecordingDescriptor, payloads: PayloadColumns | None
) -> dict[str, str]:
    """Return the key-value metadata of a recording's files."""
    metadata = {
        "aerotape.version": __version__,
        "aerotape.recording": json.dumps(dataclasses.asdict(descriptor)),
    }
    if payloads is not None:
        metadata["aerotape.payload_schema"] = json.dumps(described(payloads))
    return metadata


def described(payloads: PayloadColumns) -> dict[str, object]:
    """Describe the source of typed columns as a JSON object."""
    plan = payloads.schema.plan
    return {
        "schema_id": plan.schema_id,
        "messages": {message.name: message.template_id for message in plan.messages},
        "others": payloads.others,
        "columns": {field.name: str(field.type) for field in payloads.arrow_schema},
    }
