"""Commits to Delta tables that fail or are interrupted at each step, and tables that lack files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

from aerotape.errors import StorageError

pytest.importorskip("deltalake")

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from support.spark.table_rig import TasksHere, expected_rows, options, rows_of, run_here

from aerotape.spark.tables.delta import DeltaRecordingTable
from aerotape.spark.tables.job import TableJob, plan_only

CONFLICT = "a concurrent transaction has a newer version"
Call = Callable[..., None]
REAL: Call = DeltaTable.create_write_transaction


def files_of(out: Path) -> set[str]:
    """Return the paths of the Parquet files in a folder."""
    return {str(path) for path in out.rglob("*.parquet")}


def assert_whole(archive_dir: Path, out: Path, **others: Any) -> None:
    """A next job completes the table; its rows are those of the reader, once."""
    assert files_of(out) >= set(DeltaTable(out).file_uris())
    for report in run_here("delta", archive_dir, out, **others).recordings:
        assert report.error is None
    assert rows_of("delta", out) == expected_rows(archive_dir)


def inject(monkeypatch: pytest.MonkeyPatch, error: BaseException, *, commits: bool) -> list[int]:
    """Let the next commit raise an error, after it was done or instead of it.

    Returns:
        A list that has an item for each call.
    """
    calls: list[int] = []

    def faulty(*arguments: Any, **named: Any) -> None:
        calls.append(1)
        if len(calls) > 1 or commits:
            REAL(*arguments, **named)
        if len(calls) == 1:
            raise error

    monkeypatch.setattr(DeltaTable, "create_write_transaction", faulty)
    return calls


@pytest.fixture
def replacing(request: pytest.FixtureRequest, archive_dir: Path, out: Path) -> dict[str, Any]:
    """Options of a job that adds rows to a table, or replaces rows of a file with others."""
    for seed in range(3):
        add_recording(archive_dir, fill(SegmentBuilder(), 5, seed))
    run_here("delta", archive_dir, out, partition_bytes=1 << 20)
    add_recording(archive_dir, fill(SegmentBuilder(), 8))
    return {"overwrite": True, "recording_ids": (1, 3)} if request.param else {}


both = pytest.mark.parametrize("replacing", [False, True], ids=["adds", "replaces"], indirect=True)


@both
@pytest.mark.parametrize("commits", [False, True], ids=["before", "after"])
def test_an_interrupt_of_a_commit_deletes_no_file_of_the_table(
    archive_dir: Path,
    out: Path,
    replacing: dict[str, Any],
    commits: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends the job, before the log was written or right after."""
    before = DeltaTable(out).version()
    inject(monkeypatch, KeyboardInterrupt(), commits=commits)
    with pytest.raises(KeyboardInterrupt):
        run_here("delta", archive_dir, out, **replacing)
    assert DeltaTable(out).version() == before + commits
    assert_whole(archive_dir, out)


