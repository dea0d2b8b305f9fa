"""Second runs of the Parquet job, on recordings that have changed since the first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.mark_files import in_use
from support.builders.orders import SCHEMA, cancel, some_orders
from support.builders.segment_builder import BEGIN, END, SegmentBuilder, crc32
from support.builders.timed_directory import build

from aerotape.catalog.file.catalog import Catalog
from aerotape.codecs.sbe_tool import run_sbe_tool
from aerotape.errors import CatalogError, ConfigurationError
from aerotape.replay.offline.directory import open_directory
from aerotape.replay.offline.payload_columns import PayloadColumns
from aerotape.spark.source.options import ReadOptions

pytest.importorskip("pyarrow")

from pyarrow import dataset, parquet
from support.spark.parquet_rig import (
    TasksHere,
    expected_positions,
    expected_rows,
    only,
    positions_of,
    rows_of,
    run_here,
)

from aerotape.spark.parquet.job import ParquetJob, plan_only
from aerotape.spark.parquet.manifest import MANIFEST_NAME, Manifest, joined, missing
from aerotape.spark.parquet.plan import JobOptions
from aerotape.spark.parquet.writer import FILE_COLUMNS


def manifest_of(out: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((out / "recording_id=0" / MANIFEST_NAME).read_text())
    return document


def files_of(out: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}


@pytest.mark.parametrize("live", [True, False])
def test_a_message_that_has_not_ended_is_left_to_the_next_job(
    archive_dir: Path, out: Path, live: bool
) -> None:
    """The table ends with a whole message; the unfinished one is converted once, when it ends. In a
    stopped recording it is a warning."""
    builder = fill(SegmentBuilder(), 20)
    begin = builder.frame(b"first half, ", flags=BEGIN)
    add_recording(archive_dir, builder, live=live)
    first = only(archive_dir, out)
    assert (first.result, first.messages, first.to_position) == ("converted", 20, begin)
    warning = "1 fragments of incompletely recorded messages left out"
    assert first.warnings == (() if live else (warning,))
    files = files_of(out)
    assert only(archive_dir, out).result == "up to date"

    builder.frame(b"second half", flags=END)
    builder.write(archive_dir)
    if not live:
        with Catalog.open(archive_dir) as catalog:
            catalog.set_stop_position(0, builder.position)
    second = only(archive_dir, out)
    assert (second.messages, second.to_position) == (1, builder.position)
    assert files_of(out).items() > files.items()
    [row] = [row for row in rows_of(out / "recording_id=0") if row["position"] == begin]
    assert row["payload"] == b"first half, second half"
    assert positions_of(out, 0) == expected_positions(archive_dir, 0)
    assert only(archive_dir, out).result == "up to date"


def test_a_cut_within_an_unfinished_message(
    archive_dir: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A midnight, or the start of an earlier job, within an unfinished message: nothing is
    converted until it ends, and then it is converted once."""
    builder = fill(SegmentBuilder(), 20)
    begin = builder.frame(b"first part, ", flags=BEGIN)
    middle = builder.frame(b"second part, ", flags=0)
    add_recording(archive_dir, builder, live=True)
    day_ns = 86_400 * 10**9
    monkeypatch.setattr(
        "aerotape.spark.parquet.job.recorded_times", lambda _: [(0, 0), (middle, day_ns)]
    )
    first = only(archive_dir, out, by_date=True)
    assert (first.result, first.messages, first.to_position) == ("converted", 20, begin)
    assert only(archive_dir, out, by_date=True).result == "up to date"
    assert only(archive_dir, out, from_position=middle, by_date=True).result == "converted"
    assert only(archive_dir, out, by_date=True).result == "up to date"

    builder.frame(b"third part, ", flags=0)
    builder.write(archive_dir)
    more = only(archive_dir, out, by_date=True)
    assert (more.result, more.messages, more.to_position) == ("converted", 0, begin)
    assert only(archive_dir, out, by_date=True).result == "up to date"
    builder.frame(b"last part", flags=END)
    builder.message(b"the next")
    builder.write(archive_dir)
    last = only(archive_dir, out, by_date=True)
    assert (last.result, last.messages, last.warnings) == ("converted", 2, ())
    assert positions_of(out, 0) == expected_positions(archive_dir, 0)
    assert only(archive_dir, out, by_date=True).result == "up to date"


