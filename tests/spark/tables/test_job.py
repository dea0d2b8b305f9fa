"""Table jobs on a folder of Parquet files and on a Delta table."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import BEGIN, END, SegmentBuilder, crc32

from aerotape.catalog.file.catalog import Catalog
from aerotape.errors import ConfigurationError, StorageError, TableInUseError
from aerotape.spark.tables.job import plan_only
from aerotape.spark.tables.table import TableChangedError

pytest.importorskip("deltalake")

from support.spark.table_rig import (
    KINDS,
    Kind,
    TasksHere,
    expected_rows,
    options,
    rows_of,
    run_here,
    table_of,
)

from aerotape.spark.tables import job
from aerotape.spark.tables.delta import DeltaRecordingTable
from aerotape.spark.tables.job import TableJob
from aerotape.spark.tables.writer import TaskOutcome

DAY_NS = 86_400 * 10**9
both = pytest.mark.parametrize("kind", KINDS)


def only(kind: Kind, archive_dir: Path, out: Path, **others: Any) -> Any:
    """Run a job over a directory with one recording."""
    [report] = run_here(kind, archive_dir, out, **others).recordings
    return report


@both
def test_rows_are_those_of_the_reader_once(kind: Kind, archive_dir: Path, out: Path) -> None:
    """Small recordings share files with their ids as a column, a large one has several files; a
    second job adds nothing."""
    for id in range(40):
        add_recording(archive_dir, fill(SegmentBuilder(), 3 + id % 5, seed=id))
    add_recording(archive_dir, fill(SegmentBuilder(), 1000))
    report = run_here(kind, archive_dir, out, partition_bytes=1 << 20)
    assert {each.result for each in report.recordings} == {"converted"}
    assert report.total("messages") == len(rows := expected_rows(archive_dir))
    assert rows_of(kind, out) == rows
    assert 1 < report.files < 12
    again = run_here(kind, archive_dir, out)
    assert {each.result for each in again.recordings} == {"up to date"}
    assert again.files == 0


@both
def test_a_message_that_has_not_ended_is_left_to_the_next_job(
    kind: Kind, archive_dir: Path, out: Path
) -> None:
    """The table ends with a complete message; the rest is added later, once."""
    builder = fill(SegmentBuilder(), 20)
    begin = builder.frame(b"first half, ", flags=BEGIN)
    add_recording(archive_dir, builder, live=True)
    first = only(kind, archive_dir, out)
    assert (first.messages, first.to_position) == (20, begin)
    assert only(kind, archive_dir, out).messages == 0
    builder.frame(b"second half", flags=END)
    builder.write(archive_dir)
    second = only(kind, archive_dir, out)
    assert (second.messages, second.to_position) == (1, builder.position)
    assert rows_of(kind, out) == expected_rows(archive_dir)
    assert rows_of(kind, out)[-1]["payload"] == b"first half, second half"
    assert only(kind, archive_dir, out).result == "up to date"


def replace_archive(archive_dir: Path, builder: SegmentBuilder) -> None:
    """Create another recording with the same id."""
    for path in archive_dir.iterdir():
        path.unlink()
    add_recording(archive_dir, builder)


@both
@pytest.mark.parametrize(
    ("replacement", "count", "seed", "complaint"),
    [
        (SegmentBuilder(), 50, 1, "it ends at"),
        (SegmentBuilder(stream_id=7), 200, 1, "it is not the recording that the table has"),
        (SegmentBuilder(), 200, 9, "its message at position"),
    ],
    ids=["shorter", "another", "other-bytes"],
)
def test_a_changed_recording_is_refused_or_replaced(
    kind: Kind,
    archive_dir: Path,
    out: Path,
    replacement: SegmentBuilder,
    count: int,
    seed: int,
    complaint: str,
) -> None:
    """A recording that differs from its rows in the table is left out and others are converted;
    with the option its rows are replaced, and rows of others in the same file are retained."""
    add_recording(archive_dir, fill(SegmentBuilder(), 100))
    add_recording(archive_dir, fill(SegmentBuilder(), 5))
    run_here(kind, archive_dir, out, partition_bytes=1 << 20)
    before = rows_of(kind, out)
    replace_archive(archive_dir, fill(replacement, count, seed))
    for _ in range(2):
        add_recording(archive_dir, fill(SegmentBuilder(), 5))
    refused, same, added = run_here(kind, archive_dir, out).recordings
    assert refused.result == "left out"
    assert complaint in str(refused.error)
    assert "--if-changed replace" in str(refused.error)
    assert (same.result, added.messages) == ("up to date", 5)
    assert [row for row in rows_of(kind, out) if row["recording_id"] < 2] == before

    if kind == "folder":
        with pytest.raises(ConfigurationError, match="cannot replace rows: use a Delta table"):
            run_here(kind, archive_dir, out, replace_changed=True)
        return
    replaced = run_here(kind, archive_dir, out, replace_changed=True).recordings[0]
    assert (replaced.result, replaced.error) == ("replaced", None)
    assert rows_of(kind, out) == expected_rows(archive_dir)
    assert run_here(kind, archive_dir, out).files == 0


@both
def test_purged_rows_stay_and_lost_positions_are_reported(
    kind: Kind, archive_dir: Path, out: Path
) -> None:
    """Rows of deleted segments remain, also when the rest is overwritten; a gap is reported."""
    builder = fill(SegmentBuilder(), 300)
    add_recording(archive_dir, builder)
    only(kind, archive_dir, out, to_position=100_000)
    old = rows_of(kind, out)
    for base in (0, 131_072):
        (archive_dir / f"0-{base}.rec").unlink()
    with Catalog.open(archive_dir) as catalog:
        catalog.set_start_position(0, 262_144)
    report = only(kind, archive_dir, out)
    assert report.warnings == ("positions 100000 to 262144 were purged before they were converted",)
    assert rows_of(kind, out) == old + expected_rows(archive_dir)
    assert only(kind, archive_dir, out).result == "up to date"
    if kind == "delta":
        assert only(kind, archive_dir, out, overwrite=True).result == "replaced"
        assert rows_of(kind, out) == old + expected_rows(archive_dir)


@both
def test_a_recording_that_cannot_be_read_is_left_out(
    kind: Kind, archive_dir: Path, out: Path
) -> None:
    """None of its rows are in the table, also when it would share a file with others."""
    builders = [fill(SegmentBuilder(checksum=crc32), count) for count in (5, 6, 300, 7)]
    for builder in builders:
        add_recording(archive_dir, builder)
    for builder in builders[1:3]:
        path = builder.segment_path(archive_dir, builder.messages[-2].position)
        data = bytearray(path.read_bytes())
        at = builder.messages[-2].position % builder.segment_length
        data[at + 33] ^= 1
        data[at + 12] ^= 1
        path.write_bytes(data)
    reports = run_here(kind, archive_dir, out, checksum="crc-32").recordings
    assert [each.result for each in reports] == ["converted", "left out", "left out", "converted"]
    assert {row["recording_id"] for row in rows_of(kind, out)} == {0, 3}


@both
def test_dates_are_those_of_the_positions(
    kind: Kind, archive_dir: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table by date has each row in the partition of its date, as readers of others see it."""
    builder = fill(SegmentBuilder(), 200)
    add_recording(archive_dir, builder)
    midnight = builder.messages[77].position
    times = [(0, 0), (midnight - 1000, DAY_NS - 1), (midnight, DAY_NS)]
    monkeypatch.setattr(job, "recorded_times", lambda _: times)
    dated: dict[str, Any] = {"by_date": True, "partition_bytes": 1 << 30}
    report = run_here(kind, archive_dir, out, **dated)
    assert report.files == 2
    assert rows_of(kind, out) == expected_rows(archive_dir)
    first, second = sorted(path for path in out.iterdir() if path.name.startswith("date="))
    assert (first.name, second.name) == ("date=1970-01-01", "date=1970-01-02")
    assert run_here(kind, archive_dir, out, **dated).files == 0
    with pytest.raises(ConfigurationError, match="partitioned by date: add --by-date"):
        run_here(kind, archive_dir, out)


