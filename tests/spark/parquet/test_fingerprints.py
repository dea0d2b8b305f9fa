"""Detection by the Parquet job that a source differs from what was converted."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import BEGIN, SegmentBuilder

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.maintenance.checksum import write_checksums
from aerotape.replay.offline.directory import open_directory

pytest.importorskip("pyarrow")

from support.spark.parquet_rig import TasksHere, only

from aerotape.spark.parquet.fingerprint import changed, fingerprints
from aerotape.spark.parquet.job import ParquetJob
from aerotape.spark.parquet.plan import JobOptions
from aerotape.spark.source.options import ReadOptions


def flip(archive_dir: Path, builder: SegmentBuilder, position: int) -> None:
    """Change one byte of the source."""
    path = builder.segment_path(archive_dir, position)
    data = bytearray(path.read_bytes())
    data[position - builder.segment_base(position)] ^= 1
    path.write_bytes(data)


def grow(archive_dir: Path, builder: SegmentBuilder) -> None:
    builder.message(b"one more")
    builder.write(archive_dir)
    with Catalog.open(archive_dir) as catalog:
        catalog.set_stop_position(0, builder.position)


def test_a_change_before_the_end_of_any_range_is_noticed(archive_dir: Path, out: Path) -> None:
    """The end of each converted range is compared, not only the last."""
    builder = fill(SegmentBuilder(), 100)
    add_recording(archive_dir, builder)
    assert only(archive_dir, out).files > 2
    middle = [m for m in builder.messages if m.end_position <= 65_536][-1]
    flip(archive_dir, builder, middle.end_position - 1)
    assert "its bytes before position 65536 differ" in str(only(archive_dir, out).error)
    flip(archive_dir, builder, middle.end_position - 1)
    assert only(archive_dir, out).result == "up to date"


def test_a_range_without_rows_is_compared_too(archive_dir: Path, out: Path) -> None:
    """The range has only the rest of a message that begins before it."""
    builder = fill(SegmentBuilder(), 20)
    last = builder.message(bytes(5_000))
    add_recording(archive_dir, builder)
    only(archive_dir, out, to_position=last.position + 32)
    rest = only(archive_dir, out)
    assert (rest.messages, rest.files, rest.to_position) == (0, 0, builder.position)
    assert only(archive_dir, out).result == "up to date"
    flip(archive_dir, builder, last.end_position - 40)
    assert f"before position {builder.position}" in str(only(archive_dir, out).error)


def test_padding_does_not_hide_what_is_before_it(archive_dir: Path, out: Path) -> None:
    """In a term that ends with tens of kilobytes of padding the last frames are compared."""
    builder = fill(SegmentBuilder(), 3)
    last = builder.message(b"the last one")
    builder.pad_term()
    assert builder.position - last.end_position > 20_000
    builder.message(b"in the next term")
    add_recording(archive_dir, builder)
    only(archive_dir, out)
    flip(archive_dir, builder, last.position + 32)
    assert "its bytes before position" in str(only(archive_dir, out).error)


def test_what_cannot_be_compared_is_not_taken_for_the_same(archive_dir: Path, out: Path) -> None:
    """With an unreadable or short file the recording is left out; a missing file is a warning when
    there is something to convert."""
    builder = fill(SegmentBuilder(), 200)
    add_recording(archive_dir, builder)
    only(archive_dir, out)
    first = builder.segment_path(archive_dir, 0)
    data = first.read_bytes()
    first.write_bytes(data[:70_000])
    assert f"segment file {first} ends before offset 1" in str(only(archive_dir, out).error)
    first.unlink()
    first.mkdir()
    assert f"recording 0: {first} is not a regular file" in str(only(archive_dir, out).error)
    first.rmdir()
    assert only(archive_dir, out).result == "up to date"
    grow(archive_dir, builder)
    first.unlink()
    report = only(archive_dir, out)
    assert (report.result, report.messages) == ("converted", 1)
    [warning] = report.warnings
    assert warning.endswith("cannot compare them with what was converted")


def test_checksums_may_be_put_in_later(archive_dir: Path, out: Path) -> None:
    """They replace the session ids of all frames; the recording is still recognised, and other
    changes are detected."""
    builder = fill(SegmentBuilder(), 100)
    builder.frame(b"the rest never came", flags=BEGIN)
    add_recording(archive_dir, builder)
    only(archive_dir, out)
    before = builder.segment_path(archive_dir, 0).read_bytes()
    with Catalog.open(archive_dir, checksum="crc-32c") as catalog:
        [outcome] = write_checksums(catalog, archive_dir, all_segments=True)
    assert outcome.frames_changed > 100
    assert builder.segment_path(archive_dir, 0).read_bytes() != before
    assert only(archive_dir, out).result == "up to date"
    flip(archive_dir, builder, builder.messages[-1].position + 24)
    assert "its bytes before position" in str(only(archive_dir, out).error)


def test_any_other_byte_counts(archive_dir: Path) -> None:
    """Of the last frames only session ids may change, whatever payloads look like."""
    builder = SegmentBuilder()
    for index in range(8):
        builder.message(bytes([index]) * 100)
    builder.message(builder.frames[0] * 2)
    add_recording(archive_dir, builder)
    recording = open_directory(archive_dir).recording(0)
    taken = fingerprints(recording, [(0, builder.position)])
    session_ids = {at + offset for at in builder.frames for offset in range(12, 16)}
    unseen = set()
    for position in range(builder.position):
        flip(archive_dir, builder, position)
        if changed(recording, taken) == (None, []):
            unseen.add(position)
        flip(archive_dir, builder, position)
    assert unseen == session_ids
    assert changed(recording, taken) == (None, [])


def test_a_missing_file_is_a_warning_in_a_later_round(archive_dir: Path, out: Path) -> None:
    """The warning comes when there is something to convert."""
    builder = fill(SegmentBuilder(), 200)
    add_recording(archive_dir, builder, live=True)
    first = builder.segment_path(archive_dir, 0)
    read = ReadOptions(archive_dir=str(archive_dir), partition_bytes=64 << 10)
    with ParquetJob(JobOptions(read=read), out, TasksHere()) as job:
        job.run()
        first.unlink()
    with ParquetJob(JobOptions(read=read), out, TasksHere()) as job:
        assert [report.result for report in job.run().recordings] == ["up to date"]
        builder.message(b"one more")
        builder.write(archive_dir)
        first.unlink()
        [report] = job.run().recordings
    assert (report.result, len(report.warnings)) == ("converted", 1)
