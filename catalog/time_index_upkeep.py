"""Changes of a time index that follow those of its recording, and the removal of its file.

The recorder appends points; all other changes are here. They read recordings, which know their
time index: so this is not in `time_index/`. A time index never causes an error: one that cannot
be updated is removed, and one that cannot be removed is found to be stale when it is read
(`time_index.index`).
"""

from __future__ import annotations

import contextlib
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Final

from aerotape.catalog.directory import StoredRecording
from aerotape.catalog.file.entries import CatalogEntry
from aerotape.catalog.time_index.file import (
    Provenance,
    read_time_index,
    time_index_path,
    write_time_index,
)
from aerotape.catalog.time_index.index import TimeIndex
from aerotape.catalog.time_index.points import NO_POINTS, TimePoint, TimePoints
from aerotape.errors import AerotapeError, StorageError, StorageErrors

_NAME: Final = re.compile(r"aerotape-(0|[1-9][0-9]{0,18})\.time-index", re.ASCII)


def remove_indexes(archive_dir: Path, recording_id: int) -> None:
    """Remove the index file of a recording, if there is one (StorageError)."""
    path = time_index_path(archive_dir, recording_id)
    with StorageErrors(f"cannot remove index {path}", path):
        path.unlink(missing_ok=True)


def parse_index_name(name: str) -> int | None:
    """Return the recording id that an index file is named for, None when it is no such file."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1])


def prepare_extension(archive_dir: Path, entry: CatalogEntry, provenance: Provenance) -> str:
    """Prepare the index of a stopped recording for its extension.

    Args:
        entry: of the recording before the extension.
        provenance: of the extended recording.

    Returns:
        Why points were lost, or empty.
    """
    try:
        index = _index_of(archive_dir, entry)
    except AerotapeError as error:
        _replace(archive_dir, provenance, NO_POINTS)
        return str(error)
    # By when all of it was recorded: the clock may have been put back since, or be another one.
    closing = _closing(index) if index.recorded_position > index.start_position else []
    _replace(archive_dir, provenance, TimePoints.joined(index.points, closing))
    return index.problem


def cut_after(archive_dir: Path, recording_id: int, position: int) -> None:
    """Remove the points after a position, to which the recording was cut back."""
    _cut(archive_dir, recording_id, lambda points: points[: _count_to(points, position)])


def cut_before(archive_dir: Path, recording_id: int, position: int) -> None:
    """Remove the points before a position, where the recording starts now.

    The recording may continue meanwhile: at worst a point that is being written is lost.
    """
    _cut(
        archive_dir,
        recording_id,
        lambda points: points[max(_count_to(points, position) - 1, 0) :],
    )


def join_indexes(archive_dir: Path, source: CatalogEntry, target: CatalogEntry) -> None:
    """Join the points of a recording with those of another, which takes over its segments.

    The two were recorded at different times, perhaps by different clocks. So points are added where
    they meet, for the end of the first and the start of the second: data near the joint must not be
    dated by points of the other. The same holds for the ends of the source, to which the target's
    timestamps do not apply.
    """
    if source.descriptor.start_position == source.descriptor.stop_position:
        return
    source_is_first = source.descriptor.stop_position == target.descriptor.start_position
    first, second = (source, target) if source_is_first else (target, source)
    try:
        one = _index_of(archive_dir, first)
        other = _index_of(archive_dir, second)
    except AerotapeError:
        _replace(archive_dir, Provenance.of(target), NO_POINTS)
        return
    joined = TimePoints.joined(
        _opened(one) if source_is_first else one.points,
        _closing(one),
        _opened(other),
        _closing(other) if not source_is_first else [],
    )
    _replace(archive_dir, Provenance.of(target), joined)


def _index_of(archive_dir: Path, entry: CatalogEntry) -> TimeIndex:
    return TimeIndex.of(StoredRecording(archive_dir, entry))


def _opened(index: TimeIndex) -> TimePoints:
    """Return the points from the start on, with one for the start itself."""
    start = index.start_position
    points = index.points[bisect_left(index.points.positions, start) :]
    if points and points[0].position == start:
        return points
    opening = TimePoint(index.time_at(start).not_before_ns or 0, start, is_estimate=True)
    return TimePoints.joined([opening], points)


def _closing(index: TimeIndex) -> list[TimePoint]:
    """Return the point for the end of a stopped recording, if it is missing."""
    end = index.recorded_position
    if index.points and index.points[-1].position >= end:
        return []
    not_after_ns = index.time_at(end - 1).not_after_ns
    if not_after_ns is None:
        not_after_ns = time.time_ns()
    latest_ns = max([not_after_ns, *index.points.extremes()[0][-1:]])
    return [TimePoint(latest_ns, end, is_estimate=True)]


def _replace(archive_dir: Path, provenance: Provenance, points: TimePoints) -> None:
    path = time_index_path(archive_dir, provenance.recording_id)
    try:
        if points:
            write_time_index(path, provenance, points)
            return
    except StorageError:
        pass
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _cut(
    archive_dir: Path,
    recording_id: int,
    keep: Callable[[TimePoints], TimePoints],
) -> None:
    try:
        found = read_time_index(time_index_path(archive_dir, recording_id))
    except StorageError:
        return
    if found is not None:
        kept = keep(found.points)
        if len(kept) < len(found.points):
            _replace(archive_dir, found.provenance, kept)


def _count_to(points: TimePoints, position: int) -> int:
    return bisect_right(points.positions, position)