def test_a_recording_that_begins_with_such_a_message(archive_dir: Path, out: Path) -> None:
    """It has no rows, and is up to date."""
    builder = SegmentBuilder()
    builder.frame(b"first part, ", flags=BEGIN)
    add_recording(archive_dir, builder, live=True)
    assert only(archive_dir, out).messages == 0
    assert only(archive_dir, out).result == "up to date"
    builder.frame(b"second part", flags=END)
    builder.write(archive_dir)
    assert only(archive_dir, out).messages == 1
    assert only(archive_dir, out).result == "up to date"


def test_positions_may_be_converted_in_any_order(archive_dir: Path, out: Path) -> None:
    """The end first, then a part, then all: each message once, and only what is missing is read."""
    builder = fill(SegmentBuilder(start_position=98_304), 400)
    add_recording(archive_dir, builder)
    end, third = builder.position, (builder.position - 98_304) // 3
    assert only(archive_dir, out, from_position=end - third).recording_bytes == third
    assert only(archive_dir, out, to_position=98_304 + third - 5).recording_bytes == third - 5
    assert len(manifest_of(out)["ranges"]) == 2
    rest = only(archive_dir, out)
    assert rest.recording_bytes == end - 98_304 - 2 * third + 5
    assert positions_of(out, 0) == expected_positions(archive_dir, 0)
    assert manifest_of(out)["ranges"] == [{"from_position": 98_304, "to_position": end}]
    # Sorted by name is sorted by position: what readers do.
    assert rows_of(out / "recording_id=0") == expected_rows(archive_dir, 0)


def replace_archive(archive_dir: Path, builder: SegmentBuilder) -> None:
    """Replace a recording by another with the same id."""
    for path in archive_dir.iterdir():
        path.unlink()
    add_recording(archive_dir, builder)


@pytest.mark.parametrize(
    ("replacement", "complaint"),
    [
        (SegmentBuilder(), "it ends at"),
        (SegmentBuilder(stream_id=7), "it is another recording than the table's (stream_id 7"),
        (SegmentBuilder(), "its bytes before position"),
    ],
    ids=["shorter", "another", "other-bytes"],
)
def test_a_changed_source_is_refused_or_converted_anew(
    archive_dir: Path, out: Path, replacement: SegmentBuilder, complaint: str
) -> None:
    """A recording that differs from the table is left out, and others are converted; with the
    option its rows are replaced."""
    add_recording(archive_dir, fill(SegmentBuilder(), 100))
    add_recording(archive_dir, fill(SegmentBuilder(), 5))
    run_here(archive_dir, out)
    old, files = positions_of(out, 0), files_of(out)
    is_shorter = complaint.startswith("it ends")
    seed = 9 if complaint.startswith("its bytes") else 1
    replace_archive(archive_dir, fill(replacement, 50 if is_shorter else 200, seed))
    for _ in range(2):
        add_recording(archive_dir, fill(SegmentBuilder(), 5))
    refused, same, added = run_here(archive_dir, out).recordings
    assert refused.result == "left out"
    assert complaint in str(refused.error)
    assert "--if-changed reconvert" in str(refused.error)
    assert (same.result, added.messages) == ("up to date", 5)
    assert positions_of(out, 0) == old
    assert files_of(out).items() > files.items()

    again = run_here(archive_dir, out, reconvert_changed=True).recordings[0]
    assert (again.result, again.error) == ("converted anew", None)
    assert rows_of(out / "recording_id=0") == expected_rows(archive_dir, 0)


def test_a_truncated_recording_that_was_extended_is_noticed(archive_dir: Path, out: Path) -> None:
    """The recording is longer than before, but has other bytes where the table ends."""
    builder = fill(SegmentBuilder(), 100)
    add_recording(archive_dir, builder)
    only(archive_dir, out)
    half = builder.messages[50].position
    builder.position = half
    builder.frames = {at: frame for at, frame in builder.frames.items() if at < half}
    fill(builder, 90, seed=9)
    builder.write(archive_dir)
    with Catalog.open(archive_dir) as catalog:
        catalog.set_stop_position(0, builder.position)
    assert "its bytes before position" in str(only(archive_dir, out).error)
    assert only(archive_dir, out, reconvert_changed=True).result == "converted anew"
    assert rows_of(out / "recording_id=0") == expected_rows(archive_dir, 0)


