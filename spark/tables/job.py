"""The table job: recordings of an archive directory become rows of a table.

A job looks at each recording and at the table and converts what the table does not have yet
(`plan`). Tasks write files (`writer`), and the driver adds them to the table (`table`). Recordings
are committed in batches as their tasks end: an interrupt loses only the batch at hand.

A recording that cannot be read to its end is not written at all, and named in the report.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, Final, Self

from aerotape.catalog.directory import recording_key, split_key
from aerotape.qualified_id import QualifiedId
from aerotape.replay.offline.read_progress import ReadProgress, identity_of, union
from aerotape.replay.offline.reader import RecordingRange
from aerotape.spark.source.planning import plan_partitions
from aerotape.spark.tables.dates import (
    cut_at_midnight,
    date_at,
    dates_problem,
    recorded_times,
)
from aerotape.spark.tables.plan import Action, JobOptions, Planner, RecordingPlan, longest_term
from aerotape.spark.tables.table import Table, TableChangedError
from aerotape.spark.tables.task_runner import SparkTasks, TaskRunner
from aerotape.spark.tables.writer import (
    NewFile,
    Piece,
    RangeOutcome,
    TaskOutcome,
    WriteSettings,
)

_PARTITIONS_PER_CORE: Final = 8
_ATTEMPTS: Final = 5
_RESULTS: Final = {
    Action.CONVERT: "converted",
    Action.REPLACE: "replaced",
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
        result: "converted", "replaced", "up to date", "waiting for more" or "left out"; in a job of
            several rounds "gone", once, when it is no longer in the archive.
        messages: rows written.
        recording_bytes: bytes of the recording that were read.
        payload_bytes: bytes of the messages' payloads.
        to_position: up to where the table has the recording; None if it has nothing.
        warnings: what is suspect about the rows.
        error: why nothing was written, or None.
    """

    recording_id: int
    result: str
    messages: int = 0
    recording_bytes: int = 0
    payload_bytes: int = 0
    to_position: int | None = None
    warnings: tuple[str, ...] = ()
    error: str | None = None

    @property
    def key(self) -> int:
        """Key of the recording (`StoredRecording.key`)."""
        return self.recording_id


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedReport(RecordingReport):
    """The outcome of a recording that was imported from another archive.

    Attributes:
        qualified_name: its qualified name.
    """

    qualified_name: str

    @property
    def key(self) -> int:
        """Key of the recording (`StoredRecording.key`)."""
        return recording_key(QualifiedId.parse(self.qualified_name).scope_id, self.recording_id)


@dataclass(frozen=True, slots=True)
class JobReport:
    """The report of a job.

    Attributes:
        table: the table's folder.
        recordings: one report each, by ascending id.
        files: Parquet files written.
        parquet_bytes: length of them together.
        elapsed_s: seconds from the session's readiness to the last commit.
        term_length: the longest term length of recordings that were converted, which are cut at
            terms; 0 if there was none.
    """

    table: str
    recordings: list[RecordingReport]
    files: int
    parquet_bytes: int
    elapsed_s: float
    term_length: int = 0

    def total(self, name: str) -> int:
        """Return a figure of the job, or the sum of a figure of the recordings."""
        if name in ("files", "parquet_bytes"):
            return int(getattr(self, name))
        return sum(getattr(recording, name) for recording in self.recordings)


def convert(
    options: JobOptions,
    table: Table,
    *,
    master: str | None = None,
    on_progress: OnProgress | None = None,
    whole_log: bool = False,
) -> JobReport:
    """Convert recordings; what is recorded when planning is what is converted.

    Args:
        options: what to convert, and how.
        table: the table, which is created if it does not exist.
        master: Spark's master URL, this machine's cores if None.
        on_progress: called now and then.
        whole_log: let Spark log warnings, and failed tasks with Java's traces.

    Raises:
        ConfigurationError: the table has other columns or partitions.
        CatalogError: the archive directory cannot be read.
        UnknownRecordingError: a selected recording does not exist.
        TableInUseError: another job is writing to the table, which takes one writer.
        StorageError: the table cannot be written.
        AerotapeError: Spark does not start, or a task failed as often as Spark tries.
    """
    tasks = SparkTasks(master, whole_log=whole_log)
    # Spark is stopped first: no task may write while the job clears up.
    with TableJob(options, table, tasks) as job, tasks:
        return job.run(on_progress)


def plan_only(options: JobOptions, table: Table) -> list[RecordingPlan]:
    """Return the plans of `convert`, without any change. Raises as it does, Spark apart."""
    table.check_options(replaces=options.replaces)
    table.refresh()
    options.schema_of(table)
    return Planner(options, table).plan()


