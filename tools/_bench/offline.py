"""Measure scan, verify and Parquet conversion of a recording, without an archive."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aerotape.catalog.maintenance.verify import run_verification
from aerotape.errors import AerotapeError
from aerotape.replay.offline.directory import open_directory
from aerotape.tools._bench.measurement import timed

if TYPE_CHECKING:
    from aerotape._native import ChecksumName
    from aerotape.replay.offline.directory import Recording
    from aerotape.spark.tables.task_runner import TaskRunner


def scan(recording: Recording, **arguments: Any) -> int:
    """Return the number of messages in the batches of `Recording.to_batches`."""
    return sum(batch.num_rows for batch in recording.to_batches(**arguments))


class WrittenArchive:
    """An archive directory with one recording."""

    def __init__(self, archive_dir: Path, messages: int) -> None:
        """Use a directory whose recording has this number of messages."""
        self._archive_dir = archive_dir
        self._messages = messages

    def scan(
        self, columns: tuple[str, ...] | None = None, checksum: ChecksumName = "none"
    ) -> float:
        """Read the recording into Arrow on one processor; return the seconds."""
        recording = open_directory(self._archive_dir).recording(0)
        found = 0

        def read() -> None:
            nonlocal found
            found = scan(recording, columns=columns, checksum=checksum)

        seconds = timed(read)
        self._check("scan", found)
        return seconds

    def verify(self, checksum: ChecksumName = "none") -> float:
        """Verify all frames on all processors; return the seconds."""
        directory = open_directory(self._archive_dir)
        checks = []
        seconds = timed(
            lambda: checks.extend(
                run_verification(directory, all_segments=True, checksum=checksum).checks
            )
        )
        if not all(check.ok for check in checks):
            raise AerotapeError(f"verify found damage: {checks[0].problems[0].detail}")
        return seconds

    def convert(self, out: Path, tasks: TaskRunner) -> float:
        """Convert the recording to Parquet in the Spark session; return the seconds."""
        from aerotape.spark.source.options import ReadOptions
        from aerotape.spark.tables.folder import ParquetFolder
        from aerotape.spark.tables.job import TableJob
        from aerotape.spark.tables.plan import JobOptions

        options = JobOptions(read=ReadOptions(archive_dir=str(self._archive_dir.absolute())))
        try:
            with TableJob(options, ParquetFolder(out), tasks) as job:
                report = job.run()
        finally:
            shutil.rmtree(out, ignore_errors=True)
        self._check("parquet", report.total("messages"))
        return report.elapsed_s

    def _check(self, what: str, found: int) -> None:
        if found != self._messages:
            raise AerotapeError(f"{what} found {found} messages, expected {self._messages}")
