"""The Parquet job and its command."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import BEGIN, SegmentBuilder, crc32

import aerotape
from aerotape.errors import AerotapeError, ConfigurationError, UnknownRecordingError
from aerotape.replay.offline.directory import open_directory
from aerotape.replay.offline.reader import read_messages, recording_range
from aerotape.spark.source.options import ReadOptions

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyarrow import dataset, parquet

from aerotape.spark.parquet.job import JobReport, convert
from aerotape.spark.parquet.manifest import MANIFEST_NAME
from aerotape.spark.parquet.plan import JobOptions
from aerotape.spark.parquet.store import OutputStore
from aerotape.spark.parquet.writer import FILE_COLUMNS, WriteSettings, write_ranges

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(aerotape.__file__).parents[1]


@pytest.fixture
def archive_dir(tmp_path: Path) -> Path:
    """Three recordings: one from 0, one from the middle of a term, one empty."""
    directory = tmp_path / "archive"
    directory.mkdir()
    add_recording(directory, fill(SegmentBuilder(checksum=crc32), 300))
    add_recording(directory, fill(SegmentBuilder(checksum=crc32, start_position=98_304), 200, 2))
    add_recording(directory, SegmentBuilder())
    return directory


def job(archive_dir: Path, out: Path | str) -> JobReport:
    return convert(JobOptions(read=ReadOptions(archive_dir=str(archive_dir))), out)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = dataset.dataset(folder, format="parquet").to_table().to_pylist()
    return rows


def expected_rows(archive_dir: Path, recording_id: int) -> list[dict[str, Any]]:
    recording = open_directory(archive_dir).recording(recording_id)
    rows = [{**m._asdict(), "length": m.length} for m in read_messages(recording)]
    return [{name: row[name] for name in FILE_COLUMNS} for row in rows]


def damage(archive_dir: Path, recording_id: int, position: int) -> None:
    """Flip a bit of a payload in a recording's first segment."""
    path = min(archive_dir.glob(f"{recording_id}-*.rec"), key=lambda p: int(p.stem.split("-")[1]))
    data = bytearray(path.read_bytes())
    data[position - int(path.stem.split("-")[1]) + 32] ^= 1
    path.write_bytes(data)


def test_a_directory_becomes_a_partitioned_table(
    spark: SparkSession, archive_dir: Path, tmp_path: Path
) -> None:
    """Every message once, several files a recording, readable by pyarrow and Spark; manifest,
    key-value metadata, row-group statistics and report say what is there."""
    out = tmp_path / "out"
    options = ReadOptions(
        archive_dir=str(archive_dir), checksum="crc-32", partition_bytes=200 * 1024
    )
    report = convert(JobOptions(read=options), out)

    assert sorted(path.name for path in out.iterdir()) == [
        "recording_id=0", "recording_id=1", "recording_id=2",
    ]  # fmt: skip
    for recording_id in (0, 1):
        assert rows_of(out / f"recording_id={recording_id}") == expected_rows(
            archive_dir, recording_id
        )
    counts = {
        row["recording_id"]: row["count"]
        for row in spark.read.parquet(str(out)).groupBy("recording_id").count().collect()
    }
    assert counts == {0: 300, 1: 200}

    manifest = json.loads((out / "recording_id=1" / MANIFEST_NAME).read_text())
    recording = open_directory(archive_dir).recording(1)
    stop_position = recording.descriptor.stop_position
    assert (manifest["from_position"], manifest["to_position"]) == (98_304, stop_position)
    assert manifest["recording"]["original_channel"] == recording.descriptor.original_channel
    assert manifest["rows"] == 200
    assert {entry["checksum"] for entry in manifest["files"]} == {"crc-32"}
    files = sorted((out / "recording_id=1").glob("*.parquet"))
    assert [file["name"] for file in manifest["files"]] == [file.name for file in files]
    assert len(files) > 1
    for entry, file in zip(manifest["files"], files, strict=True):
        metadata = parquet.read_metadata(file)
        assert metadata.num_rows == entry["rows"]
        key_values = metadata.metadata
        assert json.loads(key_values[b"aerotape.recording"]) == manifest["recording"]
        assert int(key_values[b"aerotape.from_position"]) == entry["from_position"]
        group = metadata.row_group(0)
        assert group.column(0).compression == "ZSTD"
        assert entry["from_position"] <= group.column(0).statistics.min
        assert group.column(0).statistics.max < entry["to_position"]
        assert group.sorting_columns == (parquet.SortingColumn(0),)

    assert json.loads((out / "recording_id=2" / MANIFEST_NAME).read_text())["files"] == []
    [first, second, empty] = report.recordings
    assert (first.messages, second.messages, empty.messages) == (300, 200, 0)
    assert first.payload_bytes == sum(row["length"] for row in expected_rows(archive_dir, 0))
    assert second.recording_bytes == stop_position - 98_304
    assert second.parquet_bytes == sum(file.stat().st_size for file in files)
    assert report.total("messages") == 500


