"""The Parquet job: recordings of an archive directory to a Parquet table, one folder each.

    OUT/recording_id=3/part-0000000000000000000-1f0c9a77.parquet
    OUT/recording_id=3/_manifest.json

Tasks write under ``OUT/_aerotape-<job>/`` (`parquet_writer`). When all are done, the driver
gathers a recording's files and its manifest in a folder there and renames that into place: a
reader sees all of a recording or nothing. Names that begin with an underscore are invisible to
Spark, pyarrow and others that read folders of Parquet files.

A recording that cannot be read to its end is not written at all, and named in the report.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aerotape import __version__
from aerotape.catalog.directory import Recording
from aerotape.catalog.location import absolute_location
from aerotape.errors import AerotapeError, ConfigurationError, StorageError
from aerotape.replay.reader import RecordingRange
from aerotape.spark.options import ReadOptions
from aerotape.spark.parquet_writer import FILE_COLUMNS, RangeOutcome, WriteSettings, write_ranges
from aerotape.spark.planning import choose_recordings, plan_partitions, plan_ranges
from aerotape.spark.session import job_session

if TYPE_CHECKING:
    from pyspark import SparkContext

MANIFEST_NAME: Final = "_manifest.json"
_POLL_S: Final = 0.2
_PYTHON_ERROR: Final = re.compile(r"(?!org\.|java\.|py4j\.)[\w.]*(Error|Exception|Invalid): ")


@dataclass(frozen=True, slots=True)
class RecordingReport:
    """What became of one recording.

    Attributes:
        recording_id: its id.
        messages: rows written.
        recording_bytes: bytes of the recording that were read.
        payload_bytes: bytes of the messages' payloads.
        parquet_bytes: length of the files together.
        files: how many.
        warnings: what is suspect about the rows.
        error: why nothing was written, or None.
    """

    recording_id: int
    messages: int = 0
    recording_bytes: int = 0
    payload_bytes: int = 0
    parquet_bytes: int = 0
    files: int = 0
    warnings: list[str] = field(default_factory=list)
    error: str | None = None


@dataclass(frozen=True, slots=True)
class JobReport:
    """What a job did.

    Attributes:
        out_dir: the table's folder.
        recordings: one report each, by ascending id.
        elapsed_s: seconds from the session's readiness to the last rename.
    """

    out_dir: str
    recordings: list[RecordingReport]
    elapsed_s: float

    def total(self, name: str) -> int:
        """Sum a field of the recordings."""
        return sum(getattr(recording, name) for recording in self.recordings)


def convert(
    options: ReadOptions,
    out_dir: Path,
    *,
    master: str | None = None,
    overwrite: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> JobReport:
    """Convert recordings to Parquet; what is recorded when planning is what is converted.

    Args:
        options: which recordings and positions; its columns and its mode are not used.
        out_dir: the table's folder, made when missing, seen by driver and workers alike.
        master: Spark's master URL, this machine's cores when None.
        overwrite: replace what `out_dir` already holds of a recording, instead of refusing.
        on_progress: called now and then with tasks done and tasks in all.

    Raises:
        ConfigurationError: `out_dir` holds one of the recordings already, or is no local path.
        CatalogError: the archive directory cannot be read.
        UnknownRecordingError: a recording that was asked for does not exist.
        StorageError: `out_dir` cannot be written.
        AerotapeError: Spark does not start, or a task failed as often as Spark tries.
    """
    if "://" in str(out_dir) or ":/" in str(out_dir):
        raise ConfigurationError(f"{out_dir}: only paths of a file system can be written yet")
    out_dir = out_dir.resolve()
    options = dataclasses.replace(options, archive_dir=absolute_location(options.archive_dir))
    recordings = choose_recordings(options.open_directory(), options)
    _refuse_existing(recordings, out_dir, overwrite)
    ranges, unreadable = _plan(recordings, options)
    partitions = plan_partitions(list(ranges.values()), options.partition_bytes)

    job_dir = out_dir / f"_aerotape-{uuid.uuid4().hex[:12]}"
    settings = WriteSettings(
        attempts_dir=str(job_dir / "attempts"),
        checksum=options.checksum,
        metadata={r.descriptor.recording_id: _key_value_metadata(r) for r in recordings},
    )
    try:
        job_dir.mkdir(parents=True)
    except OSError as error:
        raise StorageError(f"cannot write to {out_dir}: {error.strerror}", out_dir) from error
    try:
        begun_ns = time.monotonic_ns()
        outcomes: list[RangeOutcome] = []
        if partitions:
            with job_session(master, "aerotape parquet") as session:
                begun_ns = time.monotonic_ns()
                outcomes = _run(session.sparkContext, partitions, settings, on_progress)
        by_recording: dict[int, list[RangeOutcome]] = {}
        for outcome in outcomes:
            by_recording.setdefault(outcome.recording_id, []).append(outcome)
        reports = [
            unreadable.get(recording.recording_id)
            or _commit(
                recording,
                ranges.get(recording.recording_id),
                by_recording.get(recording.recording_id, []),
                options,
                job_dir,
                out_dir,
            )
            for recording in recordings
        ]
        elapsed_s = (time.monotonic_ns() - begun_ns) / 1e9
    finally:
        shutil.rmtree(job_dir, ignore_errors=True)
    return JobReport(str(out_dir), reports, round(elapsed_s, 3))


def _plan(
    recordings: Sequence[Recording], options: ReadOptions
) -> tuple[dict[int, RecordingRange], dict[int, RecordingReport]]:
    """Find what is to be read of each recording; one that cannot be looked at is reported."""
    ranges: dict[int, RecordingRange] = {}
    unreadable: dict[int, RecordingReport] = {}
    for recording in recordings:
        id = recording.recording_id
        try:
            ranges.update((id, whole) for whole in plan_ranges([recording], options))
        except StorageError as error:
            unreadable[id] = RecordingReport(id, error=f"recording {id}: {error}")
    return ranges, unreadable


def _refuse_existing(recordings: Sequence[Recording], out_dir: Path, overwrite: bool) -> None:
    if out_dir.exists() and not out_dir.is_dir():
        raise ConfigurationError(f"{out_dir} is a file; name a folder to write the table to")
    there = [r.recording_id for r in recordings if _final_dir(out_dir, r.recording_id).exists()]
    if there and not overwrite:
        names = ", ".join(map(str, there[:10])) + (", …" if len(there) > 10 else "")
        raise ConfigurationError(
            f"{out_dir} already holds recording {names}: choose other recordings or another "
            "folder, or overwrite"
        )


def _final_dir(out_dir: Path, recording_id: int) -> Path:
    return out_dir / f"recording_id={recording_id}"


def _key_value_metadata(recording: Recording) -> dict[str, str]:
    descriptor = dataclasses.asdict(recording.descriptor)
    return {"aerotape.version": __version__, "aerotape.recording": json.dumps(descriptor)}


def _run(
    context: SparkContext,
    partitions: Sequence[tuple[RecordingRange, ...]],
    settings: WriteSettings,
    on_progress: Callable[[int, int], None] | None,
) -> list[RangeOutcome]:
    """Run one task for each partition and gather the outcomes."""
    done = threading.Event()
    watcher = threading.Thread(
        target=_watch, args=(context, len(partitions), done, on_progress), daemon=True
    )
    if on_progress is not None:
        watcher.start()
    try:
        tasks = context.parallelize(partitions, len(partitions))
        return list(tasks.mapPartitions(partial(write_ranges, settings=settings)).collect())
    except Exception as error:  # py4j's and Spark's own have no base in common
        raise AerotapeError(f"the Spark job failed: {_cause(error)}") from error
    finally:
        done.set()
        if on_progress is not None:
            watcher.join()


def _cause(error: Exception) -> str:
    """Find the line of Spark's long story that tells what went wrong in a task."""
    lines = [line.strip() for line in str(error).splitlines()]
    python = [line for line in lines if _PYTHON_ERROR.match(line)]
    return (python or [line for line in lines if line] or [type(error).__name__])[0]


