"""How far a recording has been read, and whether it is still the recording that was read.

A streaming query and a table job store a `ReadProgress` for each recording, each in a format of its
own. `ReadProgress.compare` returns what has happened to the recording since, and where to resume.
Callers word it for their users.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from aerotape.catalog.descriptor import RecordingDescriptor, segment_base
from aerotape.errors import SegmentError
from aerotape.frame_header import FRAME_ALIGNMENT
from aerotape.replay.offline.boundaries import last_message, message_checksum
from aerotape.replay.offline.reader import RecordingRange, range_of

if TYPE_CHECKING:
    from aerotape.catalog.directory import StoredRecording

Interval = tuple[int, int]
"""Positions from the first up to, not including, the second."""

# Fields that never change while a recording exists.
_IDENTITY: Final = (
    "stream_id", "initial_term_id", "term_buffer_length", "mtu_length", "segment_file_length",
    "start_timestamp_ms",
)  # fmt: skip
_MASK: Final = 0x7FFF_FFFF


class Change(Enum):
    """What has happened to a recording since it was read."""

    SAME = "same"
    LONGER = "longer"
    PURGED = "purged"
    TRUNCATED = "truncated"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A recording compared with what was read of it.

    Attributes:
        change: what has happened since.
        resume: from which position on what is recorded was not read.
        end: where the recording ends.
        is_another: the recording was replaced by another one, of which nothing was read.
    """

    change: Change
    resume: int
    end: int
    is_another: bool = False

    @property
    def is_a_loss(self) -> bool:
        """Whether the recording does not continue what was read."""
        return self.change not in (Change.SAME, Change.LONGER)


@dataclass(frozen=True, slots=True)
class LastRead:
    """The last message that was read of a recording.

    Attributes:
        position: where it begins.
        end_position: where it ends.
        crc32c: its checksum (`message_checksum`); None if only its place is known.
    """

    position: int
    end_position: int
    crc32c: int | None

    @classmethod
    def at(cls, part: RecordingRange, position: int, end_position: int) -> LastRead:
        """Read the message of a recording at a position (StorageError)."""
        return cls(position, end_position, message_checksum(part, position, end_position))

    def is_in(self, recording: StoredRecording) -> bool:
        """Return whether a recording has it.

        Raises:
            StorageError: its bytes cannot be read, which does not mean that they are gone.
        """
        whole = range_of(recording, self.position, self.end_position, self.end_position)
        found = False
        if self.crc32c is not None:
            crc32c = message_checksum(whole, self.position, self.end_position)
            found = crc32c == self.crc32c
        else:
            with suppress(SegmentError):
                message = last_message(whole.part(self.position, self.position + 1))
                found = message is not None and message.end_position == self.end_position
        if not found:
            base = segment_base(recording.descriptor, self.position)
            with suppress(FileNotFoundError):
                recording.read_segment(base, self.position - base, FRAME_ALIGNMENT)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadProgress:
    """How far one recording has been read. Positions are bytes.

    Attributes:
        position: where reading resumes: all from `begin` up to there was read, except for gaps.
        begin: where reading began; None if that is where an earlier progress ended.
        gaps: parts between `begin` and `position` that were left out, ascending and disjoint.
        last: the last message that was read; None without one.
        identity: `identity_of` the recording; None if it is not known.
        stop: the recording's stop position, if all messages up to there have been read.
    """

    position: int
    begin: int | None = None
    gaps: tuple[Interval, ...] = ()
    last: LastRead | None = None
    identity: int | None = None
    stop: int | None = None

    @property
    def ranges(self) -> list[Interval]:
        """What was read since `begin`: ascending and disjoint intervals."""
        begin = self.position if self.begin is None else self.begin
        return missing((begin, self.position), self.gaps)

    def compare(self, recording: StoredRecording, end: int | None = None) -> Comparison:
        """Compare a recording with what was read of it.

        The first line that applies decides, whether the recording is live or has stopped, and
        whether it is of the archive itself or imported:

        | the recording | change | resume |
        | --- | --- | --- |
        | has another identity | REPLACED, `is_another` | its start |
        | has the stop position `stop` | SAME | `position` |
        | starts after `position` | PURGED | its start |
        | ends before `position` | TRUNCATED | its end |
        | does not have the message `last` at its place | REPLACED | `position` |
        | ends at `position` | SAME | `position` |
        | ends after it | LONGER | `position` |

        An identity that is not known counts as equal. The last message counts as there if it is
        purged, and if only its place is known, whatever its content. Of the recording's messages
        no other is read.

        Args:
            recording: the recording as it is now.
            end: where it ends without a stop position; found if None.

        Raises:
            StorageError: a file of the recording cannot be read.
        """
        descriptor, position, start = recording.descriptor, self.position, recording.start_position
        if self.identity not in (None, identity_of(descriptor)):
            return Comparison(Change.REPLACED, start, _end(recording, end, start), is_another=True)
        if not descriptor.is_active and self.stop == descriptor.stop_position:
            return Comparison(Change.SAME, position, descriptor.stop_position)
        if position < start:
            return Comparison(Change.PURGED, start, _end(recording, end, start))
        last = None if self.last is None or self.last.position < start else self.last
        is_there = last is None or last.is_in(recording)
        end = _end(recording, end, last.end_position if last is not None and is_there else start)
        if end < position:
            return Comparison(Change.TRUNCATED, end, end)
        if not is_there:
            return Comparison(Change.REPLACED, position, end)
        return Comparison(Change.LONGER if position < end else Change.SAME, position, end)


def _end(recording: StoredRecording, end: int | None, known: int) -> int:
    """Return where a recording ends, if it is live at `known` or a higher position.

    The end of a live recording may be found at a lower position than before, as long as its last
    frame looks unfinished.
    """
    if not recording.descriptor.is_active:
        return recording.descriptor.stop_position
    return max(known, recording.recorded_after(known) if end is None else end)


def identity_of(descriptor: RecordingDescriptor) -> int:
    """Return the checksum of the fields that make a recording this one, 31 bits."""
    fields = ", ".join(str(getattr(descriptor, name)) for name in _IDENTITY)
    return zlib.crc32(f"[{fields}]".encode()) & _MASK


def union(parts: Iterable[ReadProgress], identity: int | None) -> ReadProgress:
    """Return what several parts of a recording have together, with gaps between them.

    Without any part that is not empty, nothing was read up to position 0.
    """
    parts = list(parts)
    ranges = joined(interval for part in parts for interval in part.ranges) or ((0, 0),)
    messages = (part.last for part in parts if part.last is not None)
    return ReadProgress(
        begin=ranges[0][0],
        position=ranges[-1][1],
        gaps=tuple((before[1], after[0]) for before, after in pairwise(ranges)),
        last=max(messages, key=lambda message: message.position, default=None),
        identity=identity,
    )


def joined(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Sort intervals and join those that touch or overlap; empty ones are dropped."""
    result: list[Interval] = []
    for begin, end in sorted(interval for interval in intervals if interval[0] < interval[1]):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((begin, end))
    return tuple(result)


def missing(wanted: Interval, present: Sequence[Interval]) -> list[Interval]:
    """Return the parts of `wanted` in none of `present`, which are ascending and disjoint."""
    result = []
    begin, end = wanted
    for first, last in present:
        if begin < min(first, end):
            result.append((begin, min(first, end)))
        begin = max(begin, last)
    if begin < end:
        result.append((begin, end))
    return result
