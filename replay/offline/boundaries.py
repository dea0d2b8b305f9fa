"""Message boundaries: positions at which a reader can stop and resume later.

A reader that follows a live recording reads up to the end of the last whole message, stores that
position and resumes there. No message spans two terms, so the last message of a range is found near
its end, however long the range is. The checksum of the last message that was read shows later
whether the recording was truncated and extended below that position.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aerotape import _native
from aerotape.catalog.segment.term_search import terms_from_last
from aerotape.errors import SegmentError
from aerotape.replay.offline.reader import arrow_batches

if TYPE_CHECKING:
    from aerotape.replay.offline.reader import RecordingRange

_HEADER = struct.Struct("<iq")  # flags, reserved value


@dataclass(frozen=True, slots=True)
class LastMessage:
    """The last message of a range. Positions are bytes.

    Attributes:
        position: position of its first frame.
        end_position: position after its last frame: a message boundary.
        count: number of messages up to and including it; 0 if they were not counted.
    """

    position: int
    end_position: int
    count: int = 0


def last_message(
    whole: RecordingRange, max_bytes: int | None = None, max_messages: int | None = None
) -> LastMessage | None:
    """Find the last whole message of a range; None if there is no whole message.

    Args:
        whole: messages that begin in it, and end at its limit at most.
        max_bytes: maximum distance of the message's end from the begin of the range.
        max_messages: maximum number of messages. To count them the range is scanned from its
            begin; without this limit, only one or two terms at its end are scanned.

    Raises:
        SegmentError: a segment file is missing, too short or damaged.
    """
    begin = whole.from_position
    end = whole.limit_position
    if max_bytes is not None:
        end = min(end, begin + max_bytes)
    whole = whole.part(begin, min(whole.to_position, end))
    if max_messages is not None:
        return _last_of(whole, end, max_messages)
    for since, upto in terms_from_last(begin, whole.to_position, whole.term_length):
        found = _last_of(whole.part(since, upto), end)
        if found is not None:
            return replace(found, count=0)
    return None


def _last_of(part: RecordingRange, end: int, max_messages: int | None = None) -> LastMessage | None:
    """Scan a part for its last message that ends at `end` or at a lower position."""
    if part.length <= 0 or max_messages == 0:
        return None
    found, count = None, 0
    rows_at_once = 65_536 if max_messages is None else min(max_messages, 65_536)
    scan = part.scan(("position", "end_position"), batch_rows=rows_at_once, batch_bytes=1 << 30)
    for batch in arrow_batches(scan):
        rows = batch.num_rows if max_messages is None else min(batch.num_rows, max_messages - count)
        # Messages are contiguous, so only the last one that begins in the part can end after it.
        while rows and batch.column(1)[rows - 1].as_py() > end:
            rows -= 1
        if rows:
            count += rows
            position, end_position = (batch.column(i)[rows - 1].as_py() for i in (0, 1))
            found = LastMessage(position, end_position, count)
        if count == max_messages:
            break
    return found


def message_checksum(whole: RecordingRange, position: int, end_position: int) -> int | None:
    """Return the CRC-32C of a message as a reader sees it; None if there is no such message.

    Session ids of frames are excluded, because checksums may replace them later. `whole` is any
    range of the recording.
    """
    only = replace(
        whole,
        from_position=position,
        to_position=end_position,
        limit_position=end_position,
        from_boundary=True,
    )
    try:
        messages = only.scan().next_messages() or []
    except SegmentError:
        return None
    if len(messages) != 1 or messages[0][:2] != (position, end_position):
        return None
    *_, flags, reserved_value, payload = messages[0]
    return _native.checksum("crc-32c", _HEADER.pack(flags, reserved_value) + payload)
