"""Selection of recordings, and their partitions.

Partitions are cut at term boundaries, which no message spans, into parts of roughly equal bytes;
a part is at least a term. Recordings smaller than a partition share one, so that a directory with
thousands of small recordings does not become thousands of tasks, and they are distributed so that
no partition is much larger than the others.

An archive may be recording into the directory: the recorded position is read here, once, and is the
limit of each range, so that all partitions agree.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from aerotape.catalog.directory import find_ends
from aerotape.errors import CatalogError, UnknownRecordingError
from aerotape.replay.offline.reader import RecordingRange, recording_range
from aerotape.spark.source.options import ReadOptions

if TYPE_CHECKING:
    from aerotape.replay.offline.directory import ArchiveDirectory, Recording

MOST_RANGES: Final = 500
"""Ranges in a partition, at most: each costs time beside that for its bytes."""


def choose_recordings(
    directory: ArchiveDirectory, options: ReadOptions, followed: Collection[int] = ()
) -> list[Recording]:
    """Return the recordings that the options ask for, by ascending scope and id.

    Damaged ones are included if the options include their id: their channel and stream are unknown.

    Raises:
        UnknownRecordingError: an id in the options does not exist.
    """
    if options.scope_ids is not None:
        return matching(_choose_by_scope(directory, options), options, followed)
    recordings = directory.recordings()
    if options.recording_ids is not None:
        # Read the catalog once; `directory.recording` raises for an id that is not in it.
        known = {recording.recording_id: recording for recording in recordings}
        ids = dict.fromkeys(options.recording_ids)
        recordings = [known.get(id) or directory.recording(id) for id in ids]
    return matching(recordings, options, followed)


def _choose_by_scope(directory: ArchiveDirectory, options: ReadOptions) -> list[Recording]:
    """Return the recordings of the selected scopes with the selected ids."""
    recordings = directory.recordings_of_scopes(options.scope_ids)
    if options.recording_ids is None:
        return recordings
    there = {recording.recording_id for recording in recordings}
    for id in options.recording_ids:
        if id not in there:
            raise UnknownRecordingError(
                f"no recording with id {id} in the scopes of scopeIds in {directory.path}", id
            )
    return [each for each in recordings if each.recording_id in options.recording_ids]


def matching(
    recordings: Iterable[Recording], options: ReadOptions, followed: Collection[int] = ()
) -> list[Recording]:
    """Return the recordings whose stream and channel match the options, and damaged ones.

    Those whose keys are in `followed` were selected before: they remain so with another channel.
    """
    return [
        recording
        for recording in recordings
        if recording.damage
        or (
            (options.stream_id is None or recording.descriptor.stream_id == options.stream_id)
            and (
                options.channel is None
                or recording.key in followed
                or options.channel in recording.descriptor.original_channel
            )
        )
    ]


def without_damaged(recordings: Iterable[Recording], options: ReadOptions) -> list[Recording]:
    """Leave out damaged recordings with a warning.

    Raises:
        CatalogError: a recording that the options name by id is damaged.
    """
    sound = []
    for recording in recordings:
        try:
            recording.check()
            sound.append(recording)
        except CatalogError as error:
            if options.recording_ids is not None:
                raise
            warnings.warn(f"left out: {error}", RuntimeWarning, stacklevel=2)
    return sound


def wanted_range(recording: Recording, options: ReadOptions) -> RecordingRange:
    """Return the range of a recording that the options select; it may be empty."""
    return recording_range(
        recording, options.from_position, options.to_position, options.times, options.seek
    )


def plan_ranges(recordings: Iterable[Recording], options: ReadOptions) -> list[RecordingRange]:
    """Return the range of each recording to read, without empty ones."""
    recordings = list(recordings)
    find_ends(recordings)
    ranges = (wanted_range(recording, options) for recording in recordings)
    return [whole for whole in ranges if whole.length > 0]


def cut(whole: RecordingRange, partition_bytes: int) -> list[RecordingRange]:
    """Cut a range at term boundaries into touching parts of about `partition_bytes`."""
    term = whole.term_length
    # The scan raises for a descriptor with an invalid term length.
    count = max(1, -(-whole.length // partition_bytes)) if term > 0 else 1
    edges = [whole.from_position]
    for index in range(1, count):
        ideal = whole.from_position + whole.length * index // count
        boundary = (ideal + term // 2) // term * term
        if edges[-1] < boundary < whole.to_position:
            edges.append(boundary)
    edges.append(whole.to_position)
    return [whole.part(begin, end) for begin, end in pairwise(edges)]


def plan_partitions(
    ranges: Sequence[RecordingRange], partition_bytes: int
) -> list[tuple[RecordingRange, ...]]:
    """Cut ranges into parts and combine small ones, in their order.

    There are as few partitions as `partition_bytes` and `MOST_RANGES` allow, and the largest is
    then as small as possible, because the job ends when the largest one does.
    """
    parts = [part for whole in ranges for part in cut(whole, partition_bytes)]
    fewest = len(_gather(parts, partition_bytes))
    low, high = max((part.length for part in parts), default=0), partition_bytes
    while low < high:
        middle = (low + high) // 2
        if len(_gather(parts, middle)) > fewest:
            low = middle + 1
        else:
            high = middle
    return _gather(parts, high)


def _gather(parts: Sequence[RecordingRange], most_bytes: int) -> list[tuple[RecordingRange, ...]]:
    """Combine parts, in their order, into partitions of at most so many bytes."""
    partitions: list[tuple[RecordingRange, ...]] = []
    gathered: list[RecordingRange] = []
    gathered_bytes = 0
    for part in parts:
        is_full = len(gathered) == MOST_RANGES or gathered_bytes + part.length > most_bytes
        if gathered and is_full:
            partitions.append(tuple(gathered))
            gathered, gathered_bytes = [], 0
        gathered.append(part)
        gathered_bytes += part.length
    if gathered:
        partitions.append(tuple(gathered))
    return partitions