def _watch(
    context: SparkContext,
    total: int,
    done: threading.Event,
    on_progress: Callable[[int, int], None],
) -> None:
    tracker = context.statusTracker()
    while not done.wait(_POLL_S):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        on_progress(sum(stage.numCompletedTasks for stage in stages if stage), total)


def _commit(
    recording: Recording,
    whole: RecordingRange | None,
    outcomes: Sequence[RangeOutcome],
    options: ReadOptions,
    job_dir: Path,
    out_dir: Path,
) -> RecordingReport:
    """Make a recording's files appear at once, or report why they do not."""
    recording_id = recording.recording_id
    error = next((outcome.error for outcome in outcomes if outcome.error), None)
    if error is not None:
        return RecordingReport(recording_id, error=error)
    report = RecordingReport(
        recording_id=recording_id,
        messages=sum(outcome.rows for outcome in outcomes),
        recording_bytes=sum(o.to_position - o.from_position for o in outcomes),
        payload_bytes=sum(outcome.payload_bytes for outcome in outcomes),
        parquet_bytes=sum(outcome.file_bytes for outcome in outcomes),
        files=len(outcomes),
        warnings=_warnings(recording, outcomes),
    )
    folder = job_dir / "commit" / str(recording_id)
    final = _final_dir(out_dir, recording_id)
    try:
        folder.mkdir(parents=True)
        files = []
        for outcome in sorted(outcomes, key=lambda outcome: outcome.from_position):
            source = Path(str(outcome.path))
            source.rename(folder / source.name)
            files.append(
                {
                    "name": source.name,
                    "from_position": outcome.from_position,
                    "to_position": outcome.to_position,
                    "rows": outcome.rows,
                    "bytes": outcome.file_bytes,
                }
            )
        manifest: dict[str, Any] = {
            "aerotape_version": __version__,
            "recording": dataclasses.asdict(recording.descriptor),
            "from_position": None if whole is None else whole.from_position,
            "to_position": None if whole is None else whole.to_position,
            "checksum": options.checksum,
            "columns": list(FILE_COLUMNS),
            "rows": report.messages,
            "payload_bytes": report.payload_bytes,
            "warnings": report.warnings,
            "files": files,
        }
        (folder / MANIFEST_NAME).write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")
        if final.exists():  # it was allowed, or we would not be here
            final.rename(job_dir / f"replaced-{recording_id}")
        folder.rename(final)
    except OSError as failure:
        raise StorageError(f"cannot put {final} in place: {failure.strerror}", final) from failure
    return report


def _warnings(recording: Recording, outcomes: Sequence[RangeOutcome]) -> list[str]:
    warnings = [f"the recording is marked as suspect: {note}" for note in recording.suspect_notes]
    skipped = sum(outcome.skipped_fragments for outcome in outcomes)
    if not recording.descriptor.is_active:
        # In a live recording the rest of the last message is on its way.
        skipped += sum(outcome.unfinished_fragments for outcome in outcomes)
    if skipped:
        warnings.append(f"{skipped} fragments of messages that were not recorded whole left out")
    return warnings
