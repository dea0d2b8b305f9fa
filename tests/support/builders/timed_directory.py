"""A directory with one recording and its time index, written byte by byte, with known times."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aerotape
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.time_index.file import (
    Provenance,
    time_index_path,
    write_time_index,
)
from aerotape.catalog.time_index.index import TimeIndex
from aerotape.catalog.time_index.points import TimePoint
from aerotape.replay.offline.directory import Recording
from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder

START_MS = 1_700_000_000_000
START_NS = START_MS * 1_000_000
SECOND = 1_000_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Built:
    """A stopped recording of two and a half segments, with a message each 100 ms and a point for
    every two messages."""

    archive_dir: Path
    stream: SegmentBuilder
    points: list[TimePoint]

    @property
    def path(self) -> Path:
        return time_index_path(self.archive_dir, 0)

    @property
    def provenance(self) -> Provenance:
        return Provenance(0, START_MS, 0, 0, self.stream.session_id)

    def recording(self) -> Recording:
        return aerotape.open_directory(self.archive_dir).recording(0)

    def index(self) -> TimeIndex:
        return TimeIndex.of(self.recording())

    def put_index(self) -> None:
        write_time_index(self.path, self.provenance, self.points)

    def touch_segments(self, *times_ns: int) -> None:
        """Set the modification times of the segment files."""
        for segment, time_ns in zip(self.recording().segment_files(), times_ns, strict=True):
            os.utime(segment.path, ns=(time_ns, time_ns))

    def time_of(self, position: int) -> int:
        """The time at which the message at a position was recorded."""
        number = [message.position for message in self.stream.messages].index(position)
        return START_NS + (number + 1) * SECOND // 10


def recorded_time(points: Iterable[TimePoint], position: int) -> datetime | None:
    """The column `recorded_time` of a message: a model that looks at all points."""
    times = [point.time_ns for point in points if point.position <= position]
    return EPOCH + timedelta(microseconds=times[-1] // 1000) if times else None


def build(archive_dir: Path) -> Built:
    archive_dir.mkdir()
    stream = SegmentBuilder()
    while stream.position < 2.5 * stream.segment_length:
        stream.message(bytes(2_000))
    stream.write(archive_dir)
    made = Built(archive_dir, stream, [])
    made.points = [TimePoint(START_NS + 1, 0, stream.session_id)]
    for message in stream.messages[1::2]:
        time_ns = made.time_of(message.position) + SECOND // 20
        made.points.append(TimePoint(time_ns, message.end_position, stream.session_id))
    with Catalog.open(archive_dir, create=True) as catalog:
        add_entry(
            catalog,
            stream,
            start_timestamp_ms=START_MS,
            stop_position=stream.position,
            stop_timestamp_ms=made.points[-1].time_ns // 1_000_000,
        )
    made.touch_segments(*[made.points[-1].time_ns] * 3)
    made.put_index()
    return made