def test_readers_pass_over_what_lies_aside(
    spark: SparkSession, archive_dir: Path, tmp_path: Path
) -> None:
    """While a job is at work, or after it was killed: Spark, pyarrow, DuckDB and Polars see the
    table and nothing of its folder for work."""
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    out = tmp_path / "out"
    job(archive_dir, out)
    file = next(out.rglob("*.parquet"))
    aside = out / "_aerotape" / "0123456789ab" / "attempts" / "0"
    aside.mkdir(parents=True)
    shutil.copy(file, aside / "0-00112233445566778899aabbccddeeff")
    (out / "_aerotape" / "lock").write_text("{}")
    assert spark.read.parquet(str(out)).count() == 500
    assert dataset.dataset(out, format="parquet", partitioning="hive").count_rows() == 500
    for pattern in ("recording_id=*/*.parquet", "**/*.parquet"):
        counted = duckdb.sql(
            f"SELECT count(*) FROM read_parquet('{out}/{pattern}', hive_partitioning = true)"
        )
        assert counted.fetchall() == [(500,)]
        scanned = polars.scan_parquet(out / pattern, hive_partitioning=True)
        assert scanned.select(polars.len()).collect().item() == 500
    # What is put together beside the table's folder goes in there only where it cannot be made.
    staged = out / "_aerotape" / "0123456789ab" / "staged" / "0"
    staged.mkdir(parents=True)
    shutil.copy(file, staged / file.name)
    assert spark.read.parquet(str(out)).count() == 500
    assert dataset.dataset(out, format="parquet", partitioning="hive").count_rows() == 500
    pattern = f"{out}/recording_id=*/*.parquet"
    assert duckdb.sql(f"SELECT count(*) FROM '{pattern}'").fetchall() == [(500,)]
    assert polars.scan_parquet(pattern).select(polars.len()).collect().item() == 500


def test_a_damaged_recording_is_left_out_and_named(
    spark: SparkSession, archive_dir: Path, tmp_path: Path
) -> None:
    """One bad frame keeps its recording out of the table, whole, and no other."""
    damage(archive_dir, 0, position=next(read_messages_with_payload(archive_dir)))
    options = ReadOptions(archive_dir=str(archive_dir), checksum="crc-32")
    report = convert(JobOptions(read=options), tmp_path / "out")
    assert [recording.error is None for recording in report.recordings] == [False, True, True]
    assert "recording 0: frame checksum" in str(report.recordings[0].error)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "recording_id=1", "recording_id=2",
    ]  # fmt: skip


def read_messages_with_payload(archive_dir: Path) -> Any:
    recording = open_directory(archive_dir).recording(0)
    return (message.position for message in read_messages(recording) if message.length)


def test_a_second_job_converts_only_what_is_new(
    spark: SparkSession, archive_dir: Path, tmp_path: Path
) -> None:
    """Finished recordings are left alone, whatever was recorded since is added, and --overwrite
    makes new files of everything."""
    out = tmp_path / "out"
    job(archive_dir, out)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    again = job(archive_dir, out)
    assert [each.result for each in again.recordings] == ["up to date"] * 3
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == before

    builder = fill(SegmentBuilder(checksum=crc32), 50, 3)
    add_recording(archive_dir, builder)
    added = job(archive_dir, out)
    assert [each.result for each in added.recordings] == [*["up to date"] * 3, "converted"]
    assert rows_of(out / "recording_id=3") == expected_rows(archive_dir, 3)

    renewed = convert(
        JobOptions(read=ReadOptions(archive_dir=str(archive_dir)), overwrite=True), out
    )
    assert [each.result for each in renewed.recordings] == ["converted anew"] * 4
    assert set(out.rglob("*.parquet")).isdisjoint(before)
    assert rows_of(out / "recording_id=1") == expected_rows(archive_dir, 1)
    assert sorted(path.name for path in out.iterdir()) == [f"recording_id={n}" for n in range(4)]


