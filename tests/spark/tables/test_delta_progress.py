"""What a Delta table has of each recording, after other programs have changed the table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.scoped_store import build
from support.builders.segment_builder import SegmentBuilder

from aerotape.errors import StorageError

pytest.importorskip("deltalake")

from deltalake import DeltaTable
from support.spark.table_rig import TasksHere, expected_rows, options, rows_of, run_here, table_of

from aerotape.spark.tables.delta import DeltaRecordingTable
from aerotape.spark.tables.delta_progress import Commit, find_list
from aerotape.spark.tables.job import TableJob


def results(archive_dir: Path, out: Path, **others: Any) -> list[str]:
    return [each.result for each in run_here("delta", archive_dir, out, **others).recordings]


@pytest.fixture
def two_versions(archive_dir: Path, out: Path) -> int:
    """A table to which a recording was added after the returned version."""
    add_recording(archive_dir, fill(SegmentBuilder(), 30))
    run_here("delta", archive_dir, out)
    version: int = DeltaTable(out).version()
    add_recording(archive_dir, fill(SegmentBuilder(), 20, 2))
    run_here("delta", archive_dir, out)
    return version


def without_list(out: Path) -> None:
    shutil.rmtree(out / "_aerotape")


def without_log(out: Path) -> None:
    """Delete all commits but the last one, as a cleanup after a checkpoint does."""
    DeltaTable(out).create_checkpoint()
    for path in sorted((out / "_delta_log").glob("*.json"))[:-1]:
        path.unlink()


def without_version(out: Path) -> None:
    """Let the log not say which version was restored."""
    path = max((out / "_delta_log").glob("*.json"))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            assert line["commitInfo"]["operation"] == "RESTORE"
            line["commitInfo"]["operationParameters"] = {"version": None, "timestamp": "2026"}
    path.write_text("\n".join(map(json.dumps, lines)))


@pytest.mark.parametrize("lost", [None, without_list, without_log, without_version])
def test_rows_that_a_restore_has_removed_come_back(
    lost: Callable[[Path], None] | None, archive_dir: Path, out: Path, two_versions: int
) -> None:
    """Also if the list or the log was lost since."""
    DeltaTable(out).restore(two_versions)
    if lost is not None:
        lost(out)
    assert results(archive_dir, out) == ["up to date", "converted"]
    assert rows_of("delta", out) == expected_rows(archive_dir)
    assert results(archive_dir, out) == ["up to date", "up to date"]


def test_a_restore_while_a_job_runs(archive_dir: Path, out: Path, two_versions: int) -> None:
    """The job plans again."""

    class Restoring(TasksHere):
        left = 1

        def run(self, *args: Any) -> Any:
            outcomes = super().run(*args)
            if self.left:
                self.left = 0
                DeltaTable(out).restore(two_versions)
            return outcomes

    add_recording(archive_dir, fill(SegmentBuilder(), 20, 3))
    with TableJob(options(archive_dir), table_of("delta", out), Restoring()) as job:
        job.run()
    run_here("delta", archive_dir, out)
    assert rows_of("delta", out) == expected_rows(archive_dir)


@pytest.mark.usefixtures("two_versions")
@pytest.mark.parametrize("lost", [None, without_list, without_log])
def test_expired_transactions_add_nothing_twice(
    lost: Callable[[Path], None] | None, archive_dir: Path, out: Path
) -> None:
    """Also if the list or the log is lost, too; what is recorded later is added."""
    DeltaTable(out).alter.set_table_properties(
        {"delta.setTransactionRetentionDuration": "interval 0 seconds"}
    )
    if lost is not None:
        lost(out)
    assert results(archive_dir, out) == ["up to date"] * 2
    add_recording(archive_dir, fill(SegmentBuilder(), 4))
    assert results(archive_dir, out) == ["up to date", "up to date", "converted"]
    assert rows_of("delta", out) == expected_rows(archive_dir)


@pytest.mark.usefixtures("two_versions")
def test_deleted_rows_stay_deleted(archive_dir: Path, out: Path) -> None:
    """After a compaction, too. Only what is replaced is there again."""
    DeltaTable(out).delete("recording_id = 0")
    DeltaTable(out).optimize.compact()
    assert results(archive_dir, out) == ["up to date"] * 2
    left = [row for row in expected_rows(archive_dir) if row["recording_id"] == 1]
    assert rows_of("delta", out) == left
    assert results(archive_dir, out, overwrite=True) == ["replaced"] * 2
    assert rows_of("delta", out) == expected_rows(archive_dir)


def test_a_restore_of_deleted_rows(archive_dir: Path, out: Path, two_versions: int) -> None:
    """They are in the restored version: nothing is converted."""
    version = DeltaTable(out).version()
    DeltaTable(out).delete("position > 1000")
    DeltaTable(out).restore(version)
    assert results(archive_dir, out) == ["up to date"] * 2
    assert rows_of("delta", out) == expected_rows(archive_dir)


def test_a_changed_recording_is_found_by_its_rows(archive_dir: Path, out: Path) -> None:
    """Without a list there is no checksum, but the last message is at its place or not."""
    add_recording(archive_dir, fill(SegmentBuilder(), 30))
    run_here("delta", archive_dir, out)
    without_list(out)
    shutil.rmtree(archive_dir)
    archive_dir.mkdir()
    add_recording(archive_dir, fill(SegmentBuilder(), 90, 9))
    [report] = run_here("delta", archive_dir, out).recordings
    assert (report.result, "its message at position" in str(report.error)) == ("left out", True)
    assert results(archive_dir, out, replace_changed=True) == ["replaced"]
    assert rows_of("delta", out) == expected_rows(archive_dir)


def test_recordings_of_several_archives_need_their_list(tmp_path: Path, out: Path) -> None:
    """Their rows do not say which is the archive's own: the table is refused, and unchanged."""
    store = build(tmp_path / "store", archive_id=5, count=2)
    run_here("delta", store, out, scope_ids=())
    before = rows_of("delta", out)
    without_list(out)
    with pytest.raises(StorageError, match=r"several archives, .* missing in _aerotape"):
        run_here("delta", store, out, scope_ids=())
    assert rows_of("delta", out) == before


