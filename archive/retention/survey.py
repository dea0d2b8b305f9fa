"""Survey of a directory's recordings: their segments, sizes and ages.

The age of a segment counts from the last write to its file, when all of it had been recorded. The
files of a copy may have been written later: if the recording had stopped before, its time index
gives the time. Without one a segment counts as younger than its data, never older.

A recording that is damaged, marked as suspect or lacks segment files is not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final, TypeVar

from aerotape import _native
from aerotape.archive.retention.plan import HeldSegment, Holding
from aerotape.catalog.descriptor import RecordingDescriptor, segment_base
from aerotape.catalog.directory import StoredRecording
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.entries import CatalogEntry, entry_damage
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.recovery.suspect_marks import marked_recording
from aerotape.catalog.segment_files import SegmentFile, segment_file_name
from aerotape.catalog.time_index.file import parse_time_index_name
from aerotape.catalog.time_index.index import TimeIndex, read_points

_PAUSE_AFTER: Final = 64
_NS_PER_MS: Final = 1_000_000
# The longest time between the last write to a recording and its stop timestamp.
_SLACK_NS: Final = 10_000 * _NS_PER_MS

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Usage:
    """The recordings in use by the archive; each mapping is by recording id.

    Attributes:
        live: recorded positions of active recordings, bytes.
        replayed: the lowest position of a recording's replays, bytes.
        held: the reason why nothing of a recording can be deleted.
    """

    live: Mapping[int, int] = field(default_factory=dict)
    replayed: Mapping[int, int] = field(default_factory=dict)
    held: Mapping[int, str] = field(default_factory=dict)


def survey(
    archive_dir: Path, usage: Usage = Usage(), pause: Callable[[], None] = lambda: None
) -> list[Holding]:
    """Return all valid recordings of a directory; an archive may be using it.

    Args:
        archive_dir: the directory.
        usage: the recordings in use.
        pause: called regularly, so that other threads can run.

    Raises:
        CatalogError: the catalog cannot be read.
        StorageError: the directory cannot be read.
    """
    listed, others = _native.list_segments(archive_dir)
    files = {
        recording_id: [HeldSegment(*each) for _, *each in group]
        for recording_id, group in groupby(listed, key=itemgetter(0))
    }
    indexed = {parse_time_index_name(name) for name in others}
    found = []
    # Deleting a suspect recording would delete what was quarantined from it.
    marked = {marked_recording(name): "it is marked as suspect" for name in others}
    held = {recording_id: why for recording_id, why in marked.items() if recording_id is not None}
    usage = replace(usage, held={**held, **usage.held})
    with Catalog.open(archive_dir, read_only=True) as catalog:
        for entry in paused(catalog.entries(), pause):
            if entry.state != RecordingState.VALID or entry_damage(entry):
                continue
            segments = files.get(entry.recording_id, [])
            holding = _holding(entry.descriptor, segments, usage)
            is_stopped = entry.recording_id not in usage.live and holding.end_position >= 0
            if is_stopped and entry.recording_id in indexed:
                dated = _dated(archive_dir, entry, segments, holding.segments)
                holding = replace(holding, segments=dated)
            found.append(holding)
    return found


def paused(items: Iterable[T], pause: Callable[[], None]) -> Iterator[T]:
    """Iterate over items, calling `pause` regularly."""
    for number, item in enumerate(items):
        if number % _PAUSE_AFTER == 0:
            pause()
        yield item


def _holding(
    descriptor: RecordingDescriptor, files: Sequence[HeldSegment], usage: Usage
) -> Holding:
    recording_id = descriptor.recording_id
    end_position = usage.live.get(recording_id, descriptor.stop_position)
    is_live = recording_id in usage.live
    last = segment_base(descriptor, max(end_position, descriptor.start_position))
    first = segment_base(descriptor, descriptor.start_position)
    segments = [
        file
        for file in files
        if first <= file.base_position and (file.base_position <= last or end_position < 0)
    ]
    problem = usage.held.get(recording_id, "")
    if end_position < 0:
        problem = problem or "it has no stop position, and no archive is recording it"
    elif not problem and not _is_whole(descriptor, segments, first, end_position):
        problem = "segment files are missing"
    if problem:
        return Holding(descriptor, segments, 0, False, problem, end_position)
    length = descriptor.segment_file_length
    removable, in_use = len(segments), ""
    if is_live:
        removable, in_use = (last - first) // length, "it is being recorded"
    if recording_id in usage.replayed:
        replayed = (segment_base(descriptor, usage.replayed[recording_id]) - first) // length
        if replayed < removable:
            removable, in_use = replayed, "it is being replayed"
    removable = max(min(removable, len(segments)), 0)
    is_deletable = not is_live and recording_id not in usage.replayed
    return Holding(descriptor, segments, removable, is_deletable, in_use, end_position)


def _is_whole(
    descriptor: RecordingDescriptor,
    segments: Sequence[HeldSegment],
    first: int,
    end_position: int,
) -> bool:
    """Whether no segment file up to the end is missing."""
    length = descriptor.segment_file_length
    if len(segments) < len(range(first, end_position, length)):
        return False
    bases = [segment.base_position for segment in segments]
    return bases == list(range(first, first + len(bases) * length, length))


def _dated(
    archive_dir: Path,
    entry: CatalogEntry,
    files: Sequence[HeldSegment],
    segments: Sequence[HeldSegment],
) -> Sequence[HeldSegment]:
    """Use the times of a stopped recording's time index for files that were written later."""
    descriptor = entry.descriptor
    stopped_ns = (descriptor.stop_timestamp_ms + 1) * _NS_PER_MS
    if all((segment.recorded_by_ns or 0) <= stopped_ns + _SLACK_NS for segment in segments):
        return segments
    end_position = descriptor.stop_position
    paths = [
        SegmentFile(
            archive_dir / segment_file_name(entry.recording_id, file.base_position),
            file.base_position,
        )
        for file in files
    ]
    points, _ = read_points(StoredRecording(archive_dir, entry, []), end_position, paths)
    index = TimeIndex(points, descriptor.start_position, end_position)
    dated = []
    for segment in segments:
        last = min(segment.base_position + descriptor.segment_file_length, end_position) - 1
        known = [segment.recorded_by_ns, index.time_at(last).not_after_ns]
        bounds = [each for each in known if each is not None]
        dated.append(segment._replace(recorded_by_ns=min(bounds, default=None)))
    return dated