@both
def test_different_columns_are_refused(kind: Kind, archive_dir: Path, out: Path) -> None:
    """Options with columns other than those of the table are refused without changes."""
    add_recording(archive_dir, fill(SegmentBuilder(), 20))
    run_here(kind, archive_dir, out)
    with pytest.raises(ConfigurationError, match=r"other columns .*\(_corrupt\)"):
        run_here(kind, archive_dir, out, mode="PERMISSIVE", checksum="crc-32")
    assert rows_of(kind, out) == expected_rows(archive_dir)


@both
def test_a_table_is_not_created_in_an_archive_or_over_other_files(
    kind: Kind, archive_dir: Path, out: Path
) -> None:
    """Both are refused before anything is written."""
    add_recording(archive_dir, fill(SegmentBuilder(), 2))
    with pytest.raises(ConfigurationError, match="archive directory: name another folder"):
        run_here(kind, archive_dir, archive_dir / "table")
    out.mkdir()
    (out / "sales.parquet").write_bytes(b"PAR1")
    with pytest.raises((ConfigurationError, StorageError), match="another folder"):
        run_here(kind, archive_dir, out)
    assert {path.name for path in out.iterdir()} - {"_aerotape.lock"} == {"sales.parquet"}


def test_a_dry_run_changes_nothing(archive_dir: Path, out: Path) -> None:
    """It reports what a job would do."""
    add_recording(archive_dir, fill(SegmentBuilder(), 20))
    for kind in KINDS:
        [plan] = plan_only(options(archive_dir), table_of(kind, out))
        assert (plan.action.value, len(plan.ranges)) == ("convert", 1)
    assert not out.exists()


