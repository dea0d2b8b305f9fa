"""The converted part of a recording, as a table has it, and its comparison with the recording.

A table stores a `Converted` for each recording. Truncating a recording and extending it, or
replacing it by another one with the same id, changes its identity or its message where that part
ends.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.errors import SegmentError
from aerotape.replay.offline.boundaries import last_message, message_checksum
from aerotape.replay.offline.directory import Recording
from aerotape.replay.offline.reader import RecordingRange

Interval = tuple[int, int]
"""Positions from the first up to, not including, the second."""

# Fields that never change while a recording exists.
_IDENTITY: Final = (
    "stream_id", "initial_term_id", "term_buffer_length", "mtu_length", "segment_file_length",
    "start_timestamp_ms",
)  # fmt: skip
_MASK: Final = 0x7FFF_FFFF


@dataclass(frozen=True, slots=True)
class LastRow:
    """The last message of a recording in a table.

    Attributes:
        position: where it begins.
        end_position: where it ends.
        crc32c: its checksum (`message_checksum`); None if only the rows of the table are known.
            Only the position of the message is then compared.
    """

    position: int
    end_position: int
    crc32c: int | None

    @classmethod
    def at(cls, part: RecordingRange, position: int, end_position: int) -> LastRow:
        """Read the message of a recording at a position (StorageError)."""
        return cls(position, end_position, message_checksum(part, position, end_position))

    def is_in(self, recorded: RecordingRange) -> bool:
        """Return whether a recording has it (SegmentError, StorageError)."""
        if self.crc32c is None:
            found = last_message(recorded.part(self.position, self.position + 1))
            return found is not None and found.position == self.position
        return message_checksum(recorded, self.position, self.end_position) == self.crc32c


@dataclass(frozen=True, slots=True)
class Converted:
    """The part of a recording that a table has.

    Attributes:
        ranges: converted positions, ascending and disjoint.
        identity: checksum of the descriptor's fields that never change, 31 bits; None if it is not
            known, because only the rows are.
        last: the last row, None if there is none.
    """

    ranges: tuple[Interval, ...]
    identity: int | None
    last: LastRow | None

    @property
    def to_position(self) -> int:
        """The end of the last converted range."""
        return self.ranges[-1][1]


def identity_of(descriptor: RecordingDescriptor) -> int:
    """Return the checksum of the fields that make a recording this one."""
    fields = ", ".join(str(getattr(descriptor, name)) for name in _IDENTITY)
    return zlib.crc32(f"[{fields}]".encode()) & _MASK


def change_since(recording: Recording, converted: Converted, recorded: RecordingRange) -> str:
    """Describe how a recording differs from what was converted; "" if it does not."""
    if converted.identity not in (None, identity_of(recording.descriptor)):
        return "it is not the recording that the table has"
    end, last = converted.to_position, converted.last
    if recorded.limit_position < end:
        return f"it ends at {recorded.limit_position}, and the table has it up to {end}"
    if last is None or last.position < recording.start_position:
        return ""
    differs = f"its message at position {last.position} differs from the converted one"
    try:
        return "" if last.is_in(recorded) else differs
    except SegmentError as error:
        return f"{differs}: {error}"


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
