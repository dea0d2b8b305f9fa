"""The newest messages of a recording, found from its end backwards.

Frames have no links to earlier ones. So a window at the end is searched for headers that state
their place in the stream, and of these those count from which frame after frame leads to the end
of the recording. That includes every frame in the window. A payload that imitates headers is found
out: either its frames join the others within one frame's length of the window's begin, which is
left out, or frames remain that are not among them; then the term is scanned from its start, as it
is if the newest messages are longer than the largest window.

So of N messages about their bytes are read, up to four times, and 64 KiB at least; of more than
`_MAX_WINDOW` bytes whole terms. With an end other than that of the recording its term is scanned.

If a term is damaged, messages after the damage count, which frame after frame leads to the end, and
those before it. The scan that returns the messages reports damage among them.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from aerotape.catalog.descriptor import segment_base_position
from aerotape.catalog.segment.term_search import terms_from_last
from aerotape.errors import SegmentError
from aerotape.frame_header import (
    BEGIN_FLAG,
    END_FLAG,
    FRAME_ALIGNMENT,
    HEADER_LENGTH,
    TYPE_DATA,
    TYPE_PADDING,
    FrameHeader,
    align_frame,
    to_int32,
)

if TYPE_CHECKING:
    from aerotape.catalog.directory import StoredRecording
    from aerotape.replay.offline.reader import RecordingRange

_FIRST_WINDOW: Final = 64 << 10
_GROWTH: Final = 4
_MAX_WINDOW: Final = 4 << 20
_STREAM_AND_TERM: Final = struct.Struct("<ii")
_STREAM_OFFSET: Final = 16


def newest_part(recording: StoredRecording, part: RecordingRange, count: int) -> RecordingRange:
    """Return the end of a range that has its newest messages; all of it if it has no more.

    Args:
        recording: the recording.
        part: a range of it.
        count: number of messages.

    Raises:
        StorageError: a segment file cannot be read.
    """
    if count == 0:
        return part.part(part.to_position, part.to_position)
    at_end = part.to_position == part.limit_position
    found: list[int] = []
    terms = terms_from_last(part.from_position, part.to_position, part.term_length)
    for since, upto in terms:
        wanted = count - len(found)
        begins = _from_windows(recording, part, since, upto, wanted) if at_end else None
        if begins is None:
            begins, is_whole = _from_scan(part.part(since, upto), wanted)
            if not is_whole and at_end:
                begins += _after_damage(recording, part, since, upto, wanted)
        found.extend(reversed(begins))
        if len(found) >= count:
            return replace(part, from_position=found[count - 1], from_boundary=True)
    return part


def _from_scan(part: RecordingRange, count: int) -> tuple[list[int], bool]:
    """Return the positions of the last messages of a part, and whether these are its end.

    Else they are the last before its first damage.
    """
    begins: deque[int] = deque(maxlen=count)
    scan = part.scan(batch_bytes=1 << 20)
    try:
        while (batch := scan.next_messages()) is not None:
            begins.extend(position for position, *_ in batch)
    except SegmentError:
        return list(begins), False
    return list(begins), True


def _after_damage(
    recording: StoredRecording, part: RecordingRange, since: int, upto: int, count: int
) -> list[int]:
    """Return the positions of the last messages after the last damage of a term, ascending.

    At least `count` if so many are found in a window.
    """
    bound = max(since & -part.term_length, part.start_position)
    begins: list[int] = []
    window = _FIRST_WINDOW
    while window <= _MAX_WINDOW and len(begins) < count and not upto % FRAME_ALIGNMENT:
        low = max(bound, upto - window)
        if (data := _read(recording, part, low, upto)) is None:
            break
        chain, _ = _leading(part, data, low, upto)
        begins = [begin for begin in _message_begins(chain) if begin >= since]
        is_outside = bool(chain) and chain[0][0] >= low + part.max_frame_length
        if low == bound or is_outside:
            break
        window *= _GROWTH
    return begins


def _from_windows(
    recording: StoredRecording, part: RecordingRange, since: int, upto: int, count: int
) -> list[int] | None:
    """Return the positions of the last messages between two positions of a term.

    Args:
        recording: the recording.
        part: the range to which the positions belong.
        since: first position.
        upto: end of a frame.
        count: how many are enough.

    Returns:
        At least `count` if there are so many, ascending; None if they are not found so.
    """
    bound = max(since & -part.term_length, part.start_position)
    if bound % FRAME_ALIGNMENT or upto % FRAME_ALIGNMENT:
        return None
    window = _FIRST_WINDOW
    while window <= _MAX_WINDOW:
        low = max(bound, upto - window)
        frames = _frames(recording, part, low, upto, is_boundary=low == bound)
        if frames is None:
            return None
        begins = [begin for begin in _message_begins(frames) if begin >= since]
        if len(begins) >= count or low <= max(bound, since - part.max_frame_length):
            return begins
        window *= _GROWTH
    return None


def _frames(
    recording: StoredRecording, part: RecordingRange, low: int, upto: int, *, is_boundary: bool
) -> list[tuple[int, FrameHeader]] | None:
    """Return the frames between two positions of a term, ascending; None if they are not certain.

    Those that begin within one frame's length after `low` are left out, unless it is a boundary.
    """
    data = _read(recording, part, low, upto)
    if data is None:
        return None
    chain, is_alone = _leading(part, data, low, upto)
    begin = chain[0][0] if chain else upto
    if (is_boundary and begin != low) or not is_alone:
        return None
    certain = low if is_boundary else low + part.max_frame_length
    return [frame for frame in chain if frame[0] >= certain]


def _read(
    recording: StoredRecording, part: RecordingRange, low: int, upto: int
) -> bytes | None:
    """Return the bytes between two positions of a term; None if they are missing."""
    base = segment_base_position(part.start_position, low, part.term_length, part.segment_length)
    try:
        data = recording.read_segment(base, low - base, upto - low)
    except FileNotFoundError:
        return None  # the scan reports it
    return data if len(data) == upto - low else None


def _leading(
    part: RecordingRange, data: bytes, low: int, upto: int
) -> tuple[list[tuple[int, FrameHeader]], bool]:
    """Return the frames that lead, each to the next one, to the end, from the first one on.

    Also whether no other header leads to one of them.
    """
    headers = dict(_headers(part, data, low, upto))
    # Positions of frames from which others lead to the end.
    leading = {upto}
    for position in reversed(headers):
        if position + align_frame(headers[position].frame_length) in leading:
            leading.add(position)
    leading.discard(upto)
    position = min(leading, default=upto)
    chain = []
    while position < upto:
        chain.append((position, headers[position]))
        position += align_frame(headers[position].frame_length)
    return chain, len(chain) == len(leading)


def _headers(
    part: RecordingRange, data: bytes, low: int, upto: int
) -> list[tuple[int, FrameHeader]]:
    """Return possible headers of the stream at their place, by ascending position."""
    found = []
    term_id = to_int32(part.initial_term_id + low // part.term_length)
    wanted = _STREAM_AND_TERM.pack(part.stream_id, term_id)
    at = data.find(wanted, _STREAM_OFFSET)
    while at >= 0:
        offset = at - _STREAM_OFFSET
        if offset % FRAME_ALIGNMENT == 0 and offset + HEADER_LENGTH <= len(data):
            header = FrameHeader.decode(data, offset)
            position = low + offset
            is_valid = (
                header.version == 0
                and header.term_offset == position % part.term_length
                and HEADER_LENGTH <= header.frame_length <= upto - position
                and (
                    header.frame_type == TYPE_PADDING
                    or (
                        header.frame_type == TYPE_DATA
                        and header.frame_length <= part.max_frame_length
                    )
                )
            )
            if is_valid:
                found.append((position, header))
        at = data.find(wanted, at + 1)
    return found


def _message_begins(frames: list[tuple[int, FrameHeader]]) -> list[int]:
    """Return the positions of the whole messages of some frames."""
    begins = []
    begin = None
    for position, header in frames:
        if header.frame_type == TYPE_PADDING:
            begin = None
            continue
        if header.flags & BEGIN_FLAG:
            begin = position
        if begin is not None and header.flags & END_FLAG:
            begins.append(begin)
            begin = None
    return begins
