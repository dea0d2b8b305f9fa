"""What one task of the Parquet job does: scan a range and write it as one Parquet file.

Rows do not pass through the JVM: a task goes from segment files to Arrow to Parquet in one
process. It writes where no reader looks; the driver puts files in place (`parquet_job`). So a
task that fails, is repeated or runs twice leaves nothing to be seen.

A row group is one batch of the scan. It ends by rows or by bytes of payload, so a task's memory
depends neither on the recording nor on the size of its messages.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.errors import AerotapeError
from aerotape.replay.reader import RecordingRange, arrow_batches
from aerotape.spark.options import MESSAGE_COLUMNS

if TYPE_CHECKING:
    from aerotape._native import ChecksumName

FILE_COLUMNS: Final = tuple(name for name in MESSAGE_COLUMNS if name != "recording_id")
"""Columns in a file. The recording id is the folder's name, as readers of partitioned tables
expect; a column of the same name inside would clash with it."""

_ROW_GROUP_ROWS: Final = 1 << 20
_ROW_GROUP_BYTES: Final = 64 << 20

# Positions grow steadily and lengths repeat: differences pack well, dictionaries only cost.
_ENCODINGS: Final = {
    "position": "DELTA_BINARY_PACKED",
    "end_position": "DELTA_BINARY_PACKED",
    "term_offset": "DELTA_BINARY_PACKED",
    "reserved_value": "DELTA_BINARY_PACKED",
    "length": "DELTA_BINARY_PACKED",
}
_DICTIONARIES: Final = ("stream_id", "session_id", "term_id", "flags")
_STATISTICS: Final = tuple(name for name in FILE_COLUMNS if name != "payload")


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """What all tasks of a job share.

    Attributes:
        attempts_dir: where tasks write, a folder for each recording.
        checksum: which checksum frames are verified with.
        metadata: key-value metadata of each recording's files, by recording id.
    """

    attempts_dir: str
    checksum: ChecksumName
    metadata: dict[int, dict[str, str]]


@dataclass(frozen=True, slots=True)
class RangeOutcome:
    """What became of one range.

    Attributes:
        path: the file, or None when it failed.
        rows: messages in it.
        payload_bytes: bytes of their payloads.
        file_bytes: length of the file.
        skipped_fragments: fragments that belong to no whole message.
        unfinished_fragments: fragments of a message that had not ended at the limit.
        error: why it failed, or None.
    """

    recording_id: int
    from_position: int
    to_position: int
    path: str | None
    rows: int = 0
    payload_bytes: int = 0
    file_bytes: int = 0
    skipped_fragments: int = 0
    unfinished_fragments: int = 0
    error: str | None = None


def write_ranges(
    partitions: Iterator[tuple[RecordingRange, ...]], settings: WriteSettings
) -> Iterator[RangeOutcome]:
    """Write each range of a task's partitions to a file of its own.

    What is wrong with a recording is an outcome, not a failed task: trying again would not help,
    and other recordings shall be converted. Whatever else goes wrong is left to Spark.
    """
    for partition in partitions:
        for part in partition:
            try:
                yield _write_range(part, settings)
            except AerotapeError as error:
                yield RangeOutcome(
                    part.recording_id, part.from_position, part.to_position, None, error=str(error)
                )


def _write_range(part: RecordingRange, settings: WriteSettings) -> RangeOutcome:
    import pyarrow
    from pyarrow import compute, parquet

    folder = Path(settings.attempts_dir) / str(part.recording_id)
    folder.mkdir(parents=True, exist_ok=True)
    # Two attempts at one range, one perhaps still running, must not share a file.
    path = folder / f"part-{part.from_position:019d}-{uuid.uuid4().hex[:8]}.parquet"
    scan = part.scan(
        FILE_COLUMNS,
        settings.checksum,
        batch_rows=_ROW_GROUP_ROWS,
        batch_bytes=_ROW_GROUP_BYTES,
    )
    metadata = {
        **settings.metadata[part.recording_id],
        "aerotape.from_position": str(part.from_position),
        "aerotape.to_position": str(part.to_position),
    }
    schema = pyarrow.schema(scan.schema).with_metadata(metadata)
    payload_bytes = 0
    try:
        with parquet.ParquetWriter(
            path,
            schema,
            compression="zstd",
            use_dictionary=list(_DICTIONARIES),
            column_encoding=_ENCODINGS,
            write_statistics=list(_STATISTICS),
            sorting_columns=[parquet.SortingColumn(schema.get_field_index("position"))],
        ) as writer:
            for batch in arrow_batches(scan):
                payload_bytes += compute.sum(batch.column("length")).as_py()
                table = pyarrow.Table.from_batches([batch])
                writer.write_table(table, row_group_size=batch.num_rows)
        with path.open("rb") as written:
            os.fsync(written.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return RangeOutcome(
        recording_id=part.recording_id,
        from_position=part.from_position,
        to_position=part.to_position,
        path=str(path),
        rows=scan.rows,
        payload_bytes=payload_bytes,
        file_bytes=path.stat().st_size,
        skipped_fragments=scan.skipped_fragments,
        unfinished_fragments=scan.unfinished_fragments,
    )