class TableJob:
    """A job that writes to a table in one or several rounds."""

    def __init__(self, options: JobOptions, table: Table, tasks: TaskRunner) -> None:
        """Change nothing before the context is entered."""
        self._options = options
        self._table = table
        self._tasks = tasks
        self._planner = Planner(options, table)
        self._files: list[NewFile] = []
        self._columns: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        """Reserve the table."""
        self._table.check_options(replaces=self._options.replaces)
        self._planner.recordings()  # refused options must not create a folder
        self._table.begin(self._options.schema())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._table.close(failed=kind is not None)

    def run(self, on_progress: OnProgress | None = None) -> JobReport:
        """Convert what is new now. Raises what `convert` does.

        If another job has changed the same recordings meanwhile, the rest is planned again.
        """
        self._files = []
        begun_ns = time.monotonic_ns()
        reports: dict[int, RecordingReport] = {}
        for attempt in range(_ATTEMPTS):
            self._table.refresh()
            self._columns = tuple(self._options.schema_of(self._table).names)
            plans = self._planner.plan()
            try:
                busy = [plan for plan in plans if plan.action in (Action.CONVERT, Action.REPLACE)]
                if busy:
                    parallelism = self._tasks.parallelism
                    if not attempt:
                        begun_ns = time.monotonic_ns()  # Spark has started
                    self._convert(busy, parallelism, on_progress, reports)
                break
            except TableChangedError:
                if attempt == _ATTEMPTS - 1:
                    raise
        for plan in plans:
            if plan.key not in reports:
                reports[plan.key] = _report_of(
                    plan.key,
                    _RESULTS[plan.action],
                    to_position=None if plan.converted is None else plan.converted.position,
                    warnings=plan.warnings,
                    error=plan.reason if plan.action is Action.REFUSE else None,
                )
        if self._table.columns() is None and not self._files:
            self._table.commit((), {}, {})  # readers find a table without rows
        elapsed_s = (time.monotonic_ns() - begun_ns) / 1e9
        recordings = [*reports.values()]
        recordings.extend(_gone_report(*each) for each in self._planner.gone(plans))
        recordings.sort(key=lambda report: report.key)
        return JobReport(
            self._table.store.name,
            recordings,
            len(self._files),
            sum(file.size for file in self._files),
            round(elapsed_s, 3),
            longest_term(plans),
        )

    def _convert(
        self,
        plans: Sequence[RecordingPlan],
        parallelism: int,
        on_progress: OnProgress | None,
        reports: dict[int, RecordingReport],
    ) -> None:
        """Convert recordings and add their reports, batch by batch."""
        batches = list(self._batches(plans, parallelism))
        total = sum(len(partitions) for _, partitions in batches)
        done = 0
        for batch, partitions in batches:
            outcomes: list[TaskOutcome] = []
            if partitions:
                outcomes = self._tasks.run(
                    partitions, self._settings(batch), _advance(on_progress, done, total)
                )
            done += len(partitions)
            reports |= self._commit(batch, outcomes)

    def _batches(
        self, plans: Sequence[RecordingPlan], parallelism: int
    ) -> Iterator[tuple[list[RecordingPlan], list[tuple[Piece, ...]]]]:
        """Gather recordings that are converted by one Spark job, and cut them into tasks."""
        partition_bytes = self._options.read.partition_bytes
        enough = partition_bytes * _PARTITIONS_PER_CORE * parallelism
        batch: list[RecordingPlan] = []
        batch_bytes = 0
        for plan in plans:
            batch.append(plan)
            batch_bytes += plan.recording_bytes
            if batch_bytes >= enough or plan is plans[-1]:
                yield batch, self._partitions(batch)
                batch, batch_bytes = [], 0

    def _partitions(self, plans: Sequence[RecordingPlan]) -> list[tuple[Piece, ...]]:
        times: dict[int, Sequence[tuple[int, int]]] = {}
        ranges: list[RecordingRange] = []
        for plan in plans:
            if not self._options.by_date:
                ranges.extend(plan.ranges)
                continue
            found = times[plan.key] = recorded_times(plan.recording)
            ranges.extend(piece for part in plan.ranges for piece in cut_at_midnight(part, found))
        partitions = plan_partitions(ranges, self._options.read.partition_bytes)
        counts: dict[int, int] = {}
        for part in (part for partition in partitions for part in partition):
            counts[part.key] = counts.get(part.key, 0) + 1
        return [
            tuple(
                Piece(
                    part,
                    date_at(part.from_position, times[part.key]).isoformat()
                    if self._options.by_date
                    else None,
                    counts[part.key] == 1,
                )
                for part in partition
            )
            for partition in partitions
        ]

    def _settings(self, plans: Sequence[RecordingPlan]) -> WriteSettings:
        read = self._options.read
        return WriteSettings(
            store=self._table.store,
            selection=dataclasses.replace(read, columns=self._columns),
            payloads=read.payloads,
            identities={plan.key: identity_of(plan.recording.descriptor) for plan in plans},
            naming=self._table.naming,
            job_id=self._table.job_id,
        )

    def _commit(
        self, plans: Sequence[RecordingPlan], outcomes: Sequence[TaskOutcome]
    ) -> dict[int, RecordingReport]:
        """Add the files of the recordings that were read to their ends."""
        ranges: dict[int, list[RangeOutcome]] = {plan.key: [] for plan in plans}
        for outcome in outcomes:
            for each in outcome.ranges:
                ranges[each.part.key].append(each)
        done = [_Converted(plan, _up_to_unfinished(ranges[plan.key])) for plan in plans]
        sound = [each for each in done if each.error is None]
        wanted = {outcome.part for each in sound for outcome in each.outcomes}
        # A file with several recordings has none of those that failed.
        files = [
            (outcome.file, any(each.part in wanted for each in outcome.ranges))
            for outcome in outcomes
            if outcome.file is not None
        ]
        self._table.discard(file for file, is_wanted in files if not is_wanted)
        added = [file for file, is_wanted in files if is_wanted]
        replaced = {
            each.plan.key: each.plan.replace_from
            for each in sound
            if each.plan.replace_from is not None
        }
        if added or replaced:
            converted = {
                each.plan.key: each.converted for each in sound if each.converted is not None
            }
            # From here on the table decides about its files: a failed commit may have reached it.
            self._table.commit(added, converted, replaced)
        self._files.extend(added)
        reports = {each.plan.key: each.report(self._options.by_date) for each in done}
        for recording in sound:
            key = recording.plan.key
            self._planner.committed(key, reports[key].to_position)
        return reports


