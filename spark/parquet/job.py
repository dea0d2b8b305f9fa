"""The Parquet job: recordings of an archive directory to a Parquet table, one folder each.

    OUT/recording_id=3/part-0000000000000000000-1f0c9a77.parquet
    OUT/recording_id=3/_manifest.json

A job compares each recording with its manifest and converts what the table does not have (`plan`).
Tasks write to temporary files (`writer`), the driver makes all new files of a recording visible at
once (`commit`). Recordings are committed in batches, so an interrupted job keeps the batches that
were done. Only one job at a time writes to a table (`lock`).

A recording that cannot be read to its end is left out, and named in the report.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Self

from aerotape.errors import StorageError
from aerotape.replay.offline.directory import Recording
from aerotape.replay.offline.reader import RecordingRange
from aerotape.spark.parquet.commit import Committer
from aerotape.spark.parquet.dates import cut_at_midnight, date_at, dates_problem, recorded_times
from aerotape.spark.parquet.fingerprint import fingerprints
from aerotape.spark.parquet.lock import TableLock, locked
from aerotape.spark.parquet.manifest import FileEntry, Fingerprint, Manifest, joined
from aerotape.spark.parquet.plan import Action, JobOptions, Planner, RecordingPlan
from aerotape.spark.parquet.store import OutputStore
from aerotape.spark.parquet.task_runner import Partition, SparkTasks, TaskRunner
from aerotape.spark.parquet.writer import RangeOutcome, WriteSettings, key_value_metadata
from aerotape.spark.source.planning import plan_partitions

_PARTITIONS_PER_CORE: Final = 8
_RESULTS: Final = {
    Action.CONVERT: "converted",
    Action.RECONVERT: "converted anew",
    Action.NOTHING: "up to date",
    Action.WAIT: "waiting for more",
    Action.REFUSE: "left out",
}

OnProgress = Callable[[int, int], None]
"""Called with the number of tasks that are done, and of all."""


@dataclass(frozen=True, slots=True)
class RecordingReport:
    """The outcome of one recording. Figures are of this job, not of the whole table.

    Attributes:
        recording_id: its id.
        result: "converted", "converted anew", "up to date", "waiting for more" or "left out"; in a
            job of several rounds "gone", once, when it is no longer in the archive.
        messages: rows written.
        recording_bytes: bytes of the recording that were read.
        payload_bytes: bytes of the messages' payloads.
        parquet_bytes: length of the files together.
        files: how many.
        to_position: end of what the table has of the recording; None when it has nothing.
        warnings: reasons why rows are suspect.
        error: why nothing was written, or None.
    """

    recording_id: int
    result: str
    messages: int = 0
    recording_bytes: int = 0
    payload_bytes: int = 0
    parquet_bytes: int = 0
    files: int = 0
    to_position: int | None = None
    warnings: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class JobReport:
    """Report of one round of a job.

    Attributes:
        out_dir: the table's folder.
        recordings: one report each, by ascending id.
        elapsed_s: seconds from the start of the first task to the last commit.
    """

    out_dir: str
    recordings: list[RecordingReport]
    elapsed_s: float

    def total(self, name: str) -> int:
        """Sum a field of the recordings."""
        return sum(getattr(recording, name) for recording in self.recordings)


def convert(
    options: JobOptions,
    out: str | os.PathLike[str],
    *,
    master: str | None = None,
    on_progress: OnProgress | None = None,
    whole_log: bool = False,
) -> JobReport:
    """Convert what is recorded now to a Parquet table.

    Args:
        options: what to convert, and how.
        out: the table's folder, created when missing: a path that driver and workers see, or a URL,
            accessed with the storage options for the archive directory.
        master: Spark's master URL; None for the cores of this machine.
        on_progress: called several times a second.
        whole_log: let Spark log by its own configuration, with warnings and Java stack traces.

    Raises:
        ConfigurationError: `out` is not a folder, or its file system is unknown.
        CatalogError: the archive directory cannot be read.
        UnknownRecordingError: a selected recording does not exist.
        TableInUseError: another job is writing to `out`.
        StorageError: `out` cannot be written.
        AerotapeError: Spark does not start, or a task failed as often as Spark retries it.
    """
    tasks = SparkTasks(master, whole_log=whole_log)
    # Spark is stopped first: no task may write while the job deletes its temporary files.
    with ParquetJob(options, out, tasks) as job, tasks:
        return job.run(on_progress)


def plan_only(options: JobOptions, out: str | os.PathLike[str]) -> list[RecordingPlan]:
    """Return what `convert` would do, without changes. Raises what it would, except for Spark."""
    return Planner(options, OutputStore.open(out, options.read.storage)).plan()


class ParquetJob:
    """A job that holds a table for one or several rounds."""

    def __init__(
        self, options: JobOptions, out: str | os.PathLike[str] | OutputStore, tasks: TaskRunner
    ) -> None:
        """Check the arguments; nothing is changed before the context is entered."""
        self._options = options
        if not isinstance(out, OutputStore):
            out = OutputStore.open(out, options.read.storage)
        self._store = out
        self._tasks = tasks
        self._planner = Planner(options, self._store)
        self._committer = Committer(self._store)
        self._lock = TableLock()
        self._cleanup = ExitStack()

    def __enter__(self) -> Self:
        """Take the table's lock and complete the commits of an earlier job that was killed."""
        self._planner.recordings()  # raises before a folder is created
        self._lock = self._cleanup.enter_context(locked(self._store))
        self._cleanup.callback(self._clear_up)
        try:
            self._committer.recover()
        except BaseException:
            self._cleanup.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cleanup.close()

    def _clear_up(self) -> None:
        try:
            self._lock.check()
        except StorageError:  # lost, or perhaps
            self._committer.abandon()
        else:
            self._committer.close()

    def run(self, on_progress: OnProgress | None = None) -> JobReport:
        """Convert what is new now. Raises what `convert` does."""
        plans = self._planner.plan()
        reports: dict[int, RecordingReport] = {}
        begun_ns = time.monotonic_ns()
        busy = [plan for plan in plans if plan.ranges and plan.action is not Action.WAIT]
        if busy:
            batches = list(self._batches(busy, self._tasks.parallelism))
            begun_ns = time.monotonic_ns()  # Spark has started
            total = sum(len(partitions) for _, partitions in batches)
            done = 0
            for batch, partitions in batches:
                outcomes = self._run_batch(batch, partitions, _advance(on_progress, done, total))
                done += len(partitions)
                for plan in batch:
                    reports[id(plan)] = self._finish(
                        plan, outcomes.get(plan.recording.recording_id, [])
                    )
        for plan in plans:
            if id(plan) not in reports:
                reports[id(plan)] = self._finish(plan, [])
        self._committer.tidy()
        elapsed_s = (time.monotonic_ns() - begun_ns) / 1e9
        result = [reports[id(plan)] for plan in plans]
        result.extend(_gone_report(*each) for each in self._planner.gone(plans))
        result.sort(key=lambda report: report.recording_id)
        return JobReport(self._store.name, result, round(elapsed_s, 3))

    def _batches(
        self, plans: Sequence[RecordingPlan], parallelism: int
    ) -> Iterator[tuple[list[RecordingPlan], list[Partition]]]:
        """Group recordings that one Spark job converts, with their partitions."""
        partition_bytes = self._options.read.partition_bytes
        enough = partition_bytes * _PARTITIONS_PER_CORE * parallelism
        batch: list[RecordingPlan] = []
        for plan in plans:
            batch.append(plan)
            if sum(each.recording_bytes for each in batch) >= enough or plan is plans[-1]:
                ranges = [
                    piece
                    for each in batch
                    for part in each.ranges
                    for piece in self._dated(each.recording, part)
                ]
                yield batch, plan_partitions(ranges, partition_bytes)
                batch = []

    def _dated(self, recording: Recording, part: RecordingRange) -> list[RecordingRange]:
        if not self._options.by_date:
            return [part]
        return cut_at_midnight(part, recorded_times(recording))

    def _run_batch(
        self,
        batch: Sequence[RecordingPlan],
        partitions: Sequence[Partition],
        on_done: Callable[[int], None] | None,
    ) -> dict[int, list[RangeOutcome]]:
        ids = [plan.recording.recording_id for plan in batch]
        settings = WriteSettings(
            store=self._store,
            attempts={id: self._committer.attempts_folder(id) for id in ids},
            checksum=self._options.read.checksum,
            metadata={
                plan.recording.recording_id: key_value_metadata(
                    plan.recording.descriptor, self._options.read.payloads
                )
                for plan in batch
            },
            mode=self._options.read.mode,
            payloads=self._options.read.payloads,
        )
        outcomes: dict[int, list[RangeOutcome]] = {}
        for outcome in self._tasks.run(partitions, settings, on_done):
            outcomes.setdefault(outcome.part.recording_id, []).append(outcome)
        return outcomes

    def _finish(self, plan: RecordingPlan, outcomes: Sequence[RangeOutcome]) -> RecordingReport:
        """Commit the new files of a recording, if any, and return its report."""
        recording_id = plan.recording.recording_id
        had = None if plan.manifest is None else plan.manifest.to_position
        error = next((outcome.error for outcome in outcomes if outcome.error), None)
        if plan.action is Action.REFUSE:
            error = plan.reason
        elif plan.action in (Action.NOTHING, Action.WAIT):
            return RecordingReport(recording_id, _RESULTS[plan.action], to_position=had)
        outcomes = _up_to_unfinished(outcomes)
        taken: list[Fingerprint] = []
        if error is None:
            try:
                taken = fingerprints(plan.recording, [o.part.positions for o in outcomes])
            except StorageError as failure:
                error = f"recording {recording_id}: {failure}"
        if error is not None:
            return RecordingReport(
                recording_id, _RESULTS[Action.REFUSE], to_position=had, error=error
            )
        warnings = _warnings(plan, outcomes)
        if self._options.by_date:
            problem = dates_problem(plan.recording)
            warnings += (problem,) if problem and outcomes else ()
        new = self._new_files(plan.recording, outcomes)
        files = list(new.values())
        manifest = _next_manifest(plan, outcomes, files, taken, self._options, warnings)
        self._lock.check()
        self._committer.commit(
            recording_id,
            {entry.name: path for path, entry in new.items()},
            manifest,
            replaced=self._planner.files(recording_id) if plan.action is Action.RECONVERT else (),
        )
        self._planner.committed(recording_id, manifest)
        return RecordingReport(
            recording_id,
            _RESULTS[plan.action],
            messages=sum(outcome.rows for outcome in outcomes),
            recording_bytes=plan.recording_bytes,
            payload_bytes=sum(outcome.payload_bytes for outcome in outcomes),
            parquet_bytes=sum(outcome.file_bytes for outcome in outcomes),
            files=len(new),
            to_position=manifest.to_position,
            warnings=warnings,
        )

    def _new_files(
        self, recording: Recording, outcomes: Sequence[RangeOutcome]
    ) -> dict[str, FileEntry]:
        """Return an entry for each file that tasks have written, by its temporary path."""
        entries: dict[str, FileEntry] = {}
        times = recorded_times(recording) if self._options.by_date else ()
        for outcome in outcomes:
            if outcome.path is None:
                continue
            date = None
            if self._options.by_date:
                date = date_at(outcome.part.from_position, times).isoformat()
            name = f"part-{outcome.part.from_position:019d}-{outcome.path[-8:]}.parquet"
            entries[outcome.path] = FileEntry(
                name=name if date is None else f"date={date}/{name}",
                from_position=outcome.part.from_position,
                to_position=outcome.part.to_position,
                rows=outcome.rows,
                payload_bytes=outcome.payload_bytes,
                bytes=outcome.file_bytes,
                checksum=self._options.read.checksum,
                converted_at=datetime.now(UTC).isoformat(timespec="seconds"),
                date=date,
            )
        return entries


