"""The Parquet job killed at each of its changes to the table, and the job after it."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

import aerotape

pytest.importorskip("pyarrow")

from pyarrow import fs, parquet
from support.damage.small_disk import small_disk
from support.spark.parquet_rig import (
    Killed,
    MortalBlobs,
    MortalObjects,
    MortalStore,
    TasksHere,
    expected_positions,
    positions_of,
    run_here,
)

from aerotape.errors import StorageError, TableInUseError
from aerotape.spark.parquet import lock
from aerotape.spark.parquet.commit import Committer
from aerotape.spark.parquet.job import ParquetJob
from aerotape.spark.parquet.lock import locked
from aerotape.spark.parquet.manifest import Manifest
from aerotape.spark.parquet.plan import JobOptions
from aerotape.spark.parquet.task_runner import OnDone, Partition
from aerotape.spark.parquet.writer import RangeOutcome, WriteSettings
from aerotape.spark.source.options import ReadOptions

ROOT = Path(aerotape.__file__).parents[1]

Grow = Callable[[SegmentBuilder], object]


def grow_much(builder: SegmentBuilder) -> None:
    fill(builder, 300, 5)


def grow_little(builder: SegmentBuilder) -> None:
    builder.message(b"one more")


def grow_not(builder: SegmentBuilder) -> None:
    pass


FIRST = (False, grow_not, False)
MANY_FILES = (True, grow_much, False)
ONE_FILE = (True, grow_little, False)
OVERWRITE = (True, grow_not, True)


@pytest.mark.parametrize(
    ("store_type", "prepared", "grow", "overwrite"),
    [
        (store_type, *job)
        for store_type, jobs in {
            MortalStore: (FIRST, MANY_FILES, ONE_FILE, OVERWRITE),
            MortalObjects: (FIRST, MANY_FILES, ONE_FILE, OVERWRITE),
            MortalBlobs: (ONE_FILE, OVERWRITE),
        }.items()
        for job in jobs
    ],
)
def test_the_job_after_a_kill_completes_the_table(
    store_type: type[MortalStore],
    prepared: bool,
    grow: Grow,
    overwrite: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whichever change was the last, readers see all old or all new rows of a recording (in an
    object store: rows up to a position), and after the next job the table has each row once and no
    temporary files."""
    monkeypatch.setattr(lock, "_LEASE_NS", 0)
    archive_dir, before, out = tmp_path / "archive", tmp_path / "before", tmp_path / "t" / "out"
    archive_dir.mkdir()
    builder = fill(SegmentBuilder(), 150)
    add_recording(archive_dir, builder, live=True)
    old: list[int] = []
    if prepared:
        run_here(archive_dir, before)
        old = expected_positions(archive_dir, 0)
    grow(builder)
    builder.write(archive_dir)
    new = expected_positions(archive_dir, 0)

    deaths: list[str] = []
    while True:
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        out.parent.mkdir()
        if prepared:
            shutil.copytree(before, out)
        store = store_type(fs.LocalFileSystem(), str(out))
        store.lives = len(deaths)
        try:
            run_here(archive_dir, store, overwrite=overwrite)
            break
        except Killed:
            deaths.append(store.last)
        seen = positions_of(out, 0)
        # DuckDB and Polars read every folder with this pattern.
        assert (
            sorted(
                position
                for file in out.glob("**/*.parquet")
                for position in parquet.read_table(file)["position"].to_pylist()
            )
            == seen
        ), store.last
        if store_type is MortalStore:
            assert seen in (old, new), store.last
        elif not overwrite:
            assert seen == new[: len(seen)], store.last
            assert len(seen) >= len(old), store.last
        run_here(archive_dir, store_type(fs.LocalFileSystem(), str(out)))
        assert positions_of(out, 0) == new, store.last
        assert sorted(out.iterdir()) == [out / "recording_id=0"], store.last
        assert list(out.parent.iterdir()) == [out], store.last
    assert positions_of(out, 0) == new
    assert len(deaths) > 10
    if store_type is not MortalStore or not prepared:
        way = "move recording_id=0"
    else:
        way = "move recording_id=0/part-" if grow is grow_little else "exchange recording_id=0"
    assert any(death.startswith(way) for death in deaths), "\n".join(deaths)


