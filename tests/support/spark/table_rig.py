"""Table jobs without Spark, on both kinds of table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow
from pyarrow import dataset

from aerotape.replay.offline.directory import open_directory
from aerotape.spark.source.options import ReadOptions
from aerotape.spark.tables.delta import DeltaRecordingTable
from aerotape.spark.tables.folder import ParquetFolder
from aerotape.spark.tables.job import JobReport, TableJob
from aerotape.spark.tables.plan import JobOptions
from aerotape.spark.tables.table import Table
from aerotape.spark.tables.task_runner import OnDone, Partition
from aerotape.spark.tables.writer import TaskOutcome, WriteSettings, write_files
from support.builders.timed_directory import recorded_time

Kind = Literal["folder", "delta"]
KINDS: tuple[Kind, ...] = ("folder", "delta")
_READ_NAMES = frozenset(
    {"recording_ids", "scope_ids", "from_position", "to_position", "checksum", "mode", "payloads"}
)


class TasksHere:
    """Runs tasks one after the other in this process."""

    parallelism = 1

    def run(
        self, partitions: Sequence[Partition], settings: WriteSettings, on_done: OnDone | None
    ) -> list[TaskOutcome]:
        return list(write_files(iter(partitions), settings))


def options(archive_dir: Path, partition_bytes: int = 64 << 10, **others: Any) -> JobOptions:
    """Return a job's options; the arguments include those for reading."""
    read = ReadOptions(
        archive_dir=str(archive_dir),
        partition_bytes=partition_bytes,
        **{name: value for name, value in others.items() if name in _READ_NAMES},
    )
    return JobOptions(
        read=read, **{name: value for name, value in others.items() if name not in _READ_NAMES}
    )


def table_of(kind: Kind, out: Path, by_date: bool = False) -> Table:
    """Open a table of a kind."""
    kind_of = DeltaRecordingTable if kind == "delta" else ParquetFolder
    return kind_of(out, by_date=by_date)


def run_here(kind: Kind, archive_dir: Path, out: Path, **others: Any) -> JobReport:
    """Run a job in this process; tasks have a term's length by default."""
    table = table_of(kind, out, bool(others.get("by_date")))
    with TableJob(options(archive_dir, **others), table, TasksHere()) as job:
        return job.run()


def rows_of(kind: Kind, out: Path) -> list[dict[str, Any]]:
    """Read a table with a third-party reader, sorted by recording and position."""
    if kind == "delta":
        from deltalake import DeltaTable

        table = pyarrow.table(DeltaTable(out).to_pyarrow_table())
    else:
        table = dataset.dataset(out, format="parquet", partitioning="hive").to_table()
    rows: list[dict[str, Any]] = table.sort_by(
        [("recording_id", "ascending"), ("position", "ascending")]
    ).to_pylist()
    for row in rows:
        row.pop("date", None)
    return rows


def expected_rows(archive_dir: Path) -> list[dict[str, Any]]:
    """Return the rows that our reader returns for all recordings."""
    return [
        {
            **message._asdict(),
            "length": message.length,
            "recorded_time": recorded_time(recording.time_index.points, message.position),
        }
        for recording in open_directory(archive_dir).recordings()
        for message in recording.messages()
    ]
