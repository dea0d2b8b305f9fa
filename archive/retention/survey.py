"""Survey of a directory's recordings: their segments, sizes and ages.

The age of a segment counts from the last write to its file; one that was copied later counts as
younger. A recording that is damaged, marked as suspect or lacks segment files is not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from aerotape import _native
from aerotape.archive.retention.plan import HeldSegment, Holding
from aerotape.catalog.descriptor import RecordingDescriptor, segment_base
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.entries import entry_damage
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.recovery.suspect_marks import marked_recording, suspect_ids


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


Holds = Callable[[RecordingDescriptor], str]
"""Returns why nothing of a recording is deleted, as `archive.control.feature.Feature.holds`."""


def survey(archive_dir: Path, holds: Holds, usage: Usage) -> list[Holding]:
    """Return all valid recordings of a directory; an archive may be using it.

    Args:
        archive_dir: the directory.
        holds: of the features.
        usage: the recordings in use.

    Raises:
        CatalogError: the catalog cannot be read.
        StorageError: the directory cannot be read.
    """
    listed, others = _native.list_segments(archive_dir)
    files = {
        recording_id: [HeldSegment(*each) for _, *each in group]
        for recording_id, group in groupby(listed, key=itemgetter(0))
    }
    found = []
    # Deleting a suspect recording would delete what was quarantined from it.
    is_any_marked = any(marked_recording(name) is not None for name in others)
    marked = suspect_ids(archive_dir) if is_any_marked else ()
    held = dict.fromkeys(marked, "it is marked as suspect")
    usage = replace(usage, held={**held, **usage.held})
    with Catalog.open(archive_dir, read_only=True) as catalog:
        for entry in catalog.entries():
            if entry.state != RecordingState.VALID or entry_damage(entry):
                continue
            segments = files.get(entry.recording_id, [])
            found.append(_holding(entry.descriptor, segments, holds, usage))
    return found


def _holding(
    descriptor: RecordingDescriptor, files: Sequence[HeldSegment], holds: Holds, usage: Usage
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
    problem = holds(descriptor) or usage.held.get(recording_id, "")
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
    length, count = descriptor.segment_file_length, len(segments)
    bases = [segment.base_position for segment in segments]
    return first + count * length >= end_position and (
        bases == list(range(first, first + count * length, length))
    )
