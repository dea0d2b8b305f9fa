"""What a table has of a recording, and whether the recording still has the same bytes.

A table stores an `Extent` for each recording: the converted positions, and checksums of what makes
the recording itself and of its last bytes before the end of them. Truncating a recording and
extending it, or replacing it by another one with the same id, changes these.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from aerotape import _native
from aerotape.catalog.descriptor import RecordingDescriptor, segment_base_position
from aerotape.catalog.segment_files import segment_file_name
from aerotape.errors import StorageError
from aerotape.frame_header import (
    FRAME_ALIGNMENT,
    SESSION_ID_OFFSET,
    FrameHeader,
    is_frame_at,
)
from aerotape.replay.offline.directory import Recording

Interval = tuple[int, int]
"""Positions from the first up to, not including, the second."""

NO_TAIL: Final = 0
"""The tail of an extent whose last bytes were purged before they could be read."""

# Fields that never change while a recording exists.
_IDENTITY: Final = (
    "stream_id", "initial_term_id", "term_buffer_length", "mtu_length", "segment_file_length",
    "start_timestamp_ms",
)  # fmt: skip
_TAIL_LENGTH: Final = 4 << 10
_MASK: Final = 0x7FFF_FFFF


@dataclass(frozen=True, slots=True)
class Extent:
    """What a table has of a recording.

    Attributes:
        ranges: converted positions, ascending and disjoint.
        identity: checksum of the descriptor's fields that never change, 31 bits.
        tail: checksum of the recording's last bytes before `to_position`, 31 bits, or `NO_TAIL`.
    """

    ranges: tuple[Interval, ...]
    identity: int
    tail: int

    @property
    def to_position(self) -> int:
        """Where the last converted range ends."""
        return self.ranges[-1][1]


def identity_of(descriptor: RecordingDescriptor) -> int:
    """Return the checksum of the fields that make a recording this one."""
    fields = [getattr(descriptor, name) for name in _IDENTITY]
    return zlib.crc32(repr(fields).encode()) & _MASK


def tail_of(recording: Recording, to_position: int) -> int:
    """Return the checksum of the last 4 KiB of a segment before a position.

    Session ids count as zero, since a checksum may take their place in the frame headers later.

    Returns:
        31 bits; `NO_TAIL` if the segment was purged.

    Raises:
        StorageError: the segment file cannot be read or is too short.
    """
    end = to_position // FRAME_ALIGNMENT * FRAME_ALIGNMENT
    if end <= recording.start_position:
        return NO_TAIL
    descriptor = recording.descriptor
    base = segment_base_position(
        recording.start_position,
        end - 1,
        descriptor.term_buffer_length,
        descriptor.segment_file_length,
    )
    begin = max(base, end - _TAIL_LENGTH, recording.start_position)
    try:
        data = recording.read_segment(base, begin - base, end - begin)
    except FileNotFoundError:
        return NO_TAIL
    if len(data) < end - begin:
        path = recording.archive_dir / segment_file_name(recording.recording_id, base)
        raise StorageError(
            f"segment file {path} ends before offset {end - base}, and the recording reaches "
            f"position {end}: was it truncated, or is the copy incomplete?",
            path,
        )
    content = bytearray(data)
    for offset in range(0, len(data), FRAME_ALIGNMENT):
        if is_frame_at(FrameHeader.decode(data, offset), descriptor, begin + offset):
            content[offset + SESSION_ID_OFFSET : offset + SESSION_ID_OFFSET + 4] = bytes(4)
    return _native.checksum("crc-32c", bytes(content)) & _MASK


@dataclass(frozen=True, slots=True)
class Source:
    """What tells later whether a recording still is what was converted.

    Attributes:
        identity: as in `Extent`.
        position: where the planned ranges end.
        tail: checksum of the last bytes before it, as in `Extent`.
    """

    identity: int
    position: int
    tail: int

    @classmethod
    def of(cls, recording: Recording, to_position: int) -> Source:
        """Read it from a recording (StorageError)."""
        return cls(identity_of(recording.descriptor), to_position, tail_of(recording, to_position))

    def extent(self, ranges: Iterable[Interval]) -> Extent:
        """Return the extent of these ranges, which are not empty.

        An unfinished message can make them end before the planned position.
        """
        ranges = joined(ranges)
        return Extent(
            ranges, self.identity, self.tail if ranges[-1][1] == self.position else NO_TAIL
        )


def change_since(recording: Recording, extent: Extent, recorded_position: int) -> str:
    """Return how a recording differs from what was converted; "" if it does not (StorageError)."""
    if identity_of(recording.descriptor) != extent.identity:
        return "it is not the recording that the table has"
    end = extent.to_position
    if recorded_position < end:
        return f"it ends at {recorded_position}, and the table has it up to {end}"
    tail = tail_of(recording, end)
    if NO_TAIL not in (tail, extent.tail) and tail != extent.tail:
        return f"its bytes before position {end} differ from those that were converted"
    return ""


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
