"""Segment files identified by their first frame as those of another recording or position."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.segment.placement import (
    SegmentHead,
    is_long_enough,
    misplaced_head,
    misplacement,
    read_head,
)
from aerotape.replay.offline.directory import open_directory

SEGMENT_LENGTH = 131_072


@pytest.fixture
def stream() -> SegmentBuilder:
    """Begins within its first term."""
    return fill(SegmentBuilder(start_position=4096 + 96), 120)


@pytest.fixture
def descriptor(tmp_path: Path, stream: SegmentBuilder) -> RecordingDescriptor:
    add_recording(tmp_path, stream)
    return open_directory(tmp_path).recording(0).descriptor


def test_a_file_with_matching_frames_is_accepted(
    tmp_path: Path, descriptor: RecordingDescriptor
) -> None:
    """Also the first file, with a hole up to its first frame, and a blank or an empty file."""
    for base in (0, SEGMENT_LENGTH):
        assert misplacement(descriptor, tmp_path / f"0-{base}.rec", base) == ""
    for length in (0, 20, 40, SEGMENT_LENGTH):
        (tmp_path / "blank").write_bytes(bytes(length))
        assert misplacement(descriptor, tmp_path / "blank", 0) == ""
    assert misplacement(descriptor, tmp_path / "none", 0) == ""


def test_term_ids_wrap_around(descriptor: RecordingDescriptor) -> None:
    """The term ids of a stream may wrap around after the maximum id."""
    last = replace(descriptor, initial_term_id=(1 << 31) - 1)
    header = struct.pack("<iBBHiiiiq", 64, 1, 0xC0, 1, 0, 3, last.stream_id, -(1 << 31), 0)
    head = SegmentHead(0, True, SEGMENT_LENGTH, 0, header)
    assert misplaced_head(last, head, last.term_buffer_length) == ""
    assert "it would have 1001, -2147483647 and 0" in misplaced_head(
        last, head, 2 * last.term_buffer_length
    )


def test_a_file_of_another_position_is_reported(
    tmp_path: Path, descriptor: RecordingDescriptor
) -> None:
    """With the position that its first frame states."""
    first, second = tmp_path / "0-0.rec", tmp_path / f"0-{SEGMENT_LENGTH}.rec"
    assert "first frame has stream id 1001, term id 7 and term offset 4192" in misplacement(
        descriptor, first, SEGMENT_LENGTH
    )
    assert "at position 0 it would have 1001, 7 and 0" in misplacement(descriptor, second, 0)


def test_a_file_must_contain_all_recorded_bytes(
    tmp_path: Path, descriptor: RecordingDescriptor
) -> None:
    path = tmp_path / "short"
    path.write_bytes(bytes(5000))
    head = read_head(path)
    assert is_long_enough(descriptor, head, 0, 5000)
    assert not is_long_enough(descriptor, head, 0, 5001)
    assert not is_long_enough(descriptor, head, 0, 10 * SEGMENT_LENGTH)
    assert is_long_enough(descriptor, head, SEGMENT_LENGTH, SEGMENT_LENGTH)