def test_purged_positions_stay_and_lost_ones_are_a_warning(archive_dir: Path, out: Path) -> None:
    """Rows of purged segments remain; a gap between them and the rest is a warning, once, and stays
    in the manifest."""
    builder = fill(SegmentBuilder(), 300)
    add_recording(archive_dir, builder)
    only(archive_dir, out, to_position=100_000)
    old = positions_of(out, 0)
    assert builder.position > 262_144
    for base in (0, 131_072):
        (archive_dir / f"0-{base}.rec").unlink()
    with Catalog.open(archive_dir) as catalog:
        catalog.set_start_position(0, 262_144)
    report = only(archive_dir, out)
    lost = "positions 100000 to 262144 were purged before they were converted"
    assert report.warnings == (lost,)
    assert positions_of(out, 0) == old + expected_positions(archive_dir, 0)
    again = only(archive_dir, out)
    assert (again.result, again.warnings) == ("up to date", ())
    assert manifest_of(out)["warnings"] == [lost]


def test_overwriting_does_not_lose_rows(archive_dir: Path, out: Path) -> None:
    """Rows of purged or unselected positions are not dropped, unless the source has changed and the
    option says so: that is a warning."""
    builder = fill(SegmentBuilder(), 300)
    add_recording(archive_dir, builder)
    only(archive_dir, out)
    old, end = positions_of(out, 0), builder.position
    part = only(archive_dir, out, overwrite=True, from_position=4_096, to_position=8_192)
    assert (part.result, part.to_position) == ("left out", end)
    assert f"positions 0 to 4096, 8192 to {end}, which" in str(part.error)
    for base in (0, 131_072):
        (archive_dir / f"0-{base}.rec").unlink()
    with Catalog.open(archive_dir) as catalog:
        catalog.set_start_position(0, 262_144)
    purged = only(archive_dir, out, overwrite=True)
    assert "positions 0 to 262144, which" in str(purged.error)
    assert f"delete recording_id=0 in {out}" in str(purged.error)
    assert positions_of(out, 0) == old

    manifest = out / "recording_id=0" / MANIFEST_NAME
    document = manifest_of(out)
    document["recording"]["stream_id"] = 77
    manifest.write_text(json.dumps(document))
    again = only(archive_dir, out, reconvert_changed=True)
    assert again.warnings == (
        "rows of positions 0 to 262144 were deleted and are not converted again",
    )
    assert positions_of(out, 0) == expected_positions(archive_dir, 0)
    manifest.write_text("{")
    assert only(archive_dir, out, overwrite=True).result == "converted anew"


def test_a_table_keeps_its_form(archive_dir: Path, out: Path) -> None:
    """Files with other settings are not mixed into a table; overwriting changes the settings."""
    add_recording(archive_dir, fill(SegmentBuilder(), 20))
    only(archive_dir, out)
    before = files_of(out)
    assert "partitioned_by" in str(only(archive_dir, out, by_date=True).error)
    assert files_of(out) == before
    assert only(archive_dir, out, by_date=True, overwrite=True).error is None
    assert only(archive_dir, out, by_date=True).result == "up to date"
    assert {path.parent.name for path in files_of(out)} == {"date=2023-11-14"}