def test_fragments_that_were_left_out_are_warned_of(spark: SparkSession, tmp_path: Path) -> None:
    """A stopped recording that ends within a message says so; a live one does not."""
    archive_dir = tmp_path / "archive"
    archive_dir.mkdir()
    for live in (False, True):
        builder = fill(SegmentBuilder(), 5)
        builder.frame(b"the rest never came", flags=BEGIN)
        add_recording(archive_dir, builder, live=live)
    report = job(archive_dir, tmp_path / "out")
    assert [recording.messages for recording in report.recordings] == [5, 5]
    assert report.recordings[0].warnings == (
        "1 fragments of incompletely recorded messages left out",
    )
    assert report.recordings[1].warnings == ()


def test_repeated_attempts_do_not_share_files(archive_dir: Path, tmp_path: Path) -> None:
    """Two attempts at one range write two whole files, so that either can be taken; an attempt
    that fails leaves none."""
    part = recording_range(open_directory(archive_dir).recording(0))
    (tmp_path / "attempts").mkdir()
    settings = WriteSettings(OutputStore.open(tmp_path), {0: "attempts"}, "crc-32", {0: {}})
    [first] = write_ranges(iter([(part,)]), settings)
    [second] = write_ranges(iter([(part,)]), settings)
    assert first.path != second.path
    assert (first.rows, first.file_bytes) == (second.rows, second.file_bytes)
    damage(archive_dir, 0, position=next(read_messages_with_payload(archive_dir)))
    [failed] = write_ranges(iter([(part,)]), settings)
    assert failed.path is None
    assert "checksum" in str(failed.error)
    assert len(list((tmp_path / "attempts").iterdir())) == 2


