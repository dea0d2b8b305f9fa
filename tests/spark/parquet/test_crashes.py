"""The Parquet job killed at each of its changes to the table, and what the next one makes of it."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
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

pytestmark = pytest.mark.crash

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
def test_killed_at_any_change_the_next_job_puts_it_right(
    store_type: type[MortalStore],
    prepared: bool,
    grow: Grow,
    overwrite: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is the last change that a job makes, readers see all of the old or all of the new
    rows of a recording (in an object store: rows up to a position), and after the next job the
    table has each row once and nothing lies about."""
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
        # What DuckDB or Polars find with a pattern for all folders, which enters any folder.
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
    # The changes that count have been among them.
    if store_type is not MortalStore or not prepared:
        way = "move recording_id=0"
    else:
        way = "move recording_id=0/part-" if grow is grow_little else "exchange recording_id=0"
    assert any(death.startswith(way) for death in deaths), "\n".join(deaths)


class TasksTwice(TasksHere):
    """Runs every task twice, as speculation does, after one that dies while it writes."""

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
    """Of several attempts at a task the table has one, whole, and nothing is left of the others."""
    archive_dir, out = tmp_path / "archive", tmp_path / "out"
    archive_dir.mkdir()
    add_recording(archive_dir, fill(SegmentBuilder(), 150))
    options = JobOptions(read=ReadOptions(archive_dir=str(archive_dir), partition_bytes=1 << 16))
    with ParquetJob(options, out, TasksTwice()) as job:
        [report] = job.run().recordings
        assert positions_of(out, 0) == expected_positions(archive_dir, 0)
    assert len(list(out.rglob("*.parquet"))) == report.files > 1
    assert list(out.iterdir()) == [out / "recording_id=0"]


KILLED_AT = """
import os, signal, sys
from aerotape.spark.parquet.store import OutputStore
from support.spark.parquet_rig import run_here

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(OutputStore, sys.argv[1], die)
run_here(sys.argv[2], sys.argv[3])
"""

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


@pytest.mark.parametrize("operation", ["exchange", "move"])
def test_a_job_that_is_killed_leaves_a_table_that_can_be_gone_on_with(
    tmp_path: Path, operation: str
) -> None:
    """SIGKILL before files appear: nothing of them is seen, and the lock is nobody's."""
    archive_dir, out = tmp_path / "archive", tmp_path / "out"
    archive_dir.mkdir()
    add_recording(archive_dir, fill(SegmentBuilder(), 150))
    with python(KILLED_AT, operation, archive_dir, out) as job:
        assert job.wait(60) == -signal.SIGKILL
    assert (out / "_aerotape" / "lock").exists()
    assert positions_of(out, 0) == []
    run_here(archive_dir, out)
    assert positions_of(out, 0) == expected_positions(archive_dir, 0)
    assert list(out.iterdir()) == [out / "recording_id=0"]
    assert sorted(tmp_path.iterdir()) == [archive_dir, out]


def test_two_jobs_do_not_write_to_one_table(tmp_path: Path) -> None:
    """The second is told who is at work and changes nothing; a killed one is in nobody's way."""
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


def test_without_locks_a_job_leaves_a_sign_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are no locks the second job is refused as well; a sign that has grown old is
    nobody's, and who finds his own gone has lost the table."""
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
    """An object store that for a while keeps nothing that is written to it."""

    refuses = False

    def _put(self, path: str, data: bytes) -> None:
        if self.refuses:
            raise OSError("the upload was ended")
        super()._put(path, data)


def test_a_lease_outlives_renewals_that_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it cannot be renewed it stands: others are refused, and the job is told of the storage
    and not that its table was lost. It is renewed where it was late, and then others see that."""
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
    """A lease that is renewed after it was found to be old is not taken: one of the two jobs is
    refused."""
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


def test_who_has_lost_the_table_leaves_it_to_the_other_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that did not move for too long removes its own files, and nothing of its successor."""
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
    """When a new file is gone, the old ones that it should replace stay."""
    store = MortalObjects(fs.LocalFileSystem(), str(tmp_path))
    store.make_folder("recording_id=0")
    store.write("recording_id=0/old.parquet", b"old")
    committer = Committer(store)
    with pytest.raises(StorageError, match="cannot be completed"):
        committer.commit(
            0, {"new.parquet": "gone"}, Manifest(recording={}), replaced=["old.parquet"]
        )
    assert store.read("recording_id=0/old.parquet") == b"old"


def test_a_damaged_journal_is_named_and_nothing_touched(tmp_path: Path) -> None:
    """Nobody knows then what it was to do."""
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


@pytest.mark.root
def test_a_full_disk_is_named_and_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    """Wherever space runs out; with some more the next job goes on."""
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
            # Spark tells the first of a chain.
            assert isinstance(raised.value, StorageError) or raised.value.__suppress_context__
            disk.clear()
            assert positions_of(out, 0) == old
            assert list(out.iterdir()) == [out / "recording_id=0"]
        run_here(archive_dir, out)
        assert positions_of(out, 0) == expected_positions(archive_dir, 0)