@both
@pytest.mark.parametrize(
    "error", [CommitFailedError(CONFLICT), OSError("connection reset")], ids=str
)
def test_a_commit_whose_answer_was_lost_counts(
    archive_dir: Path,
    out: Path,
    replacing: dict[str, Any],
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The log has the commit: the job reports the rows as converted and commits nothing else."""
    calls = inject(monkeypatch, error, commits=True)
    reports = run_here("delta", archive_dir, out, **replacing).recordings
    assert reports[-1].result == "converted"
    assert reports[-1].messages == 8
    assert len(calls) == 1
    assert_whole(archive_dir, out)


def test_a_commit_whose_outcome_cannot_be_read(
    archive_dir: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log cannot be read after an error: the job fails and deletes nothing."""
    add_recording(archive_dir, fill(SegmentBuilder(), 5))
    run_here("delta", archive_dir, out)
    add_recording(archive_dir, fill(SegmentBuilder(), 5, 2))
    calls = inject(monkeypatch, OSError("connection reset"), commits=True)
    update = DeltaTable.update_incremental

    def unreadable(table: DeltaTable) -> None:
        if calls:
            raise OSError("still no connection")
        update(table)

    monkeypatch.setattr(DeltaTable, "update_incremental", unreadable)
    with pytest.raises(StorageError, match=r"cannot read Delta table .*still no connection"):
        run_here("delta", archive_dir, out)
    monkeypatch.setattr(DeltaTable, "update_incremental", update)
    assert rows_of("delta", out) == expected_rows(archive_dir)
    assert run_here("delta", archive_dir, out).files == 0


@both
def test_files_of_a_failed_commit_are_left_for_vacuum(
    archive_dir: Path, out: Path, replacing: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is raised, and the table is as it was."""
    before, rows = files_of(out), rows_of("delta", out)
    inject(monkeypatch, OSError("no space left"), commits=False)
    with pytest.raises(StorageError, match=r"cannot commit to Delta table .*no space left"):
        run_here("delta", archive_dir, out, **replacing)
    assert files_of(out) > before
    assert rows_of("delta", out) == rows
    DeltaRecordingTable(out).vacuum(0)
    assert files_of(out) == before
    assert_whole(archive_dir, out)


@both
def test_a_conflict_during_a_commit_plans_again(
    archive_dir: Path, out: Path, replacing: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another job commits the same recordings after the log was read."""
    calls: list[int] = []

    def after_another(*arguments: Any, **named: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            run_here("delta", archive_dir, out, **replacing)
        REAL(*arguments, **named)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", after_another)
    run_here("delta", archive_dir, out, **replacing)
    assert len(calls) > 1
    assert_whole(archive_dir, out)


def test_a_commit_about_other_recordings_is_no_conflict(
    archive_dir: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is repeated with the files that the tasks have written."""
    for seed in range(3):
        add_recording(archive_dir, fill(SegmentBuilder(), 5, seed))
    run_here("delta", archive_dir, out, recording_ids=(2,))
    calls: list[int] = []

    def after_another(*arguments: Any, **named: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            run_here("delta", archive_dir, out, recording_ids=(1,))
        REAL(*arguments, **named)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", after_another)
    report = run_here("delta", archive_dir, out, recording_ids=(0,))
    assert report.total("messages") == 5
    assert report.files == 1
    assert len(calls) == 3
    assert files_of(out) == set(DeltaTable(out).file_uris())
    assert_whole(archive_dir, out)


@both
def test_a_commit_whose_answer_was_lost_counts_below_that_of_another_job(
    archive_dir: Path, out: Path, replacing: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job sees a conflict, finds its files in the log, and deletes none of them."""
    add_recording(archive_dir, fill(SegmentBuilder(), 9))
    calls: list[int] = []

    def lost(*arguments: Any, **named: Any) -> None:
        calls.append(1)
        REAL(*arguments, **named)
        if len(calls) == 1:
            run_here("delta", archive_dir, out, recording_ids=(4,))
            raise CommitFailedError(CONFLICT)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", lost)
    ids = replacing.pop("recording_ids", (3,))
    report = run_here("delta", archive_dir, out, recording_ids=ids, **replacing)
    assert {each.result for each in report.recordings} <= {"converted", "replaced"}
    assert len(calls) == 2
    assert_whole(archive_dir, out)


def test_an_error_before_a_commit_deletes_the_new_files(
    archive_dir: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No commit was attempted; the copies of files that lose rows are deleted too."""
    for seed in range(3):
        add_recording(archive_dir, fill(SegmentBuilder(), 5, seed))
        run_here("delta", archive_dir, out)
    before = files_of(out)
    copied: list[str] = []
    copy = delta_module().without_rows

    def copies_one(store: Any, path: str, *others: Any) -> Any:
        if copied:
            raise StorageError("cannot read a file: input/output error")
        copied.append(path)
        return copy(store, path, {}, *others[1:])

    monkeypatch.setattr(delta_module(), "without_rows", copies_one)
    with pytest.raises(StorageError, match="input/output error"):
        run_here("delta", archive_dir, out, overwrite=True)
    assert copied
    assert files_of(out) == before


def delta_module() -> Any:
    return sys.modules[DeltaRecordingTable.__module__]


CHILD = """
import os, signal, sys
from support.spark.table_rig import TasksHere
from aerotape.context import Closing
from aerotape.spark.tables import job
from aerotape.spark.tables.delta import DeltaRecordingTable
from aerotape.tools._cli.main import main

class Tasks(TasksHere, Closing):
    def __init__(self, *_, **__): pass
    def close(self): pass

def signalled(*arguments):
    commit(*arguments)
    os.kill(os.getpid(), signal.SIGTERM)

job.SparkTasks = Tasks
commit = DeltaRecordingTable._write
if sys.argv.pop(1) == "signal":
    DeltaRecordingTable._write = signalled
sys.exit(main(sys.argv[1:]))
"""


def test_the_command_is_terminated_at_the_end_of_a_commit(archive_dir: Path, out: Path) -> None:
    """SIGTERM ends it with its exit code; the table has the rows, and the next run adds nothing."""
    pytest.importorskip("pyspark")
    add_recording(archive_dir, fill(SegmentBuilder(), 30))
    ended = [
        subprocess.run(
            [sys.executable, "-c", CHILD, what, "table", str(archive_dir), str(out), "--json"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for what in ("signal", "run")
    ]
    assert [each.returncode for each in ended] == [128 + signal.SIGTERM, 0], ended
    assert '"up to date"' in ended[1].stdout
    assert rows_of("delta", out) == expected_rows(archive_dir)


def test_a_table_that_lacks_files_is_an_error(archive_dir: Path, out: Path) -> None:
    """The error names the files, in a job and in a dry run; after a repair the rows are converted
    again."""
    for seed in range(2):
        add_recording(archive_dir, fill(SegmentBuilder(), 30, seed))
        run_here("delta", archive_dir, out)
    lost = Path(DeltaTable(out).file_uris()[0])
    lost.unlink()
    for run in (
        lambda: run_here("delta", archive_dir, out),
        lambda: plan_only(options(archive_dir), DeltaRecordingTable(out)),
    ):
        with pytest.raises(StorageError, match=rf"lacks files .*1: {lost.name}.*--overwrite"):
            run()
    DeltaTable(out).repair()
    run_here("delta", archive_dir, out, overwrite=True)
    assert_whole(archive_dir, out)


def test_a_vacuum_while_a_job_runs(archive_dir: Path, out: Path) -> None:
    """It deletes files that no commit has: the job fails and commits nothing, because the table
    would lack them."""
    add_recording(archive_dir, fill(SegmentBuilder(), 30))
    run_here("delta", archive_dir, out)
    add_recording(archive_dir, fill(SegmentBuilder(), 30, 2))

    class Vacuumed(TasksHere):
        def run(self, *arguments: Any) -> Any:
            outcomes = super().run(*arguments)
            DeltaRecordingTable(out).vacuum(0)
            return outcomes

    before = DeltaTable(out).version()
    with (
        pytest.raises(StorageError, match=r"deleted before their commit \(1: part-.*run it again"),
        TableJob(options(archive_dir), DeltaRecordingTable(out), Vacuumed()) as job,
    ):
        job.run()
    assert DeltaTable(out).version() == before + 2  # the vacuum's own commits
    assert_whole(archive_dir, out)


def test_files_are_listed_once_in_a_job_of_several_rounds(
    archive_dir: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later rounds do not list the table's folder again."""
    add_recording(archive_dir, fill(SegmentBuilder(), 30))
    run_here("delta", archive_dir, out)
    table = DeltaRecordingTable(out)
    listed: list[str] = []
    files = table.store.files

    def listing(path: str = "") -> dict[str, Any]:
        listed.append(path)
        return files(path)

    monkeypatch.setattr(table.store, "files", listing)
    with TableJob(options(archive_dir), table, TasksHere()) as job:
        for _ in range(3):
            job.run()
    assert listed.count("") == 1