def _advance(
    on_progress: OnProgress | None, before: int, total: int
) -> Callable[[int], None] | None:
    return None if on_progress is None else lambda done: on_progress(before + done, total)


def _gone_report(recording_id: int, to_position: int | None, is_whole: bool) -> RecordingReport:
    since = "" if to_position is None else f" after position {to_position}"
    lost = f"it is no longer in the archive: its messages{since} are not in the table"
    return RecordingReport(
        recording_id, "gone", to_position=to_position, warnings=() if is_whole else (lost,)
    )


def _up_to_unfinished(outcomes: Sequence[RangeOutcome]) -> list[RangeOutcome]:
    """Sort outcomes by position, without those that follow an unfinished message.

    Ranges that begin after that message's beginning, at a midnight or where an earlier job began,
    hold only fragments of it.
    """
    outcomes = sorted(outcomes, key=lambda outcome: outcome.part.from_position)
    ends = [outcome.part.to_position for outcome in outcomes if outcome.unfinished_fragments]
    return [outcome for outcome in outcomes if not ends or outcome.part.from_position <= ends[0]]


def _next_manifest(
    plan: RecordingPlan,
    outcomes: Sequence[RangeOutcome],
    new: Sequence[FileEntry],
    taken: Sequence[Fingerprint],
    options: JobOptions,
    warnings: Sequence[str],
) -> Manifest:
    """Return the manifest of a recording after a commit."""
    before = plan.manifest or Manifest(recording={})
    files = sorted([*before.files, *new], key=lambda entry: entry.from_position)
    ranges = joined([*before.ranges, *(o.part.positions for o in outcomes)])
    known = {(f.from_position, f.to_position): f for f in (*before.fingerprints, *taken)}
    unfinished_at, unfinished_from = before.unfinished_at, before.unfinished_from
    if outcomes and outcomes[-1].unfinished_fragments:
        last = outcomes[-1].part
        unfinished_at, unfinished_from = last.limit_position, last.to_position
        # After it there is only that message, also in ranges of an earlier job.
        ranges = joined((begin, min(end, unfinished_from)) for begin, end in ranges)
        known = {place: each for place, each in known.items() if place[1] <= unfinished_from}
    elif any(begin <= (unfinished_from or 0) < end for begin, end in ranges):
        unfinished_at = unfinished_from = None
    return Manifest(
        recording=dataclasses.asdict(plan.recording.descriptor),
        ranges=ranges,
        unfinished_at=unfinished_at,
        unfinished_from=unfinished_from,
        schema=next((o.columns for o in outcomes if o.columns), before.schema),
        settings=options.settings(),
        files=tuple(files),
        fingerprints=tuple(known[place] for place in sorted(known)),
        warnings=tuple(dict.fromkeys([*before.warnings, *warnings])),
    )


def _warnings(plan: RecordingPlan, outcomes: Sequence[RangeOutcome]) -> tuple[str, ...]:
    recording = plan.recording
    warnings = [f"the recording is marked as suspect: {note}" for note in recording.suspect_notes]
    warnings.extend(plan.warnings)
    skipped = sum(outcome.skipped_fragments for outcome in outcomes)
    if not recording.descriptor.is_active:
        # In a live recording the rest of the last message may follow.
        skipped += sum(outcome.unfinished_fragments for outcome in outcomes)
    if skipped:
        warnings.append(f"{skipped} fragments of incompletely recorded messages left out")
    if dropped := sum(outcome.dropped_messages for outcome in outcomes):
        warnings.append(f"{dropped} messages with frames that fail their checksum left out")
    return tuple(warnings)
