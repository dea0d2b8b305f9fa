"""The Parquet job without Spark, and a store that dies at a chosen operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Never

from pyarrow import dataset

from aerotape.replay.offline.directory import open_directory
from aerotape.replay.offline.reader import read_messages
from aerotape.spark.parquet.job import JobReport, ParquetJob, RecordingReport
from aerotape.spark.parquet.plan import JobOptions
from aerotape.spark.parquet.store import OutputStore
from aerotape.spark.parquet.task_runner import OnDone, Partition
from aerotape.spark.parquet.writer import FILE_COLUMNS, RangeOutcome, WriteSettings, write_ranges
from aerotape.spark.source.options import ReadOptions


class TasksHere:
    """Runs tasks one after the other in this process."""

    parallelism = 1

    def run(
        self, partitions: Sequence[Partition], settings: WriteSettings, on_done: OnDone | None
    ) -> list[RangeOutcome]:
        return list(write_ranges(iter(partitions), settings))


class Killed(BaseException):
    """What the process would not have lived to see."""


class MortalStore(OutputStore):
    """A store that changes nothing any more from a chosen operation on.

    Attributes:
        lives: operations that are still done; None for all.
        last: the operation that was not.
    """

    lives: int | None = None
    last = ""

    def _strike(self, what: str, path: str) -> None:
        if self.lives is None:
            return
        self.lives -= 1
        if self.lives < 0:
            self.last = self.last or f"{what} {path}"
            raise Killed(self.last)

    def make_folder(self, path: str = "") -> None:
        self._strike("make", path)
        super().make_folder(path)

    @contextmanager
    def new_file(self, path: str) -> Iterator[Any]:
        try:
            self._strike("write", path)
        except Killed:
            if self.lives == -1 and not self.puts_whole:
                self.local_path(path).write_bytes(b"PAR1 and not more")
            raise
        with super().new_file(path) as stream:
            yield stream

    def _put(self, path: str, data: bytes) -> None:
        self._strike("write", path)
        super()._put(path, data)

    def move(self, source: str, target: str) -> None:
        self._strike("move", target)
        super().move(source, target)

    def link(self, source: str, target: str) -> None:
        self._strike("link", target)
        super().link(source, target)

    def exchange(self, one: str, other: str) -> None:
        self._strike("exchange", other)
        super().exchange(one, other)

    def sync_folder(self, path: str) -> None:
        self._strike("sync", path)
        super().sync_folder(path)

    def delete_file(self, path: str) -> None:
        self._strike("delete", path)
        super().delete_file(path)

    def delete_folder(self, path: str) -> None:
        self._strike("delete", path)
        super().delete_folder(path)


class MortalObjects(MortalStore):
    """The same with the ways of an object store: no folder is renamed, no second names."""

    @property
    def is_local(self) -> bool:
        return False

    @property
    def is_object_store(self) -> bool:
        return True

    @property
    def puts_whole(self) -> bool:
        return True

    @property
    def renames_folders(self) -> bool:
        return False

    def link(self, source: str, target: str) -> Never:
        raise AssertionError("an object store has no second names")

    def exchange(self, one: str, other: str) -> Never:
        raise AssertionError("an object store does not rename")


class MortalBlobs(MortalObjects):
    """The same with the ways of Azure: what is opened is empty, what is moved is copied."""

    def __init__(self, filesystem: Any, root: str) -> None:
        super().__init__(filesystem, root)
        self._filesystem = self._Blobs(self, filesystem)

    @property
    def puts_whole(self) -> bool:
        return False

    class _Blobs:
        def __init__(self, store: MortalBlobs, filesystem: Any) -> None:
            self._store, self._filesystem = store, filesystem

        def move(self, source: str, target: str) -> Never:
            raise NotImplementedError

        def copy_file(self, source: str, target: str) -> None:
            self._filesystem.copy_file(source, target)
            self._store._strike("delete source of", target)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._filesystem, name)


def run_here(
    archive_dir: Path, out: Path | OutputStore, *, partition_bytes: int = 64 << 10, **options: Any
) -> JobReport:
    """Run the job in this process, by default with a file for each term."""
    read_names = {
        "recording_ids", "from_position", "to_position", "checksum", "mode", "payloads",
    }  # fmt: skip
    read = ReadOptions(
        archive_dir=str(archive_dir),
        partition_bytes=partition_bytes,
        **{name: value for name, value in options.items() if name in read_names},
    )
    others = {name: value for name, value in options.items() if name not in read_names}
    with ParquetJob(JobOptions(read=read, **others), out, TasksHere()) as job:
        return job.run()


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """Read a folder of Parquet files, as it comes."""
    rows: list[dict[str, Any]] = dataset.dataset(folder, format="parquet").to_table().to_pylist()
    return rows


def positions_of(out: Path, recording_id: int) -> list[int]:
    """Read the positions of a recording's messages from a table, ascending; pyarrow's view."""
    folder = out / f"recording_id={recording_id}"
    return sorted(row["position"] for row in rows_of(folder)) if folder.exists() else []


def expected_rows(archive_dir: Path, recording_id: int) -> list[dict[str, Any]]:
    """What our own reader says that a recording's files should hold."""
    recording = open_directory(archive_dir).recording(recording_id)
    rows = [{**m._asdict(), "length": m.length} for m in read_messages(recording)]
    return [{name: row[name] for name in FILE_COLUMNS} for row in rows]


def expected_positions(archive_dir: Path, recording_id: int) -> list[int]:
    """Where our own reader finds the messages of a recording."""
    recording = open_directory(archive_dir).recording(recording_id)
    return [message.position for message in read_messages(recording)]


def only(archive_dir: Path, out: Path, **options: Any) -> RecordingReport:
    """Run the job over a directory with one recording."""
    [report] = run_here(archive_dir, out, **options).recordings
    return report