class TasksTwice(TasksHere):
    """Runs every task twice, as in speculation, after one that is killed while it writes."""

    def run(
        self, partitions: Sequence[Partition], settings: WriteSettings, on_done: OnDone | None
    ) -> list[RangeOutcome]:
        dying = MortalStore(fs.LocalFileSystem(), settings.store.name)
        dying.lives = 0
        with pytest.raises(Killed):
            super().run(partitions, dataclasses.replace(settings, store=dying), None)
        super().run(partitions, settings, None)
        return super().run(partitions, settings, None)


def test_failed_and_repeated_tasks_leave_nothing(tmp_path: Path) -> None:
    """The table has the file of one attempt at a task, and no files of the others."""
    archive_dir, out = tmp_path / "archive", tmp_path / "out"
    archive_dir.mkdir()
    add_recording(archive_dir, fill(SegmentBuilder(), 150))
    options = JobOptions(read=ReadOptions(archive_dir=str(archive_dir), partition_bytes=1 << 16))
    with ParquetJob(options, out, TasksTwice()) as job:
        [report] = job.run().recordings
        assert positions_of(out, 0) == expected_positions(archive_dir, 0)
    assert len(list(out.rglob("*.parquet"))) == report.files > 1
    assert list(out.iterdir()) == [out / "recording_id=0"]


HOLDS_THE_LOCK = """
import sys
from aerotape.spark.parquet.lock import locked
from aerotape.spark.parquet.store import OutputStore

with locked(OutputStore.open(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def python(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])},
    )


def test_two_jobs_do_not_write_to_one_table(tmp_path: Path) -> None:
    """The second is refused with the process id of the first; the lock of a killed job is free."""
    archive_dir, out = tmp_path / "archive", tmp_path / "out"
    archive_dir.mkdir()
    add_recording(archive_dir, fill(SegmentBuilder(), 10))
    with python(HOLDS_THE_LOCK, out) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(TableInUseError, match=f"process {holder.pid} on") as refused:
            run_here(archive_dir, out)
        assert refused.value.pid == holder.pid
        assert positions_of(out, 0) == []
        holder.kill()
    run_here(archive_dir, out)
    assert positions_of(out, 0) == expected_positions(archive_dir, 0)


def test_leases_in_storage_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second job is refused; an expired lease is taken over, and its job detects that."""
    store = MortalObjects(fs.LocalFileSystem(), str(tmp_path / "out"))
    with locked(store) as first:
        with pytest.raises(TableInUseError, match=f"process {os.getpid()} on"), locked(store):
            pass
        first.check()
        monkeypatch.setattr(lock, "_LEASE_NS", 0)
        with locked(store) as second:
            second.check()
            with pytest.raises(TableInUseError, match="another job took over"):
                first.check()
    assert list((tmp_path / "out").iterdir()) == []


class RefusingObjects(MortalObjects):
    """An object store that can refuse writes."""

    refuses = False

    def _put(self, path: str, data: bytes) -> None:
        if self.refuses:
            raise OSError("the upload was ended")
        super()._put(path, data)


def test_a_lease_outlives_renewals_that_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease that cannot be renewed stays valid: other jobs are refused, and the job gets an error
    of the storage, not one of a lost table. A late renewal is valid too."""
    store = RefusingObjects(fs.LocalFileSystem(), str(tmp_path / "out"))
    other = MortalObjects(fs.LocalFileSystem(), str(tmp_path / "out"))
    monkeypatch.setattr(lock, "_LATE_S", -1.0)
    with locked(store) as lease:
        [first] = store.files("_aerotape/locks")
        store.refuses = True
        with pytest.raises(StorageError, match=r"cannot write .*/locks/.*: the upload was ended"):
            lease.check()
        assert list(store.files("_aerotape/locks")) == [first]
        with pytest.raises(TableInUseError), locked(other):
            pass
        store.refuses = False
        lease.check()
        [second] = store.files("_aerotape/locks")
        assert second != first
        lease.check()
        with pytest.raises(TableInUseError), locked(other):
            pass
        store.delete_folder("_aerotape/locks")
        store.make_folder("_aerotape/locks")
        with pytest.raises(TableInUseError, match="another job took over"):
            lease.check()
        assert store.files("_aerotape/locks") == {}
    assert list((tmp_path / "out").iterdir()) == []


def test_a_takeover_sees_a_renewal_that_comes_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease that is renewed after it was found expired is not taken over."""
    store = MortalObjects(fs.LocalFileSystem(), str(tmp_path / "out"))
    monkeypatch.setattr(lock, "_LATE_S", -1.0)
    with locked(store) as lease:
        for path in (tmp_path / "out" / "_aerotape" / "locks").iterdir():
            os.utime(path, (0, 0))

        class Renewing(MortalObjects):
            def delete_file(self, path: str) -> None:
                lease.check()
                super().delete_file(path)

        with pytest.raises(TableInUseError), locked(Renewing(fs.LocalFileSystem(), store.name)):
            pass
        lease.check()