def commits(**of: tuple[int | None, int | None, dict[str, bool]]) -> Callable[[int], Commit | None]:
    """Return a reader of commits v0, v1, …: list, restored version, paths."""

    def read(version: int) -> Commit | None:
        if f"v{version}" not in of:
            return None
        list_id, restored, paths = of[f"v{version}"]
        return Commit(list_id, restored is not None, restored if restored != -1 else None, paths)

    return read


def test_the_walk_through_a_log() -> None:
    """Restores lead to restored versions, also of restores; other commits to those below."""
    read = commits(
        v0=(10, None, {"a": True}),
        v1=(11, None, {"b": True}),
        v2=(None, None, {"b": False, "c": True}),
        v3=(None, 0, {"c": False}),
        v4=(None, None, {}),
        v5=(None, 2, {"c": True}),
        v6=(None, 4, {"c": False}),
        v7=(None, -1, {"c": True}),
        v8=(None, -1, {"unknown": True}),
        v9=(None, -1, {"unknown": False, "c": False}),
    )
    found = [find_list(read, version, {}) for version in range(10)]
    assert found == [10, 11, 11, 10, 10, 11, 10, 11, None, 10]
    assert find_list(read, 4, {3: 99}) == 99
    assert find_list(commits(v3=(None, None, {})), 3, {}) is None


class Failing(TasksHere):
    """Tasks that write files and fail."""

    def run(self, *args: Any) -> Any:
        super().run(*args)
        raise StorageError("no space left on device")


@pytest.mark.parametrize("kind", ["delta", "folder"])
@pytest.mark.parametrize("by_date", [False, True])
def test_a_first_run_that_fails_leaves_nothing(
    kind: Any, by_date: bool, archive_dir: Path, out: Path
) -> None:
    """No table, no staged files; a later failure leaves the table as it is."""
    add_recording(archive_dir, fill(SegmentBuilder(), 30))
    job_options = options(archive_dir, by_date=by_date)

    def fail() -> None:
        with (
            pytest.raises(StorageError, match="no space"),
            TableJob(job_options, table_of(kind, out, by_date), Failing()) as job,
        ):
            job.run()

    fail()
    assert not out.exists()
    run_here(kind, archive_dir, out, by_date=by_date)
    add_recording(archive_dir, fill(SegmentBuilder(), 30))
    fail()
    assert not (out / "_staged").exists()
    run_here(kind, archive_dir, out, by_date=by_date)
    assert rows_of(kind, out) == expected_rows(archive_dir)


def test_a_first_job_that_was_killed_does_not_prevent_the_next(
    archive_dir: Path, out: Path
) -> None:
    """Its files are no others that the folder would have to be spared for; vacuum deletes them."""
    add_recording(archive_dir, fill(SegmentBuilder(), 30))
    table = DeltaRecordingTable(out)
    job = TableJob(options(archive_dir), table, Failing())
    job.__enter__()
    with pytest.raises(StorageError, match="no space"):
        job.run()
    assert list(out.glob("*.parquet"))
    (out / "_delta_log").mkdir(exist_ok=True)
    (out / "_delta_log" / f"{0:020}.json#1").write_text('{"commitInfo"')  # as delta-rs writes it
    run_here("delta", archive_dir, out)
    assert rows_of("delta", out) == expected_rows(archive_dir)
    DeltaRecordingTable(out).vacuum(0)
    assert {str(path) for path in out.glob("*.parquet")} == set(DeltaTable(out).file_uris())


def test_a_run_without_rows_creates_the_table(archive_dir: Path, out: Path) -> None:
    """Readers find it, with its columns."""
    add_recording(archive_dir, SegmentBuilder())
    assert results(archive_dir, out) == ["up to date"]
    assert "position" in DeltaTable(out).to_pyarrow_table().column_names
    add_recording(archive_dir, fill(SegmentBuilder(), 3))
    assert results(archive_dir, out) == ["up to date", "converted"]
