"""What becomes of a recording's time index when the recording changes.

The recorder appends points; all else happens here: points that tell of what is gone are taken out.
An index is never worth an error: what cannot be kept in order is removed, and what cannot even be
removed is found out when it is read (`time_index_proof`).
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path

from aerotape.catalog.directory import Recording
from aerotape.catalog.entries import CatalogEntry
from aerotape.catalog.segments import SegmentFile
from aerotape.catalog.time_index import read_points
from aerotape.catalog.time_index_file import (
    Provenance,
    TimePoint,
    read_time_index,
    remove_time_index,
    time_index_path,
    write_time_index,
)
from aerotape.errors import AerotapeError, StorageError


def prepare_extension(archive_dir: Path, entry: CatalogEntry, provenance: Provenance) -> str:
    """Make the index of a stopped recording ready to be gone on with.

    Args:
        entry: of the recording as it is before.
        provenance: as it will be once it is extended.

    Returns:
        Why points were lost that should have been there, or empty.
    """
    points, problem = _points_of(archive_dir, entry)
    _replace(archive_dir, provenance, points)
    return problem


def cut_after(archive_dir: Path, recording_id: int, position: int) -> None:
    """Take out the points behind a position, to which the recording was cut back."""
    _cut(archive_dir, recording_id, lambda points: points[: _count_to(points, position)])


def cut_before(archive_dir: Path, recording_id: int, position: int) -> None:
    """Take out the points before a position, where the recording starts now.

    The recording may go on meanwhile: at worst a point that is written at this moment is lost.
    """
    _cut(
        archive_dir,
        recording_id,
        lambda points: points[max(_count_to(points, position) - 1, 0) :],
    )


def hand_over(archive_dir: Path, source: CatalogEntry, target: CatalogEntry) -> None:
    """Add the points of one recording to those of another, which takes its segments over."""
    points, _ = _points_of(archive_dir, source)
    if not points:
        return
    others, _ = _points_of(archive_dir, target)
    is_before = source.descriptor.start_position < target.descriptor.start_position
    both = [*points, *others] if is_before else [*others, *points]
    _replace(archive_dir, Provenance.of(target), both)


def _points_of(archive_dir: Path, entry: CatalogEntry) -> tuple[Sequence[TimePoint], str]:
    recording = Recording(archive_dir, entry, [])
    try:
        segments: Sequence[SegmentFile] = recording.segment_files()
        end = entry.descriptor.stop_position
        return read_points(recording, segments, recording.recorded_position if end < 0 else end)
    except AerotapeError as error:
        return (), str(error)


def _replace(archive_dir: Path, provenance: Provenance, points: Sequence[TimePoint]) -> None:
    recording_id = provenance.recording_id
    try:
        if points:
            write_time_index(time_index_path(archive_dir, recording_id), provenance, points)
            return
    except StorageError:
        pass
    with contextlib.suppress(StorageError):
        remove_time_index(archive_dir, recording_id)


def _cut(
    archive_dir: Path,
    recording_id: int,
    keep: Callable[[Sequence[TimePoint]], Sequence[TimePoint]],
) -> None:
    try:
        found = read_time_index(time_index_path(archive_dir, recording_id))
    except StorageError:
        return
    if found is not None:
        kept = keep(found.points)
        if len(kept) < len(found.points):
            _replace(archive_dir, found.provenance, kept)


def _count_to(points: Sequence[TimePoint], position: int) -> int:
    return bisect_right(points, position, key=lambda point: point.position)