def test_a_folder_has_one_writer(archive_dir: Path, out: Path) -> None:
    """A second job is refused while one runs; a killed job does not block the next."""
    add_recording(archive_dir, fill(SegmentBuilder(), 20))
    staged = out / "_staged" / "part-0.parquet"
    staged.parent.mkdir(parents=True)
    staged.write_bytes(b"PAR1")
    with TableJob(options(archive_dir), table_of("folder", out), TasksHere()):
        assert not staged.exists()
        with pytest.raises(TableInUseError, match="another job is writing"):
            run_here("folder", archive_dir, out)
    run_here("folder", archive_dir, out)
    assert rows_of("folder", out) == expected_rows(archive_dir)


class Interfering(TasksHere):
    """Tasks during which another job adds the same recordings."""

    def __init__(self, archive_dir: Path, out: Path) -> None:
        self.archive_dir, self.out, self.left = archive_dir, out, 1

    def run(self, *args: Any) -> list[TaskOutcome]:
        outcomes = super().run(*args)
        if self.left:
            self.left -= 1
            run_here("delta", self.archive_dir, self.out)
        return outcomes


@pytest.mark.parametrize("exists", [False, True])
def test_two_writers_of_a_delta_table_add_each_message_once(
    archive_dir: Path, out: Path, exists: bool
) -> None:
    """The commit that comes second fails, its files are deleted, and the job plans again."""
    if exists:
        add_recording(archive_dir, fill(SegmentBuilder(), 3))
        run_here("delta", archive_dir, out)
    add_recording(archive_dir, fill(SegmentBuilder(), 300))
    table, tasks = DeltaRecordingTable(out), Interfering(archive_dir, out)
    with TableJob(options(archive_dir), table, tasks) as running:
        report = running.run()
    assert {each.result for each in report.recordings} == {"up to date"}
    assert rows_of("delta", out) == expected_rows(archive_dir)
    from deltalake import DeltaTable

    present = {str(path) for path in out.rglob("*.parquet")}
    assert present == set(DeltaTable(out).file_uris())


