"""The watch loop of a table job: rounds on one table until an interrupt ends them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final

from aerotape.spark.tables.job import JobReport, OnProgress, RecordingReport, TableJob
from aerotape.spark.tables.plan import JobOptions
from aerotape.spark.tables.table import Table
from aerotape.spark.tables.task_runner import SparkTasks

SUMS: Final = ("messages", "recording_bytes", "payload_bytes", "parquet_bytes", "files")
"""Figures of a `JobReport` that are summed over rounds."""


@dataclass
class WatchReport:
    """The outcome of all rounds so far.

    Attributes:
        totals: sums of the fields `SUMS` over all rounds.
    """

    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SUMS, 0))
    _last: dict[int, RecordingReport] = field(default_factory=dict)
    _warned: set[int] = field(default_factory=set)

    def add(self, report: JobReport) -> None:
        """Add a round."""
        for name in SUMS:
            self.totals[name] += report.total(name)
        for recording in report.recordings:
            self._last[recording.key] = recording
            if recording.result == "replaced":  # suspect rows were replaced
                self._warned.discard(recording.key)
            if recording.warnings:
                self._warned.add(recording.key)

    @property
    def suspect(self) -> list[int]:
        """Keys of recordings with warnings in any round, or an error in their last round."""
        failed = (id for id, recording in self._last.items() if recording.error is not None)
        return sorted(self._warned.union(failed))

    @property
    def gone(self) -> set[int]:
        """Keys of recordings that are no longer in the archive."""
        return {id for id, recording in self._last.items() if recording.result == "gone"}


def watch(
    options: JobOptions,
    table: Table,
    tasks: SparkTasks,
    interval_s: float,
    *,
    progress: Callable[[], AbstractContextManager[OnProgress]],
    on_round: Callable[[JobReport], None],
) -> WatchReport:
    """Convert new messages in rounds.

    Ends at KeyboardInterrupt, or when all recordings that `options` name by id are gone.

    Args:
        options: what to convert, and how.
        table: where the rows go.
        tasks: stopped when the loop ends.
        interval_s: seconds between two rounds.
        progress: enters the display of one round's progress.
        on_round: called with the report of each round.

    Raises:
        AerotapeError: as for `aerotape.spark.tables.job.convert`.
    """
    total = WatchReport()
    try:
        with TableJob(options, table, tasks) as job, tasks:
            while True:
                with progress() as on_progress:
                    report = job.run(on_progress)
                # `on_round` may raise KeyboardInterrupt.
                total.add(report)
                on_round(report)
                if total.gone.issuperset(options.read.recording_ids or [None]):
                    break
                time.sleep(interval_s)
    except KeyboardInterrupt:  # also SIGTERM
        pass
    return total