def test_dates_are_those_of_the_positions(
    archive_dir: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are cut where the date changes, and none has rows of two dates."""
    builder = fill(SegmentBuilder(), 200)
    add_recording(archive_dir, builder)
    day_ns, midnight = 86_400 * 10**9, builder.messages[77].position
    times = [(0, 0), (midnight - 1000, day_ns - 1), (midnight, day_ns), (builder.position, day_ns)]
    monkeypatch.setattr("aerotape.spark.parquet.job.recorded_times", lambda _: times)
    report = only(archive_dir, out, by_date=True, partition_bytes=1 << 30)
    assert (report.messages, report.files) == (200, 2)
    table = dataset.dataset(out, format="parquet", partitioning="hive").to_table()
    dates = {row["position"]: row["date"] for row in table.to_pylist()}
    assert dates == {
        message.position: "1970-01-02" if message.position >= midnight else "1970-01-01"
        for message in builder.messages
    }


def test_a_little_more_waits_for_more(archive_dir: Path, out: Path) -> None:
    """A recording that is being written waits for enough bytes, or for the maximum delay; one whose
    archive has ended does not."""
    builder = fill(SegmentBuilder(), 20)
    add_recording(archive_dir, builder, live=True)
    with in_use(archive_dir):
        assert only(archive_dir, out, min_bytes=1 << 20).result == "waiting for more"
        assert not (out / "recording_id=0").exists()
        assert only(archive_dir, out, min_bytes=builder.position).result == "converted"
        builder.message(b"one more")
        builder.write(archive_dir)
        read = ReadOptions(archive_dir=str(archive_dir))
        options = JobOptions(read=read, min_bytes=1 << 20, max_delay_s=0.0)
        with ParquetJob(options, out, TasksHere()) as job:
            [report] = job.run().recordings
        assert (report.result, report.messages) == ("converted", 1)
        builder.message(b"and one more")
        builder.write(archive_dir)
    assert only(archive_dir, out, min_bytes=1 << 20).messages == 1


def test_in_remote_storage_recordings_without_end_wait_too(tmp_path: Path) -> None:
    """Whether the archive of the original still writes it is unknown."""
    fsspec = pytest.importorskip("fsspec")
    builder = fill(SegmentBuilder(), 20)
    add_recording(tmp_path, builder, live=True)
    add_recording(tmp_path, fill(SegmentBuilder(), 20))
    memory = fsspec.filesystem("memory")
    for path in tmp_path.glob("*.*"):
        memory.pipe_file(f"/waiting/{path.name}", path.read_bytes())
    place: Any = "memory://waiting"
    reports = run_here(place, tmp_path / "out", min_bytes=1 << 20).recordings
    assert [report.result for report in reports] == ["waiting for more", "converted"]
    reports = run_here(place, tmp_path / "out", min_bytes=builder.position).recordings
    assert [report.result for report in reports] == ["converted", "up to date"]


def test_unknown_dates_are_a_warning(tmp_path: Path, out: Path) -> None:
    """With an invalid time index the dates are that of the recording's start, with a warning;
    without a time index there is no warning."""
    built = build(tmp_path / "timed")
    built.path.write_bytes(b"nonsense")
    report = only(built.archive_dir, out, by_date=True)
    [warning] = report.warnings
    assert warning.startswith("its dates are taken from its start (")
    assert "aerotape-0.time-index is damaged" in warning
    assert manifest_of(out)["warnings"] == [warning]
    assert only(built.archive_dir, tmp_path / "undated").warnings == ()
    built.path.unlink()
    assert only(built.archive_dir, tmp_path / "dated", by_date=True).warnings == ()


def test_a_dry_run_changes_nothing(archive_dir: Path, out: Path) -> None:
    """It returns the plan and creates no folder."""
    builder = fill(SegmentBuilder(), 20)
    add_recording(archive_dir, builder)
    options = JobOptions(read=ReadOptions(archive_dir=str(archive_dir)))
    [plan] = plan_only(options, out)
    assert (plan.action.value, plan.recording_bytes) == ("convert", builder.position)
    assert not out.exists()
    only(archive_dir, out)
    [plan] = plan_only(options, out)
    assert (plan.action.value, plan.recording_bytes) == ("up to date", 0)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda folder: (folder / MANIFEST_NAME).write_text("{"), "is damaged"),
        (lambda folder: (folder / MANIFEST_NAME).unlink(), "is not in the manifest"),
        (lambda folder: next(folder.glob("*.parquet")).unlink(), "is missing, "),
        (
            lambda folder: (folder / MANIFEST_NAME).write_text('{"manifest_version": 99}'),
            "has version 99",
        ),
    ],
    ids=["damaged", "gone", "file-gone", "newer"],
)
def test_an_inconsistent_table_is_refused(
    archive_dir: Path, out: Path, spoil: Any, complaint: str
) -> None:
    """The error names the mismatch and nothing is changed; overwriting repairs the table."""
    add_recording(archive_dir, fill(SegmentBuilder(), 20))
    only(archive_dir, out)
    spoil(out / "recording_id=0")
    before = files_of(out)
    report = only(archive_dir, out)
    assert complaint in str(report.error)
    assert "--overwrite" in str(report.error)
    assert files_of(out) == before
    assert only(archive_dir, out, overwrite=True).error is None
    assert rows_of(out / "recording_id=0") == expected_rows(archive_dir, 0)


def test_the_manifest_matches_the_files(archive_dir: Path, out: Path) -> None:
    """Rows, bytes, columns and positions of the manifest are those of the files."""
    builder = fill(SegmentBuilder(), 100)
    add_recording(archive_dir, builder)
    only(archive_dir, out)
    manifest = manifest_of(out)
    assert manifest["manifest_version"] == 1
    assert (manifest["from_position"], manifest["to_position"]) == (0, builder.position)
    assert manifest["rows"] == 100
    assert manifest["payload_bytes"] == sum(len(each.payload) for each in builder.messages)
    assert tuple(manifest["schema"]) == FILE_COLUMNS
    assert manifest["schema"]["position"] == "int64"
    files = sorted(files_of(out))
    assert [entry["name"] for entry in manifest["files"]] == [file.name for file in files]
    assert [entry["bytes"] for entry in manifest["files"]] == [f.stat().st_size for f in files]
    assert sum(entry["rows"] for entry in manifest["files"]) == 100
    encoded = (out / "recording_id=0" / MANIFEST_NAME).read_bytes()
    assert Manifest.decode(encoded, "it").encode() == encoded


def test_fields_of_payloads_are_columns(
    archive_dir: Path, out: Path, jars: dict[str, Path], tmp_path: Path
) -> None:
    """The rows are those of `to_arrow`, nested columns too, also after two jobs; the files name the
    SBE schema, and another one is not mixed in."""
    builder = SegmentBuilder()
    for order in some_orders(300):
        builder.message(order.encode())
        builder.message(cancel(order.order_id))
    add_recording(archive_dir, builder)
    xml = tmp_path / "orders.xml"
    xml.write_text(SCHEMA)
    ir = run_sbe_tool(xml, jars["sbe-all"], tmp_path)
    orders = PayloadColumns.of(ir, "Order")
    middle = builder.position // 2
    first = only(archive_dir, out, payloads=orders, to_position=middle)
    second = only(archive_dir, out, payloads=orders)
    assert (first.error, second.error, first.messages + second.messages) == (None, None, 300)
    recording = open_directory(archive_dir).recording(0)
    expected = recording.to_arrow(schema=ir, template="Order").drop_columns("recording_id")
    files = dataset.dataset(out / "recording_id=0", format="parquet")
    assert files.to_table().to_pylist() == expected.to_pylist()
    assert files.schema.names == expected.schema.names
    metadata = parquet.read_metadata(files.files[0])
    described = json.loads(metadata.metadata[b"aerotape.payload_schema"])
    assert (described["schema_id"], described["messages"]) == (31, {"Order": 1})
    other = only(archive_dir, out, payloads=PayloadColumns.of(ir, "Cancel"))
    assert "payload_schema" in str(other.error)


def test_damaged_messages_are_treated_by_the_mode(archive_dir: Path, out: Path) -> None:
    """They are left out with a warning, or are rows with the error."""
    builder = fill(SegmentBuilder(checksum=crc32), 60)
    add_recording(archive_dir, builder)
    damaged = next(message for message in builder.messages if message.payload)
    path = builder.segment_path(archive_dir, damaged.position)
    data = bytearray(path.read_bytes())
    data[damaged.position + 32] ^= 1
    path.write_bytes(data)
    assert "frame checksum" in str(only(archive_dir, out, checksum="crc-32").error)
    dropped = only(archive_dir, out, checksum="crc-32", mode="DROPMALFORMED")
    assert dropped.messages == 59
    assert dropped.warnings == ("1 messages with frames that fail their checksum left out",)
    kept = only(archive_dir, out, checksum="crc-32", mode="PERMISSIVE", overwrite=True)
    assert kept.messages == 60
    [row] = [row for row in rows_of(out / "recording_id=0") if row["_corrupt"] is not None]
    assert (row["position"], row["payload"]) == (damaged.position, None)


def test_a_refused_job_makes_no_folder(archive_dir: Path, tmp_path: Path, out: Path) -> None:
    """A directory without a catalog is an error before any change; so is a table in an archive
    directory, this one or another."""
    with pytest.raises(CatalogError):
        run_here(tmp_path / "nothing", out)
    assert not out.exists()
    add_recording(archive_dir, fill(SegmentBuilder(), 5))
    other = tmp_path / "other"
    other.mkdir()
    add_recording(other, fill(SegmentBuilder(), 5))
    (tmp_path / "link").symlink_to(archive_dir)
    for place in (archive_dir, archive_dir / "table", tmp_path / "link" / "table", other):
        with pytest.raises(ConfigurationError, match="lies in, an archive directory: name another"):
            run_here(archive_dir, place)
        with pytest.raises(ConfigurationError):
            plan_only(JobOptions(read=ReadOptions(archive_dir=str(archive_dir))), place)
    assert len(list(archive_dir.iterdir())) == len(list(other.iterdir())) == 2


def test_interval_arithmetic() -> None:
    """Joining and subtracting, against sets of positions."""
    present = joined([(5, 7), (0, 3), (3, 4), (9, 9), (6, 8)])
    assert present == ((0, 4), (5, 8))
    for begin in range(10):
        for end in range(begin, 11):
            left = missing((begin, end), present)
            positions = {p for first, last in left for p in range(first, last)}
            assert positions == set(range(begin, end)) - {0, 1, 2, 3, 5, 6, 7}