def test_a_job_that_lost_the_table_leaves_it_to_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job whose lease expired removes its own files, and none of its successor."""
    archive_dir = tmp_path / "archive"
    archive_dir.mkdir()
    add_recording(archive_dir, fill(SegmentBuilder(), 10))
    options = JobOptions(read=ReadOptions(archive_dir=str(archive_dir)))
    store = MortalObjects(fs.LocalFileSystem(), str(tmp_path / "out"))
    monkeypatch.setattr(lock, "_LEASE_NS", 0)
    with ParquetJob(options, store, TasksHere()) as first:
        own = first._committer.attempts_folder(0)
        with ParquetJob(options, store, TasksHere()) as second:
            assert not store.exists(own)
            first._committer.attempts_folder(0)
            other = second._committer.attempts_folder(0)
            first.__exit__(None, None, None)
            assert not store.exists(own)
            assert store.exists(other)
            second.run()
    assert positions_of(tmp_path / "out", 0) == expected_positions(archive_dir, 0)
    assert list((tmp_path / "out").iterdir()) == [tmp_path / "out" / "recording_id=0"]


def test_a_commit_that_cannot_be_finished_deletes_nothing(tmp_path: Path) -> None:
    """When a new file is missing, the files that it would replace stay."""
    store = MortalObjects(fs.LocalFileSystem(), str(tmp_path))
    store.make_folder("recording_id=0")
    store.write("recording_id=0/old.parquet", b"old")
    committer = Committer(store)
    with pytest.raises(StorageError, match="cannot be completed"):
        committer.commit(
            0, {"new.parquet": "gone"}, Manifest(recording={}), replaced=["old.parquet"]
        )
    assert store.read("recording_id=0/old.parquet") == b"old"


def test_a_damaged_journal_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    """The error names it, because the commit is unknown."""
    archive_dir, out = tmp_path / "archive", tmp_path / "out"
    archive_dir.mkdir()
    add_recording(archive_dir, fill(SegmentBuilder(), 10))
    run_here(archive_dir, out)
    journal = out / "_aerotape" / "commits" / "7.json"
    journal.parent.mkdir(parents=True)
    for damaged in ("{", "[1]", '{"folder": "x"}'):
        journal.write_text(damaged)
        with pytest.raises(StorageError, match=r"commits/7.json in .* is damaged .*: delete it"):
            run_here(archive_dir, out)
        assert journal.read_text() == damaged
    assert positions_of(out, 0) == expected_positions(archive_dir, 0)


def test_a_full_disk_leaves_the_table_unchanged(tmp_path: Path) -> None:
    """Wherever space runs out the error names the path; with more space the next job succeeds."""
    archive_dir = tmp_path / "archive"
    archive_dir.mkdir()
    builder = fill(SegmentBuilder(), 40)
    add_recording(archive_dir, builder, live=True)
    with small_disk(tmp_path / "disk", 4 << 20) as disk:
        out = disk.path / "t" / "out"
        run_here(archive_dir, out)
        old = expected_positions(archive_dir, 0)
        fill(builder, 300, 5).write(archive_dir)
        for leave_bytes in (0, 8_192, 131_072):
            disk.fill(leave_bytes)
            with pytest.raises((StorageError, OSError), match="No space left on device") as raised:
                run_here(archive_dir, out)
            assert f"{out}/_aerotape/" in str(raised.value)
            # Spark reports the first of a chain.
            assert isinstance(raised.value, StorageError) or raised.value.__suppress_context__
            disk.clear()
            assert positions_of(out, 0) == old
            assert list(out.iterdir()) == [out / "recording_id=0"]
        run_here(archive_dir, out)
        assert positions_of(out, 0) == expected_positions(archive_dir, 0)
