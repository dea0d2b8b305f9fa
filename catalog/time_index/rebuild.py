"""Rebuild of a time index from the files of a recording.

Valid points are retained. Where there are none, the time of the last write to a segment file is
taken for the time when the recording reached its end, and the descriptor's start and stop
timestamps for its two ends. That is right if the files were not touched since; it is checked as far
as possible, and each such point is marked as an *estimate*.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from aerotape.catalog.time_index.file import (
    DamagedTimeIndexError,
    Provenance,
    read_time_index,
    time_index_path,
    write_time_index,
)
from aerotape.catalog.time_index.index import last_writes, read_points
from aerotape.catalog.time_index.points import TimePoint

if TYPE_CHECKING:
    from aerotape.catalog.time_index.recording import IndexedRecording

_NS_PER_MS: Final = 1_000_000
# The stop timestamp is taken a moment after the last write, and by another clock.
_SLACK_NS: Final = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Rebuild:
    """The plan of a rebuilt index.

    Attributes:
        recording_id: the recording.
        points: all of its points.
        kept: number of those that existed before.
        doubt: why there are no estimates although points are missing; else empty.
    """

    recording_id: int
    points: Sequence[TimePoint]
    kept: int
    doubt: str = ""

    @property
    def estimates(self) -> int:
        """Number of new estimates."""
        return len(self.points) - self.kept


def plan_rebuild(recording: IndexedRecording) -> Rebuild:
    """Plan the index of a stopped recording.

    Raises:
        CatalogError: its descriptor is damaged.
        StorageError: its segment files cannot be listed, or an existing index that may be whole
            cannot be read.
    """
    recording.check()
    path = time_index_path(recording.archive_dir, recording.recording_id)
    with contextlib.suppress(DamagedTimeIndexError):
        read_time_index(path)
    segments = recording.segment_files()
    start, end = recording.start_position, recording.recorded_position
    kept, _ = read_points(recording, end, segments)
    estimates, doubt = _estimates(recording, start, end)
    if kept:
        first, last = kept[0].position, kept[-1].position
        before = [point for point in estimates if point.position < first]
        after = [point for point in estimates if point.position > last]
        points = [*before, *kept, *after]
        if estimates and any(b.time_ns < a.time_ns for a, b in pairwise(points)):
            points, doubt = list(kept), "times of segment files and of points contradict each other"
        if first <= start and last >= end:
            doubt = ""
    else:
        points = estimates
    return Rebuild(recording.recording_id, points, len(kept), doubt)


def rebuild(recording: IndexedRecording, plan: Rebuild) -> None:
    """Write the index that was planned (StorageError)."""
    path = time_index_path(recording.archive_dir, recording.recording_id)
    write_time_index(path, Provenance.of(recording.entry), plan.points)


def _estimates(recording: IndexedRecording, start: int, end: int) -> tuple[list[TimePoint], str]:
    """Return estimates for the ends of segments and of the recording, or why there are none."""
    descriptor = recording.descriptor
    start_ns = descriptor.start_timestamp_ms * _NS_PER_MS
    stop_ns = descriptor.stop_timestamp_ms * _NS_PER_MS
    times = [(start_ns, start)]
    for modified_ns, position in last_writes(
        recording.segment_files(), descriptor.segment_file_length
    ):
        if position < end:
            times.append((modified_ns, position))
    if not descriptor.is_active:
        if any(time_ns > stop_ns + _SLACK_NS for time_ns, _ in times):
            return [], "segment files were written to after the recording had stopped"
        times.append((max(stop_ns, times[-1][0]), end))
    if any(second < first for (first, _), (second, _) in pairwise(times)):
        return [], "segment files were not written to last in their order"
    return [TimePoint(time_ns, position, 0, True) for time_ns, position in times], ""