@dataclass(frozen=True)
class _Converted:
    """A recording with the outcomes of its ranges."""

    plan: RecordingPlan
    outcomes: Sequence[RangeOutcome]

    @property
    def error(self) -> str | None:
        return next((each.error for each in self.outcomes if each.error is not None), None)

    @cached_property
    def converted(self) -> ReadProgress | None:
        """The converted ranges of the recording afterwards; None if no change."""
        plan = self.plan
        if plan.replace_from is None and not any(each.rows for each in self.outcomes):
            return None
        parts = []
        for each in self.outcomes:
            begin, end = each.part.positions
            parts.append(ReadProgress(begin=begin, position=end, last=each.last))
        before, limit = plan.converted, plan.replace_from
        if before is not None and limit is None:
            parts.append(before)
        elif before is not None and limit is not None:
            parts.extend(
                ReadProgress(begin=begin, position=min(end, limit)) for begin, end in before.ranges
            )
        return union(parts, identity_of(plan.recording.descriptor))

    def report(self, by_date: bool) -> RecordingReport:
        plan, outcomes = self.plan, self.outcomes
        before = None if plan.converted is None else plan.converted.position
        if self.error is not None:
            result = _RESULTS[Action.REFUSE]
            return _report_of(plan.key, result, to_position=before, error=self.error)
        warnings = _warnings(plan, outcomes)
        if by_date:
            problem = dates_problem(plan.recording)
            warnings += (problem,) if problem and outcomes else ()
        return _report_of(
            plan.key,
            _RESULTS[plan.action],
            messages=sum(outcome.rows for outcome in outcomes),
            recording_bytes=plan.recording_bytes,
            payload_bytes=sum(outcome.payload_bytes for outcome in outcomes),
            to_position=before if self.converted is None else self.converted.position,
            warnings=warnings,
        )


def _report_of(key: int, result: str, **figures: Any) -> RecordingReport:
    """Return the report of the recording with a key."""
    scope_id, recording_id = split_key(key)
    if scope_id is None:
        return RecordingReport(recording_id, result, **figures)
    name = str(QualifiedId(scope_id, recording_id))
    return ImportedReport(recording_id, result, **figures, qualified_name=name)


def _advance(
    on_progress: OnProgress | None, before: int, total: int
) -> Callable[[int], None] | None:
    return None if on_progress is None else lambda done: on_progress(before + done, total)


def _gone_report(key: int, to_position: int | None, is_complete: bool) -> RecordingReport:
    since = "" if to_position is None else f" after position {to_position}"
    lost = f"it is no longer in the archive: the table has none of its messages{since}"
    return _report_of(key, "gone", to_position=to_position, warnings=() if is_complete else (lost,))


def _up_to_unfinished(outcomes: Sequence[RangeOutcome]) -> list[RangeOutcome]:
    """Sort outcomes by position and leave out what lies within a message that has not ended.

    Ranges that were cut after that message's beginning, at a midnight or where an earlier job
    began, have only fragments of it.
    """
    outcomes = sorted(outcomes, key=lambda outcome: outcome.part.from_position)
    ends = [outcome.part.to_position for outcome in outcomes if outcome.unfinished_fragments]
    return [outcome for outcome in outcomes if not ends or outcome.part.from_position <= ends[0]]


def _warnings(plan: RecordingPlan, outcomes: Sequence[RangeOutcome]) -> tuple[str, ...]:
    recording = plan.recording
    warnings = [
        f"the recording is marked as suspect: {note.detail}"
        for note in recording.suspect_notes
        if not note.is_accepted
    ]
    warnings.extend(plan.warnings)
    skipped = sum(outcome.skipped_fragments for outcome in outcomes)
    if not recording.descriptor.is_active:
        # In a live recording the rest of the last message may still come.
        skipped += sum(outcome.unfinished_fragments for outcome in outcomes)
    if skipped:
        warnings.append(f"{skipped} fragments of incompletely recorded messages left out")
    if dropped := sum(outcome.dropped_messages for outcome in outcomes):
        warnings.append(f"{dropped} messages with frames that fail their checksum left out")
    return tuple(warnings)
