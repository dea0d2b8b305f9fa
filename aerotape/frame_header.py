"""The header of a frame (Aeron's DataHeaderFlyweight), and the place in the stream that it states.

Owns the layout of the header, the frame alignment and the arithmetic of term ids. A leaf: modules
of the catalog, the daemon and the readers all use it.
"""

from __future__ import annotations

import struct
from typing import Final, Literal, NamedTuple, Protocol

HEADER_LENGTH: Final = 32
FRAME_ALIGNMENT: Final = 32
TYPE_PADDING: Final = 0
TYPE_DATA: Final = 1
BEGIN_FLAG: Final = 0x80
END_FLAG: Final = 0x40
UNFRAGMENTED: Final = BEGIN_FLAG | END_FLAG
MAX_MTU_LENGTH: Final = 65_504
"""The longest MTU of a stream, bytes: that of UDP, rounded down to the frame alignment."""
# Offsets of fields that are overwritten in place, bytes.
TERM_OFFSET_OFFSET: Final = 8
SESSION_ID_OFFSET: Final = 12
TERM_ID_OFFSET: Final = 20

ChecksumName = Literal["none", "crc-32", "crc-32c"]
"""The checksum of a frame, which a recorder may store in place of its session id."""

_LAYOUT: Final = struct.Struct("<iBBHiiiiq")


class FrameHeader(NamedTuple):
    """The fields of a frame's header, in their order.

    Attributes:
        frame_length: of header and payload, without alignment, bytes; negative or 0 while the
            frame is not committed.
        version: of the header.
        flags: begin and end of a message, and any other that the publisher set.
        frame_type: `TYPE_DATA`, `TYPE_PADDING` or another one, which no recording holds.
        term_offset: of the frame, bytes.
        session_id: of the publication; the frame's checksum where recorded with one.
        stream_id: of the publication.
        term_id: of the frame's term.
        reserved_value: set by the publisher.
    """

    frame_length: int
    version: int
    flags: int
    frame_type: int
    term_offset: int
    session_id: int
    stream_id: int
    term_id: int
    reserved_value: int

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview, offset: int = 0) -> FrameHeader:
        """Decode the header at an offset of `data`, from which there are at least 32 bytes."""
        return cls._make(_LAYOUT.unpack_from(data, offset))

    def encode(self) -> bytes:
        """Return the 32 bytes of the header."""
        return _LAYOUT.pack(*self)


class StreamGeometry(Protocol):
    """The properties of a recorded stream that determine the headers of its frames."""

    @property
    def initial_term_id(self) -> int:
        """Term id at position 0."""

    @property
    def term_buffer_length(self) -> int:
        """Length of a term, bytes."""

    @property
    def stream_id(self) -> int:
        """Stream id."""


def to_int32(value: int) -> int:
    """Return the low 32 bits as a signed integer."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def align_frame(length: int) -> int:
    """Round a length up to the frame alignment."""
    return (length + FRAME_ALIGNMENT - 1) & -FRAME_ALIGNMENT


def max_frame_length(mtu_length: int) -> int:
    """Return the length of the longest data frame of a recording, header included.

    That is the MTU; the longest MTU where the catalog has one that no stream can have.
    """
    return mtu_length if HEADER_LENGTH < mtu_length <= MAX_MTU_LENGTH else MAX_MTU_LENGTH


def term_id_at(descriptor: StreamGeometry, position: int) -> int:
    """Return the id of the term that holds `position`; term ids wrap around after 2^31 - 1."""
    return to_int32(descriptor.initial_term_id + position // descriptor.term_buffer_length)


def is_frame_at(header: FrameHeader, descriptor: StreamGeometry, position: int) -> bool:
    """Whether a header states the stream and the term offset of the frame at `position`."""
    return (
        header.term_offset == position % descriptor.term_buffer_length
        and header.stream_id == descriptor.stream_id
        and header.term_id == term_id_at(descriptor, position)
    )
