"""Selection and partitions of recordings."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog import layout
from aerotape.catalog.file.catalog import Catalog
from aerotape.errors import CatalogError, UnknownRecordingError
from aerotape.replay.offline.choosing import choose_recordings, without_damaged
from aerotape.replay.offline.directory import open_directory
from aerotape.replay.offline.reader import RecordingRange
from aerotape.spark.source.options import ReadOptions
from aerotape.spark.source.planning import (
    cut,
    plan_partitions,
    plan_ranges,
)

MIB = 1 << 20


def whole(begin: int, end: int, term_length: int = 65_536, id: int = 0) -> RecordingRange:
    return RecordingRange(
        archive_dir="/a", recording_id=id, start_position=begin, term_length=term_length,
        segment_length=term_length, initial_term_id=0, session_id=1, stream_id=2,
        max_frame_length=1408, from_position=begin, to_position=end, limit_position=end,
    )  # fmt: skip


@given(
    st.integers(0, 1 << 40), st.integers(1, 200 * MIB), st.integers(16, 24), st.integers(1, 1 << 30)
)
def test_partitions_are_contiguous_and_split_at_terms(
    begin: int, length: int, term_bits: int, partition_bytes: int
) -> None:
    """Partitions have no gaps or overlaps, are split at terms, and none is much too long."""
    term = 1 << term_bits
    parts = cut(whole(begin, begin + length, term), max(partition_bytes, length // 1000))
    assert (parts[0].from_position, parts[-1].to_position) == (begin, begin + length)
    for left, right in pairwise(parts):
        assert left.to_position == right.from_position
        assert right.from_position % term == 0
    assert all(0 < part.length <= max(partition_bytes, length // 1000) + term for part in parts)


def test_small_recordings_share_partitions() -> None:
    """Many small recordings become few partitions, each within the size limit."""
    ranges = [whole(0, 10_000, id=id) for id in range(1000)]
    partitions = plan_partitions(ranges, MIB)
    assert len(partitions) == 10
    assert [part for partition in partitions for part in partition] == ranges


def test_the_last_partition_is_not_tiny() -> None:
    """Recordings that exceed one partition are divided into two of about the same size."""
    ranges = [whole(0, 12 * MIB, id=id) for id in range(11)]
    partitions = plan_partitions(ranges, 128 * MIB)
    assert [sum(part.length for part in p) // MIB for p in partitions] == [72, 60]
    assert plan_partitions([], MIB) == []


def test_recordings_are_chosen_by_id_stream_and_channel(tmp_path: Path) -> None:
    """Filters combine; a channel matches when the original channel contains it."""
    for stream_id in (10, 11, 10):
        add_recording(tmp_path, fill(SegmentBuilder(stream_id=stream_id), 3))
    directory = open_directory(tmp_path)

    def chosen(**options: object) -> list[int]:
        read = ReadOptions(archive_dir=str(tmp_path), **options)  # type: ignore[arg-type]
        return [r.recording_id for r in choose_recordings(directory, read)]

    assert chosen() == [0, 1, 2]
    assert chosen(stream_id=10) == [0, 2]
    assert chosen(stream_id=10, recording_ids=(1, 2)) == [2]
    assert chosen(channel="alias=prices") == [0, 1, 2]
    assert chosen(channel="ipc") == []
    with pytest.raises(UnknownRecordingError, match="7"):
        chosen(recording_ids=(1, 7))


def test_a_damaged_recording_is_left_out_and_named(tmp_path: Path) -> None:
    """A damaged descriptor excludes that recording only; named by id, it is an error."""
    for _ in range(3):
        add_recording(tmp_path, fill(SegmentBuilder(stream_id=10), 3))
    with Catalog.open(tmp_path, read_only=True) as catalog:
        offset = catalog.entry(1).offset + layout.DESCRIPTOR_HEADER_LENGTH
    with (tmp_path / layout.CATALOG_FILE_NAME).open("r+b") as file:
        file.seek(offset + layout.DESCRIPTOR_BLOCK_LENGTH)
        file.write(b"\xff" * 30)
    directory = open_directory(tmp_path)
    options = ReadOptions(archive_dir=str(tmp_path), stream_id=10, channel="alias=prices")
    with pytest.warns(RuntimeWarning, match="left out: recording 1 has a damaged descriptor"):
        sound = without_damaged(choose_recordings(directory, options), options)
    assert [part.recording_id for part in plan_ranges(sound, options)] == [0, 2]
    options = ReadOptions(archive_dir=str(tmp_path), recording_ids=(1, 2))
    with pytest.raises(CatalogError, match="recording 1 has a damaged descriptor"):
        without_damaged(choose_recordings(directory, options), options)
