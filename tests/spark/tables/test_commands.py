"""Table jobs in Spark, and their commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder, crc32

import aerotape
from aerotape.errors import AerotapeError
from aerotape.replay.offline.directory import open_directory
from aerotape.replay.offline.reader import recording_range
from aerotape.replay.offline.selection import Selection
from aerotape.spark.source.options import ReadOptions

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from support.spark.table_rig import expected_rows, options, rows_of

from aerotape.spark.tables.delta import DeltaRecordingTable
from aerotape.spark.tables.folder import ParquetFolder
from aerotape.spark.tables.job import JobReport, convert
from aerotape.spark.tables.output import OutputStore
from aerotape.spark.tables.plan import JobOptions
from aerotape.spark.tables.writer import Naming, Piece, WriteSettings, write_files
from aerotape.tools._cli.main import main

pytestmark = pytest.mark.spark

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
    return convert(JobOptions(read=ReadOptions(archive_dir=str(archive_dir))), ParquetFolder(out))


def damage(archive_dir: Path, recording_id: int, position: int) -> None:
    """Flip a bit of a payload in a recording's first segment."""
    path = min(archive_dir.glob(f"{recording_id}-*.rec"), key=lambda p: int(p.stem.split("-")[1]))
    data = bytearray(path.read_bytes())
    data[position - int(path.stem.split("-")[1]) + 32] ^= 1
    path.write_bytes(data)


def test_tables_are_read_by_other_engines(
    spark: SparkSession, archive_dir: Path, tmp_path: Path
) -> None:
    """Spark tasks write either table; Spark, pyarrow, DuckDB and Polars count the same rows by
    recording, with the recording id as a long; files are sorted and have statistics."""
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    read = ReadOptions(archive_dir=str(archive_dir), checksum="crc-32", partition_bytes=200 * 1024)
    folder, delta = tmp_path / "out", tmp_path / "delta"
    for table in (ParquetFolder(folder), DeltaRecordingTable(delta)):
        report = convert(JobOptions(read=read), table)
        assert [each.messages for each in report.recordings] == [300, 200, 0]
        assert report.files > 2
        expected = expected_rows(archive_dir)
        assert report.total("payload_bytes") == sum(row["length"] for row in expected)
    assert rows_of("folder", folder) == rows_of("delta", delta) == expected

    counts = {0: 300, 1: 200}
    (folder / "_staged").mkdir(exist_ok=True)
    (folder / "_staged" / "unfinished.parquet").write_bytes(b"PAR1")
    frame = spark.read.parquet(str(folder))
    assert frame.schema["recording_id"].dataType.simpleString() == "bigint"
    by_id = frame.groupBy("recording_id").count().collect()
    assert {row["recording_id"]: row["count"] for row in by_id} == counts
    counting = "SELECT recording_id, count(*) FROM"
    pattern = f"{folder}/*.parquet"
    assert dict(duckdb.sql(f"{counting} '{pattern}' GROUP BY 1").fetchall()) == counts
    polars_rows = polars.scan_parquet(pattern).group_by("recording_id").len().collect().rows()
    assert dict(polars_rows) == counts
    for file in folder.glob("*.parquet"):
        metadata = parquet.read_metadata(file)
        group = metadata.row_group(0)
        assert group.column(0).compression == "ZSTD"
        assert group.sorting_columns == (parquet.SortingColumn(0), parquet.SortingColumn(1))
        [entry] = json.loads(metadata.metadata[b"aerotape.recordings"])
        begin, end = entry["range"]
        assert begin <= group.column(1).statistics.min <= group.column(1).statistics.max < end


def read_messages_with_payload(archive_dir: Path) -> Any:
    recording = open_directory(archive_dir).recording(0)
    return (message.position for message in recording.messages() if message.length)


def test_a_repeated_attempt_replaces_its_own_file(archive_dir: Path, tmp_path: Path) -> None:
    """A file in an object store is named by its content, others are unique; a task that fails
    leaves none.
    """
    part = recording_range(open_directory(archive_dir).recording(0))
    for naming, count in ((Naming.STAGED, 2), (Naming.BY_CONTENT, 1), (Naming.UNIQUE, 2)):
        out = tmp_path / naming.name
        settings = WriteSettings(
            store=OutputStore.open(out),
            selection=Selection(columns=options(archive_dir).schema().names, checksum="crc-32"),
            payloads=None,
            identities={0: 1},
            naming=naming,
        )
        piece = Piece(part, None, True)
        [first], [second] = (list(write_files(iter([(piece,)]), settings)) for _ in range(2))
        assert first.file is not None
        assert second.file is not None
        assert (first.file.rows, first.file.size) == (second.file.rows, second.file.size)
        assert sum(1 for _ in out.rglob("*.parquet")) == count
    damage(archive_dir, 0, position=next(read_messages_with_payload(archive_dir)))
    [failed] = write_files(iter([(piece,)]), settings)
    assert failed.file is None
    assert "checksum" in str(failed.ranges[0].error)
    assert sum(1 for _ in out.rglob("*.parquet")) == 2


def test_a_failed_job_leaves_no_files_and_reports_the_reason(
    spark: SparkSession, archive_dir: Path, tmp_path: Path
) -> None:
    """When tasks cannot write (here a path too long for the system), the error is one line with
    the reason, and no files are left."""
    out = tmp_path
    longest = 4095 - len("/archive.catalog")
    while len(str(out)) < longest:
        out /= "d" * min(200, max(1, longest - len(str(out)) - 1))
    with pytest.raises(AerotapeError, match=r"Spark job failed: OSError: .*File name too long"):
        job(archive_dir, out)
    assert not list(out.rglob("*.parquet"))


