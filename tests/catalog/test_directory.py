"""Reading an archive directory without an archive."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import cast

import numpy
import pytest
from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder
from support.damage.overwriting import overwrite

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from aerotape.errors import UnknownRecordingError
from aerotape.replay.offline.directory import open_directory


def add(directory: Path, stream: SegmentBuilder, **changes: int) -> int:
    with Catalog.open(directory, create=True) as catalog:
        return add_entry(catalog, stream, **changes)


def settle(path: Path) -> None:
    """Make a segment look as if it had not been written to for a long time."""
    os.utime(path, (1, 1))


def test_only_valid_recordings_are_listed(tmp_path: Path) -> None:
    """Deleted recordings are skipped, and unknown ids are reported."""
    stream = SegmentBuilder()
    for _ in range(3):
        add(tmp_path, stream)
    with Catalog.open(tmp_path) as catalog:
        catalog.change_state(1, RecordingState.DELETED)
    directory = open_directory(tmp_path)
    assert [recording.recording_id for recording in directory.recordings()] == [0, 2]
    assert len(list(directory.entries())) == 3
    with pytest.raises(UnknownRecordingError, match="id 1 in"):
        directory.recording(1)


def test_a_recording_id_is_an_integer(tmp_path: Path) -> None:
    """A string is a TypeError and not an unknown recording; any integer type is accepted."""
    add(tmp_path, SegmentBuilder())
    directory = open_directory(tmp_path)
    assert directory.recording(cast(int, numpy.int64(0))).recording_id == 0
    for wrong in ("0", 0.0, None):
        with pytest.raises(TypeError, match=f"recording_id must be an integer, not {wrong!r}"):
            directory.recording(cast(int, wrong))


def test_segments_outside_the_recording_are_not_listed(tmp_path: Path) -> None:
    """Detached files below the start and misplaced files are not listed."""
    stream = SegmentBuilder(start_position=262_144)
    add(tmp_path, stream)
    for base in (0, 131_072, 262_144, 393_216, 400_000):
        (tmp_path / f"0-{base}.rec").touch()
    recording = open_directory(tmp_path).recording(0)
    assert [s.base_position for s in recording.segment_files()] == [262_144, 393_216]


def test_the_end_of_an_abandoned_recording_is_found_without_repair(tmp_path: Path) -> None:
    """Without a stop position and an archive, the last whole frame is the end; nothing is
    written."""
    stream = SegmentBuilder(mtu_length=8192)
    stream.frame(b"x" * 100)
    torn = stream.frame(b"y" * 8000, length=8032)
    stream.write(tmp_path)
    add(tmp_path, stream)
    segment = tmp_path / "0-0.rec"
    overwrite(segment, 4096, bytes(8000))
    settle(segment)
    before = segment.read_bytes()
    recording = open_directory(tmp_path).recording(0)
    assert recording.recorded_position == torn
    assert not recording.is_being_written
    assert segment.read_bytes() == before
    assert [p.name for p in tmp_path.glob("aerotape-*")] == []


def test_a_frame_that_is_being_written_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header whose payload is still being copied is not counted until the payload is complete."""
    stream = SegmentBuilder()
    stream.frame(b"x" * 100)
    begin = stream.frame(b"y" * 1300)
    stream.write(tmp_path)
    add(tmp_path, stream)
    segment = tmp_path / "0-0.rec"
    whole = segment.read_bytes()
    overwrite(segment, begin + 600, bytes(800))
    recording = open_directory(tmp_path).recording(0)
    # However long it takes until the rest is written.
    monkeypatch.setattr("aerotape.catalog.directory._SETTLED_AFTER_NS", 1 << 62)
    monkeypatch.setattr("aerotape.catalog.directory._SETTLING_ROUNDS", 1_000)
    found: list[int] = []
    reader = threading.Thread(target=lambda: found.append(recording.recorded_position))
    reader.start()
    reader.join(0.2)
    assert found == []
    overwrite(segment, begin + 600, whole[begin + 600 : begin + 1400])
    reader.join(60)
    assert found == [stream.position]