def test_a_repeated_conflict_is_an_error(
    archive_dir: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some attempts the job fails and names the table."""
    add_recording(archive_dir, fill(SegmentBuilder(), 3))

    def conflict(*_: object) -> None:
        raise TableChangedError(f"cannot commit to Delta table {out}: conflict")

    monkeypatch.setattr(DeltaRecordingTable, "commit", conflict)
    with pytest.raises(TableChangedError, match=str(out)):
        run_here("delta", archive_dir, out)


def test_compacting_and_vacuuming_change_no_rows(archive_dir: Path, out: Path) -> None:
    """Files become fewer, later jobs and replacements still work, and old files are deleted."""
    for seed in range(3):
        add_recording(archive_dir, fill(SegmentBuilder(), 30, seed))
        run_here("delta", archive_dir, out)
    from deltalake import DeltaTable

    table = DeltaRecordingTable(out)
    DeltaTable(out).create_checkpoint()
    assert table.compact()["numFilesRemoved"] == 3
    assert rows_of("delta", out) == expected_rows(archive_dir)
    assert run_here("delta", archive_dir, out).files == 0
    assert run_here("delta", archive_dir, out, overwrite=True, recording_ids=(1,)).files == 1
    assert rows_of("delta", out) == expected_rows(archive_dir)
    assert len(table.vacuum(0)) == 4
    assert rows_of("delta", out) == expected_rows(archive_dir)


@pytest.mark.parametrize("partition_bytes", [64 << 10, 1 << 30])
def test_overwriting_in_several_commits_replaces_each_row_once(
    archive_dir: Path, out: Path, partition_bytes: int
) -> None:
    """Recordings that share a file with others of a later commit, one of which is empty now."""
    for seed in range(10):
        add_recording(archive_dir, fill(SegmentBuilder(), 100, seed))
    run_here("delta", archive_dir, out, partition_bytes=1 << 30)
    with Catalog.open(archive_dir) as catalog:
        catalog.set_stop_position(4, 0)
    report = run_here(
        "delta",
        archive_dir,
        out,
        overwrite=True,
        replace_changed=True,
        partition_bytes=partition_bytes,
    )
    assert {each.result for each in report.recordings} == {"replaced"}
    assert report.total("messages") == 900
    assert rows_of("delta", out) == expected_rows(archive_dir)


def test_two_jobs_that_replace_rows_of_one_file(archive_dir: Path, out: Path) -> None:
    """The second commit copies what the first has left of the file."""
    for seed in range(4):
        add_recording(archive_dir, fill(SegmentBuilder(), 20, seed))
    run_here("delta", archive_dir, out, partition_bytes=1 << 30)

    class Replacing(TasksHere):
        def run(self, *args: Any) -> list[TaskOutcome]:
            outcomes = super().run(*args)
            run_here("delta", archive_dir, out, overwrite=True, recording_ids=(1,))
            DeltaRecordingTable(out).compact()
            return outcomes

    job_options = options(archive_dir, overwrite=True, recording_ids=(2,))
    with TableJob(job_options, DeltaRecordingTable(out), Replacing()) as running:
        assert [each.result for each in running.run().recordings] == ["replaced"]
    assert rows_of("delta", out) == expected_rows(archive_dir)


@both
def test_positions_in_any_order(kind: Kind, archive_dir: Path, out: Path) -> None:
    """What a first job has left out comes later; a Delta table refuses a hole."""
    builder = fill(SegmentBuilder(), 100)
    add_recording(archive_dir, builder)
    third, middle, end = (builder.messages[index].position for index in (30, 60, 90))
    assert only(kind, archive_dir, out, from_position=middle, to_position=end).messages == 30
    before = only(kind, archive_dir, out, to_position=third)
    if kind == "delta":
        assert f"positions {third} to {middle} would be missing" in str(before.error)
    else:
        assert before.messages == 30
    assert only(kind, archive_dir, out).error is None
    assert rows_of(kind, out) == expected_rows(archive_dir)


class Dying(TasksHere):
    """Tasks after which the job ends, as if it were killed."""

    def run(self, *args: Any) -> list[TaskOutcome]:
        super().run(*args)
        raise KeyboardInterrupt


@both
@pytest.mark.parametrize("seed", range(4))
def test_random_histories_agree_with_a_model(
    kind: Kind, archive_dir: Path, out: Path, seed: int
) -> None:
    """Recordings grow, stop, are purged, truncated and extended; jobs end well or are killed. The
    table has each message that any job has seen, once, and what was replaced only as it is now."""
    rng = random.Random(seed)
    builders: list[SegmentBuilder] = []
    starts: dict[int, int] = {}
    changed: set[int] = set()
    model: dict[tuple[int, int], dict[str, Any]] = {}

    def update() -> None:
        current = {
            (row["recording_id"], row["position"]): row for row in expected_rows(archive_dir)
        }
        for id in changed:
            for key in [key for key in model if key[0] == id and key[1] >= starts[id]]:
                del model[key]
        changed.clear()
        model.update(current)

    for _ in range(25):
        what = rng.choice(["add", "grow", "grow", "truncate", "purge", "job", "job", "kill"])
        if what == "truncate" and kind == "folder":
            continue  # it cannot replace rows
        if what == "add" or not builders:
            builder = fill(SegmentBuilder(), rng.randrange(60), rng.randrange(99))
            add_recording(archive_dir, builder, live=True)
            starts[len(builders)] = 0
            builders.append(builder)
            continue
        id = rng.randrange(len(builders))
        builder = builders[id]
        seen = [key for key in model if key[0] == id]
        match what:
            case "grow":
                fill(builder, rng.randrange(80), rng.randrange(99))
                builder.write(archive_dir)
            case "truncate":
                later = [m for m in builder.messages if m.position > starts[id]]
                if not later:
                    continue
                cut = rng.choice(later).position
                builder.position = cut
                builder.frames = {at: f for at, f in builder.frames.items() if at < cut}
                builder.messages = [m for m in builder.messages if m.position < cut]
                fill(builder, 60, rng.randrange(100, 999))
                for path in archive_dir.glob(f"{id}-*.rec"):
                    if int(path.stem.partition("-")[2]) >= starts[id]:
                        path.unlink()
                builder.write(archive_dir)
                if any(key[1] >= cut for key in seen):
                    changed.add(id)
            case "purge":
                bases = range(0, builder.position - builder.segment_length, builder.segment_length)
                for base in bases:
                    (archive_dir / f"{id}-{base}.rec").unlink(missing_ok=True)
                    builder.frames = {
                        at: f
                        for at, f in builder.frames.items()
                        if at >= base + builder.segment_length
                    }
                    starts[id] = base + builder.segment_length
                with Catalog.open(archive_dir) as catalog:
                    catalog.set_start_position(id, starts[id])
            case "kill":
                table = table_of(kind, out)
                with (
                    pytest.raises(KeyboardInterrupt),
                    TableJob(options(archive_dir), table, Dying()) as running,
                ):
                    running.run()
                    raise KeyboardInterrupt
            case "job":
                replaces = kind == "delta"
                reports = run_here(kind, archive_dir, out, replace_changed=replaces).recordings
                assert not [each.error for each in reports if each.error]
                update()
                rows = rows_of(kind, out) if model else []
                assert [(row["recording_id"], row["position"]) for row in rows] == sorted(model)
                assert rows == [model[key] for key in sorted(model)]


def test_a_vacuum_deletes_the_files_of_a_killed_job(archive_dir: Path, out: Path) -> None:
    """No commit has them; the files of the table stay."""
    from deltalake import DeltaTable

    add_recording(archive_dir, fill(SegmentBuilder(), 30))
    run_here("delta", archive_dir, out)
    add_recording(archive_dir, fill(SegmentBuilder(), 30))
    with (
        pytest.raises(KeyboardInterrupt),
        TableJob(options(archive_dir), DeltaRecordingTable(out), Dying()) as running,
    ):
        running.run()
    committed = set(DeltaTable(out).file_uris())
    assert {str(path) for path in out.glob("*.parquet")} > committed
    DeltaRecordingTable(out).vacuum(0)
    assert {str(path) for path in out.glob("*.parquet")} == committed