def command(*arguments: object, name: str = "parquet") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "aerotape", name, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.spark
def test_standard_output_has_only_the_report(archive_dir: Path, tmp_path: Path) -> None:
    """With --json standard output is one JSON document, whatever Spark and Java print; a
    recording that was left out is named on standard error and makes the exit code 3."""
    damage(archive_dir, 0, position=next(read_messages_with_payload(archive_dir)))
    done = command(archive_dir, tmp_path / "out", "--checksum", "crc-32", "--json",
                   "--master", "local[1]")  # fmt: skip
    assert done.returncode == 3, done.stderr
    report = json.loads(done.stdout)
    assert (report["messages"], report["out_dir"]) == (200, str(tmp_path / "out"))
    assert [r["recording_id"] for r in report["recordings"] if r["error"]] == [0]
    assert "left out: recording 0: frame checksum" in done.stderr
    rows = [row for row in expected_rows(archive_dir) if row["recording_id"] == 1]
    assert rows_of("folder", tmp_path / "out") == rows


def test_errors_of_the_command_are_one_line(archive_dir: Path, tmp_path: Path) -> None:
    """Usage errors have exit code 2, a directory that is not an archive 1, without a traceback."""
    for arguments, code, complaint in [
        ((tmp_path, tmp_path / "out"), 1, "no catalog"),
        ((archive_dir, tmp_path / "out", "--recording-ids", "a"), 2, "not a whole number"),
        ((archive_dir, tmp_path / "out", "--partition-bytes", "0"), 2, "is not a positive number"),
        ((archive_dir, archive_dir / "0-0.rec"), 2, "is a file"),
        ((archive_dir, tmp_path / "out", "--recording-ids", "9"), 1, "no recording with id 9"),
        ((archive_dir, tmp_path / "out", "--from-position", "9", "--to-position", "8"), 2, "after"),
        ((archive_dir, tmp_path / "out", "--mode", "PERMISSIVE"), 2, "give --checksum too"),
        ((archive_dir, tmp_path / "out", "--template", "Order"), 2, "give --schema too"),
        ((archive_dir, tmp_path / "out", "--watch", "0"), 2, "must be positive"),
    ]:
        done = command(*arguments)
        assert done.returncode == code, done.stderr
        assert complaint in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""


@pytest.mark.parametrize(("size", "warns"), [("4k", True), ("64k", False)])
def test_a_partition_below_a_term_is_a_warning(
    archive_dir: Path, out: Path, size: str, warns: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """It has the effect of the term length, which the line names."""
    arguments = ["parquet", str(archive_dir), str(out), "--dry-run", "--partition-bytes", size]
    assert main(arguments) == 0
    lines = capfd.readouterr().err.splitlines()
    expected = "warning: --partition-bytes 4096 has the effect of 65536"
    assert [expected in line for line in lines] == [True] * warns


@pytest.mark.spark
def test_an_interrupt_while_spark_starts_ends_the_jvm(archive_dir: Path, tmp_path: Path) -> None:
    """Ctrl-C ends the command with its exit code, says so at once, ends the JVM, and leaves
    nothing of a first run."""
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
        text = diagnostics.read()
    assert b"Traceback" not in text
    assert b"stopping" in text
    assert not out.exists()


@pytest.mark.spark
def test_watching_continues_until_a_signal(archive_dir: Path, tmp_path: Path) -> None:
    """Messages recorded meanwhile are converted by one Spark session; SIGTERM ends it with a report
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
        for path in aside.iterdir():  # the command may list the directory at any moment
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
    rows = [row for row in expected_rows(archive_dir) if row["recording_id"] in (1, 3)]
    assert rows_of("folder", out) == rows


def test_a_dry_run_reports_what_a_job_would_do(archive_dir: Path, tmp_path: Path) -> None:
    """It prints a row for each recording, without starting Spark or creating a folder."""
    done = command(archive_dir, tmp_path / "out", "--dry-run", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    assert [(row["recording_id"], row["action"]) for row in rows] == [
        (0, "convert"), (1, "convert"), (2, "up to date"),
    ]  # fmt: skip
    assert rows[1]["ranges"] == [f"98304-{98_304 + rows[1]['recording_bytes']}"]
    none = command(archive_dir, tmp_path / "out", "--dry-run", "--json", "--alias", "none")
    assert (none.returncode, json.loads(none.stdout)) == (0, [])
    assert none.stderr == f"no recording of {archive_dir} is selected\n"
    assert not (tmp_path / "out").exists()


def test_the_table_command_writes_and_maintains_a_delta_table(
    spark: SparkSession, archive_dir: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """After two runs in the active session, compaction and vacuum, the rows are the reader's."""
    out = tmp_path / "delta"
    arguments = ["table", str(archive_dir), str(out), "--partition-bytes", "64k"]
    arguments += ["--master", str(spark.sparkContext.master)]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["messages"] == 500
    add_recording(archive_dir, fill(SegmentBuilder(), 50, 3))
    assert main([*arguments, "--compact", "--vacuum", "0"]) == 0
    printed = capfd.readouterr().err
    assert "files became 1" in printed
    assert "files deleted" in printed
    assert rows_of("delta", out) == expected_rows(archive_dir)
    assert sum(1 for _ in out.glob("*.parquet")) == 1
    assert main(["table", str(archive_dir), str(archive_dir / "0-0.rec")]) == 2
    assert "is a file" in capfd.readouterr().err
