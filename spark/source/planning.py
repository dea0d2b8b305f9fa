"""Which recordings to read, and how they are cut into partitions.

Partitions are cut at term boundaries, which no message spans, into parts of roughly equal bytes;
a part is never less than a term. Recordings smaller than a partition share one, so that a
directory with thousands of small recordings does not become thousands of tasks, and they are
spread so that no partition is much larger than the others.

Planning looks at a directory that may be recording: what counts as recorded is read here, once,
and goes into each range as its limit, so that all partitions agree.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from aerotape.catalog.remote.directory import find_ends
from aerotape.errors import CatalogError
from aerotape.replay.offline.reader import RecordingRange, recording_range
from aerotape.spark.source.options import ReadOptions

if TYPE_CHECKING:
    from aerotape.replay.offline.directory import ArchiveDirectory, Recording

MOST_RANGES: Final = 500
"""Ranges in a partition, at most: each costs time beside that for its bytes."""


def choose_recordings(
    directory: ArchiveDirectory, options: ReadOptions, followed: Collection[int] = ()
) -> list[Recording]:
    """Return the recordings that the options ask for, by ascending id.

    Damaged ones are among them unless their id is not asked for: what else the options choose by
    is not known of them.

    Args:
        directory: where they are.
        options: what chooses them.
        followed: as for `matching`.

    Raises:
        UnknownRecordingError: an id that was asked for does not exist.
    """
    recordings = directory.recordings()
    if options.recording_ids is not None:
        # One look at the catalog for all; what is not in it is the directory's to complain about.
        known = {recording.recording_id: recording for recording in recordings}
        recordings = [known.get(id) or directory.recording(id) for id in options.recording_ids]
    return matching(recordings, options, followed)


def matching(
    recordings: Iterable[Recording], options: ReadOptions, followed: Collection[int] = ()
) -> list[Recording]:
    """Return the recordings whose stream and channel the options ask for, and damaged ones.

    Args:
        recordings: those to choose from.
        options: what chooses them.
        followed: ids of recordings that were chosen before. They stay chosen with another channel,
            for a recording can be given one at any time.
    """
    return [
        recording
        for recording in recordings
        if recording.damage
        or (
            (options.stream_id is None or recording.descriptor.stream_id == options.stream_id)
            and (
                options.channel is None
                or recording.recording_id in followed
                or options.channel in recording.descriptor.original_channel
            )
        )
    ]


def without_damaged(recordings: Iterable[Recording], options: ReadOptions) -> list[Recording]:
    """Return the recordings that can be read; warn of damaged ones, which are left out.

    Raises:
        CatalogError: one that was asked for by its id is damaged.
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
    """Return what of a recording the options ask for; it may be empty."""
    return recording_range(recording, options.from_position, options.to_position, options.times)


def plan_ranges(recordings: Iterable[Recording], options: ReadOptions) -> list[RecordingRange]:
    """Return the range of each recording that is to be read, without the empty ones."""
    recordings = list(recordings)
    find_ends(recordings)
    ranges = (wanted_range(recording, options) for recording in recordings)
    return [whole for whole in ranges if whole.length > 0]


def cut(whole: RecordingRange, partition_bytes: int) -> list[RecordingRange]:
    """Cut a range at term boundaries into touching parts of about `partition_bytes`."""
    term = whole.term_length
    # A descriptor with nonsense for a term length is the scan's to complain about.
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
    """Cut ranges into parts and put small ones together; each partition keeps their order.

    There are as few partitions as `partition_bytes` and `MOST_RANGES` allow, and the largest is
    then as small as can be: the job ends when the largest one does.
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
    """Put parts together, in their order, as long as they have at most so many bytes."""
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