def test_bad_places_are_refused_before_spark_starts(archive_dir: Path, tmp_path: Path) -> None:
    """A file in place of the folder, an unknown place, an unknown recording: a clear error."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigurationError, match="is a file"):
        job(archive_dir, tmp_path / "file")
    with pytest.raises(ConfigurationError, match="nowhere://bucket: "):
        job(archive_dir, "nowhere://bucket/table")
    with pytest.raises(UnknownRecordingError):
        convert(
            JobOptions(read=ReadOptions(archive_dir=str(archive_dir), recording_ids=(9,))),
            tmp_path / "out",
        )
    assert not (tmp_path / "out").exists()


def test_a_job_that_fails_leaves_nothing_and_says_why(
    spark: SparkSession, archive_dir: Path, tmp_path: Path
) -> None:
    """When tasks cannot write (here a path too long for the system), the error is one line with
    the reason, and nothing stays behind."""
    out = tmp_path
    longest = 4095 - len("/_aerotape/0123456789ab/attempts/0/") - 8
    while len(str(out)) < longest:
        out /= "d" * min(200, max(1, longest - len(str(out)) - 1))
    with pytest.raises(AerotapeError, match=r"Spark job failed: OSError: .*File name too long"):
        convert(JobOptions(read=ReadOptions(archive_dir=str(archive_dir), recording_ids=(0,))), out)
    assert list(out.iterdir()) == []


def test_a_recording_that_cannot_be_looked_at_does_not_stop_the_others(
    spark: SparkSession, archive_dir: Path, tmp_path: Path
) -> None:
    """A live recording whose segment cannot be read is named; the others are converted."""
    builder = fill(SegmentBuilder(), 5)
    add_recording(archive_dir, builder, live=True)
    segment = builder.segment_path(archive_dir, 0)
    segment.unlink()
    segment.mkdir()
    report = job(archive_dir, tmp_path / "out")
    assert [recording.error is None for recording in report.recordings] == [True, True, True, False]
    assert "recording 3" in str(report.recordings[3].error)
    assert str(segment) in str(report.recordings[3].error)


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "aerotape", "parquet", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.spark
def test_command_keeps_standard_output_for_the_report(archive_dir: Path, tmp_path: Path) -> None:
    """With --json standard output is one JSON document, whatever Spark and Java have to say; a
    recording that was left out is named on standard error and makes the exit code 3."""
    damage(archive_dir, 0, position=next(read_messages_with_payload(archive_dir)))
    done = command(archive_dir, tmp_path / "out", "--checksum", "crc-32", "--json",
                   "--master", "local[1]")  # fmt: skip
    assert done.returncode == 3, done.stderr
    report = json.loads(done.stdout)
    assert (report["messages"], report["out_dir"]) == (200, str(tmp_path / "out"))
    assert [r["recording_id"] for r in report["recordings"] if r["error"]] == [0]
    assert "left out: recording 0: frame checksum" in done.stderr
    assert rows_of(tmp_path / "out" / "recording_id=1") == expected_rows(archive_dir, 1)


def test_command_says_what_is_wrong_in_one_line(archive_dir: Path, tmp_path: Path) -> None:
    """Usage errors give exit code 2, a directory that is no archive 1, and no traceback."""
    for arguments, code, complaint in [
        ((tmp_path, tmp_path / "out"), 1, "no catalog"),
        ((archive_dir, tmp_path / "out", "--recording-ids", "a"), 2, "not a whole number"),
        ((archive_dir, tmp_path / "out", "--partition-bytes", "0"), 2, "is not a positive number"),
        ((archive_dir, archive_dir / "0-0.rec"), 2, "is a file"),
        ((archive_dir, tmp_path / "out", "--recording-ids", "9"), 1, "no recording with id 9"),
        ((archive_dir, tmp_path / "out", "--from-position", "9", "--to-position", "8"), 2, "after"),
        ((archive_dir, tmp_path / "out", "--mode", "PERMISSIVE"), 2, "give checksum too"),
        ((archive_dir, tmp_path / "out", "--template", "Order"), 2, "give the option schema too"),
        ((archive_dir, tmp_path / "out", "--watch", "0"), 2, "must be positive"),
    ]:
        done = command(*arguments)
        assert done.returncode == code, done.stderr
        assert complaint in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""


@pytest.mark.spark
def test_an_interrupt_while_spark_starts_leaves_no_jvm(archive_dir: Path, tmp_path: Path) -> None:
    """Ctrl-C ends the command quietly with its code, the JVM, and what was begun in OUT."""
    out = tmp_path / "out"
    job = subprocess.Popen(
        [sys.executable, "-m", "aerotape", "parquet", str(archive_dir), str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children")
    deadline = time.monotonic() + 60
    while not (started := children.read_text().split()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert started, "no JVM"
    time.sleep(0.3)
    job.send_signal(signal.SIGINT)
    assert job.wait(60) == 130
    assert [pid for pid in started if Path(f"/proc/{pid}").exists()] == []
    assert job.stderr is not None
    with job.stderr as diagnostics:
        assert b"Traceback" not in diagnostics.read()
    assert list(out.iterdir()) == []


@pytest.mark.spark
def test_watching_goes_on_until_it_is_ended(archive_dir: Path, tmp_path: Path) -> None:
    """What is recorded meanwhile is converted, by one Spark session; SIGTERM ends it with a report
    and exit code 0, and leaves nothing but the table."""
    builder = fill(SegmentBuilder(), 50, 3)
    add_recording(archive_dir, builder, live=True)
    out = tmp_path / "out"
    arguments = [archive_dir, out, "--watch", "0.2", "--min-bytes", "1", "--json",
                 "--recording-ids", "1,3", "--master", "local[1]"]  # fmt: skip
    job = subprocess.Popen(
        [sys.executable, "-m", "aerotape", "parquet", *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with job:
        assert job.stdout is not None
        first = [json.loads(job.stdout.readline()) for _ in range(2)]
        assert [(each["recording_id"], each["messages"]) for each in first] == [(1, 200), (3, 50)]
        fill(builder, 30, 4)
        aside = tmp_path / "aside"
        aside.mkdir()
        builder.write(aside)
        for path in aside.iterdir():  # the command may look at any moment
            path.replace(archive_dir / path.name)
        more: list[dict[str, Any]] = []
        while sum(each["messages"] for each in more) < 30:
            more.append(json.loads(job.stdout.readline()))
        assert {each["recording_id"] for each in more} == {3}
        assert more[-1]["to_position"] == builder.position
        job.send_signal(signal.SIGTERM)
        [totals] = [json.loads(line) for line in job.stdout.read().splitlines()]
        assert job.wait(60) == 0
    assert (totals["messages"], totals["files"]) == (280, sum(1 for _ in out.rglob("*.parquet")))
    assert rows_of(out / "recording_id=3") == expected_rows(archive_dir, 3)
    assert sorted(path.name for path in out.iterdir()) == ["recording_id=1", "recording_id=3"]


def test_a_dry_run_tells_what_is_to_be_done(archive_dir: Path, tmp_path: Path) -> None:
    """A row for each recording, no Spark, no folder."""
    done = command(archive_dir, tmp_path / "out", "--dry-run", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    assert [(row["recording_id"], row["action"]) for row in rows] == [
        (0, "convert"), (1, "convert"), (2, "convert"),
    ]  # fmt: skip
    assert rows[1]["ranges"] == [f"98304-{98_304 + rows[1]['recording_bytes']}"]
    assert not (tmp_path / "out").exists()
