"""The recorded position of a live recording, found from a known position."""

from __future__ import annotations

import os
import random
from pathlib import Path

from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

from aerotape.replay.offline.directory import open_directory


def recorded_after(archive_dir: Path, position: int) -> int:
    return open_directory(archive_dir).recording(0).recorded_after(position)


def test_the_result_equals_the_end_of_the_whole_recording(tmp_path: Path) -> None:
    """From the start, and from each message of the last segment or of an earlier one, the end is
    the same, while the recording grows over segments; it is never lower than the known position."""
    builder = fill(SegmentBuilder(start_position=32_768), 5)
    add_recording(tmp_path, builder, live=True)
    rng = random.Random(4)
    for _ in range(60):
        fill(builder, rng.randrange(8), seed=rng.randrange(1000)).write(tmp_path)
        recording = open_directory(tmp_path).recording(0)
        assert recording.recorded_position == builder.position
        known = [builder.start_position, builder.position]
        known += [message.position for message in rng.choices(builder.messages, k=5)]
        assert {recording.recorded_after(position) for position in known} == {builder.position}
    assert len(recording.segment_files()) > 2


def test_a_segment_without_frames_or_without_a_file(tmp_path: Path) -> None:
    """At the end of a full segment: no next file, an empty one, one that is being created."""
    builder = SegmentBuilder()
    while builder.position < builder.segment_length:
        builder.pad_term()
    add_recording(tmp_path, builder, live=True)
    end = builder.position
    assert recorded_after(tmp_path, 0) == recorded_after(tmp_path, end) == end
    following = builder.segment_path(tmp_path, end)
    following.touch()
    assert recorded_after(tmp_path, 0) == recorded_after(tmp_path, end) == end
    os.truncate(following, builder.segment_length)
    assert recorded_after(tmp_path, 0) == recorded_after(tmp_path, end) == end


def test_a_frame_that_is_being_written_is_not_counted(tmp_path: Path) -> None:
    """A frame with an empty sector is not counted and does not block; it is counted when nothing
    was written for a while."""
    builder = SegmentBuilder(mtu_length=8192)
    first = builder.message(b"a" * 100)
    add_recording(tmp_path, builder, live=True)
    builder.message(b"b" * 600 + bytes(1200))
    builder.write(tmp_path)
    assert recorded_after(tmp_path, first.end_position) == first.end_position
    os.utime(builder.segment_path(tmp_path, 0), (1_700_000_000, 1_700_000_000))
    assert recorded_after(tmp_path, first.end_position) == builder.position
