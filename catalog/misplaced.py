"""Segment files that do not hold what their name says: swapped, renamed or copied by mistake.

Each frame says where it belongs, by stream id, term id and the offset in its term. So the first
frame of a file tells, at the cost of a short read, whether the file may be taken for what it is
called, and be deleted as such.
"""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path
from typing import Final

from aerotape.catalog.descriptor import RecordingDescriptor, lengths_problem
from aerotape.catalog.stop_position import FRAME_HEADER_LENGTH

_LOOKED_AT_BYTES: Final = 1 << 16
# Of a frame's header: length, type (padding or data), term offset, stream id, term id.
_HEADER: Final = struct.Struct("<i2xHi4xii")
_TYPES: Final = (0, 1)


def misplacement(descriptor: RecordingDescriptor, path: Path, base_position: int) -> str:
    """Say which other place the first frame of a segment file is of; "" when of none.

    That is so of a file with its right frames, of an empty one, and of one that begins with
    something that is no frame at all; also of one that is not there any more. Where the descriptor
    is so damaged that nobody knows which frames are right, it says that.

    Args:
        descriptor: the recording that the file is named for.
        path: the file.
        base_position: the position that it is named for.
    """
    lengths = descriptor.term_buffer_length, descriptor.segment_file_length
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return "it is no file"
        if problem := lengths_problem(*lengths):
            return f"what belongs there cannot be told, for the {problem}"
        with path.open("rb", buffering=0) as file:
            data = os.pread(file.fileno(), FRAME_HEADER_LENGTH, 0)
            if not any(data):
                data = os.pread(file.fileno(), _LOOKED_AT_BYTES, 0)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    written = len(data) - len(data.lstrip(b"\0"))
    # A recording may begin within a term: its first file has a hole at the beginning.
    offset = written & -FRAME_HEADER_LENGTH
    found = _place(data[offset:], descriptor)
    position = base_position + offset
    expected = _expected(descriptor, position)
    if found in (None, expected):
        return ""
    assert found is not None
    return (
        f"its first frame has stream id {found[0]}, term id {found[1]} and term offset {found[2]}, "
        f"of position {position} it would have {expected[0]}, {expected[1]} and {expected[2]}"
    )


def goes_on_at(descriptor: RecordingDescriptor, path: Path, base_position: int, at: int) -> bool:
    """Whether a segment file has a frame of the recording at position `at`."""
    try:
        found = _place(_header(path, at - base_position), descriptor)
    except OSError:
        return False
    return found == _expected(descriptor, at)


def begins_with_frame(descriptor: RecordingDescriptor, path: Path) -> bool:
    """Whether a file begins with what may be a frame of some stream."""
    try:
        return _place(_header(path, 0), descriptor) is not None
    except OSError:
        return True  # nobody knows


def is_long_enough(
    descriptor: RecordingDescriptor, path: Path, base_position: int, end: int
) -> bool:
    """Whether a segment file is one, with all the bytes of a recording that ends at `end`."""
    needed = min(max(end - base_position, 0), descriptor.segment_file_length)
    try:
        status = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size >= needed


def _header(path: Path, offset: int) -> bytes:
    """Read a frame's header; nothing of what is no file (OSError)."""
    if not path.is_file():
        return b""
    with path.open("rb", buffering=0) as file:
        return os.pread(file.fileno(), FRAME_HEADER_LENGTH, offset)


def _place(data: bytes, descriptor: RecordingDescriptor) -> tuple[int, int, int] | None:
    """Return stream id, term id and term offset of a header; None when it can be none."""
    if len(data) < FRAME_HEADER_LENGTH:
        return None
    length, frame_type, term_offset, stream_id, term_id = _HEADER.unpack_from(data)
    if (
        not FRAME_HEADER_LENGTH <= length <= descriptor.term_buffer_length
        or frame_type not in _TYPES
        or term_offset < 0
        or term_offset % FRAME_HEADER_LENGTH
    ):
        return None
    return stream_id, term_id, term_offset


def _expected(descriptor: RecordingDescriptor, position: int) -> tuple[int, int, int]:
    terms = descriptor.initial_term_id + position // descriptor.term_buffer_length
    # Term ids wrap around.
    term_id = (terms + (1 << 31)) % (1 << 32) - (1 << 31)
    return descriptor.stream_id, term_id, position % descriptor.term_buffer_length
