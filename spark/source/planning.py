"""Partitions of the ranges of recordings.

Partitions are cut at term boundaries, which no message spans, into parts of roughly equal bytes;
a part is at least a term. Recordings smaller than a partition share one, so that a directory with
thousands of small recordings does not become thousands of tasks, and they are distributed so that
no partition is much larger than the others.

An archive may be recording into the directory: the recorded position is read here, once, and is the
limit of each range, so that all partitions agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from aerotape.catalog.directory import find_ends
from aerotape.replay.offline.reader import RecordingRange, recording_range

if TYPE_CHECKING:
    from aerotape.replay.offline.directory import Recording
    from aerotape.replay.offline.selection import Selection

MOST_RANGES: Final = 500
"""Ranges in a partition, at most: each costs time beside that for its bytes."""


def plan_ranges(recordings: Iterable[Recording], selection: Selection) -> list[RecordingRange]:
    """Return the range of each recording to read, without empty ones."""
    recordings = list(recordings)
    find_ends(recordings)
    ranges = (recording_range(recording, selection) for recording in recordings)
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
