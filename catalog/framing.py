"""The frames of a message and of padding in a recording, as a publication makes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aerotape import _native
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.frame_header import (
    BEGIN_FLAG,
    END_FLAG,
    FRAME_ALIGNMENT,
    HEADER_LENGTH,
    TYPE_DATA,
    TYPE_PADDING,
    UNFRAGMENTED,
    ChecksumName,
    FrameHeader,
    align_frame,
    term_id_at,
)

_MAX_MESSAGE_LENGTH: Final = 16 << 20
_MESSAGES_PER_TERM: Final = 8


def max_message_length(term_length: int) -> int:
    """Return the length of the longest message that Aeron publishes with such terms, bytes."""
    return min(term_length // _MESSAGES_PER_TERM, _MAX_MESSAGE_LENGTH)


def framed_length(length: int, mtu_length: int) -> int:
    """Return how long the frames of a message of that length are, headers and alignment too, bytes.

    Each but the last has the length of the MTU.
    """
    whole, rest = divmod(length, mtu_length - HEADER_LENGTH)
    last = align_frame(HEADER_LENGTH + rest) if rest or not whole else 0
    return whole * mtu_length + last


def message_frames(
    descriptor: RecordingDescriptor,
    position: int,
    payload: bytes | memoryview,
    *,
    flags: int = 0,
    reserved_value: int = 0,
    checksum: ChecksumName = "none",
) -> Iterator[bytes]:
    """Yield the frames of a message, each with its alignment.

    Args:
        descriptor: of the recording.
        position: of the first frame, bytes.
        payload: of the message; empty is one frame.
        flags: those besides begin and end.
        reserved_value: of each frame.
        checksum: that frames get in place of the session id.
    """
    longest = descriptor.mtu_length - HEADER_LENGTH
    flags &= ~UNFRAGMENTED
    for offset in range(0, len(payload) or 1, longest):
        part = payload[offset : offset + longest]
        ends = BEGIN_FLAG * (offset == 0) | END_FLAG * (offset + longest >= len(payload))
        length = HEADER_LENGTH + len(part)
        header = _header(descriptor, position, length, flags | ends, TYPE_DATA, reserved_value)
        content = bytes(part) + bytes(-length % FRAME_ALIGNMENT)
        if checksum != "none":
            header = header._replace(session_id=_native.checksum(checksum, content))
        yield header.encode() + content
        position += HEADER_LENGTH + len(content)


def padding_header(
    descriptor: RecordingDescriptor, position: int, end: int, longest: int
) -> FrameHeader:
    """Return the header of padding that ends at `end`, or before: with its term or for its length.

    Args:
        descriptor: of the recording.
        position: where it begins, bytes.
        end: where it ends at the latest, bytes.
        longest: its length at most, bytes.
    """
    left = -position % descriptor.term_buffer_length or descriptor.term_buffer_length
    length = min(end - position, left, longest)
    return _header(descriptor, position, length, UNFRAGMENTED, TYPE_PADDING)


def _header(
    descriptor: RecordingDescriptor,
    position: int,
    length: int,
    flags: int,
    frame_type: int,
    reserved_value: int = 0,
) -> FrameHeader:
    return FrameHeader(
        length,
        0,
        flags,
        frame_type,
        position % descriptor.term_buffer_length,
        descriptor.session_id,
        descriptor.stream_id,
        term_id_at(descriptor, position),
        reserved_value,
    )
