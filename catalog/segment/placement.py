"""Placement of segment files: whether a file holds the frames that its name says.

Files are swapped, renamed or copied by mistake. Each frame states its stream id, term id and term
offset, so a short read of the first frame decides whether a file is the one that it is named for,
and may be deleted as such.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from aerotape.catalog.descriptor import RecordingDescriptor, lengths_problem
from aerotape.catalog.segment_files import SegmentFile
from aerotape.frame_header import (
    FRAME_ALIGNMENT,
    HEADER_LENGTH,
    TYPE_DATA,
    TYPE_PADDING,
    FrameHeader,
    align_frame,
    is_frame_at,
    term_id_at,
)

_SEARCHED_LENGTH: Final = 64 * 1024
"""Bytes in which the first frame is searched for."""


class SegmentHead(NamedTuple):
    """The first bytes of a segment file.

    Attributes:
        error: number of the error of the read, 0 for none.
        is_file: whether it is a regular file.
        length: of the file, bytes.
        offset: of its first bytes that are not all zero, a multiple of 32.
        header: these bytes, 32 where there are as many, none where the first 64 KiB are blank.
    """

    error: int
    is_file: bool
    length: int
    offset: int
    header: bytes


def read_head(path: str | Path) -> SegmentHead:
    """Read the first bytes of a segment file."""
    is_file = False
    try:
        # Another kind of file is not opened: a pipe would wait for its writer.
        status = Path(path).stat()
        is_file = stat.S_ISREG(status.st_mode)
        if not is_file:
            return SegmentHead(0, is_file, 0, 0, b"")
        with Path(path).open("rb", buffering=0) as file:
            data = file.read(HEADER_LENGTH)
            # A recording may begin within a term: its first file has a hole at the beginning.
            if not any(data):
                data = os.pread(file.fileno(), _SEARCHED_LENGTH, 0)
    except OSError as error:
        return SegmentHead(error.errno or errno.EIO, is_file, 0, 0, b"")
    offset = (len(data) - len(data.lstrip(b"\0"))) // FRAME_ALIGNMENT * FRAME_ALIGNMENT
    return SegmentHead(0, is_file, status.st_size, offset, data[offset : offset + HEADER_LENGTH])


def misplacement(descriptor: RecordingDescriptor, path: Path, base_position: int) -> str:
    """Describe why the first frame of a segment file does not belong there; "" if it may.

    Returns "" also for a file that is empty, that begins with something other than a frame, or that
    does not exist. If the lengths in the descriptor are damaged, the result says that the expected
    frames are not known.

    Args:
        descriptor: the recording that the file is named for.
        path: the file.
        base_position: the position that it is named for.
    """
    return misplaced_head(descriptor, read_head(path), base_position)


def split_by_place(
    descriptor: RecordingDescriptor, segments: Sequence[SegmentFile]
) -> tuple[list[Path], list[str]]:
    """Find the files of a recording to be removed that hold frames of another place.

    Of a recording whose descriptor is so damaged that this is not known, all are its own.

    Returns:
        The files that go, in the order given; and for each other one that it is left, and why.
    """
    if lengths_problem(descriptor.term_buffer_length, descriptor.segment_file_length):
        return [segment.path for segment in segments], []
    own: list[Path] = []
    left: list[str] = []
    for segment in segments:
        head = read_head(segment.path)
        # What is there but cannot be read is to be deleted all the same.
        reason = "" if head.error else misplaced_head(descriptor, head, segment.base_position)
        if reason and head.is_file:
            left.append(f"left {segment.path}: {reason}")
        else:
            own.append(segment.path)
    return own, left


def misplaced_head(descriptor: RecordingDescriptor, head: SegmentHead, base_position: int) -> str:
    """As `misplacement`, for a file whose first bytes were read."""
    if head.error == errno.ENOENT:
        return ""
    if head.error:
        return f"it cannot be read: {os.strerror(head.error)}"
    if not head.is_file:
        return "it is not a regular file"
    lengths = descriptor.term_buffer_length, descriptor.segment_file_length
    if problem := lengths_problem(*lengths):
        return f"the frames that belong there are not known: the {problem}"
    found = _decode(head.header, descriptor)
    # A recording may begin within a term: its first file has a hole at the beginning.
    position = base_position + head.offset
    if found is None or is_frame_at(found, descriptor, position):
        return ""
    return (
        f"its first frame has stream id {found.stream_id}, term id {found.term_id} and term offset "
        f"{found.term_offset}, at position {position} it would have {descriptor.stream_id}, "
        f"{term_id_at(descriptor, position)} and {position % descriptor.term_buffer_length}"
    )


def continues_at(descriptor: RecordingDescriptor, path: Path, base_position: int, at: int) -> bool:
    """Whether a segment file has a frame of the recording at position `at`."""
    return frame_end(descriptor, path, base_position, at) is not None


def frame_end(
    descriptor: RecordingDescriptor, path: Path, base_position: int, at: int
) -> int | None:
    """Return where a frame ends by its header, bytes; the rest of it need not be there.

    Args:
        descriptor: of the recording.
        path: a segment file of it.
        base_position: of that file, bytes.
        at: where the frame begins, bytes; None is returned if no frame of the recording does.
    """
    try:
        found = _decode(_read_header(path, at - base_position), descriptor)
    except OSError:
        return None
    if found is None or not is_frame_at(found, descriptor, at):
        return None
    length = align_frame(found.frame_length)
    fits = at % descriptor.term_buffer_length + length <= descriptor.term_buffer_length
    return at + length if fits else None


def begins_with_frame(descriptor: RecordingDescriptor, path: Path) -> bool:
    """Whether a file begins with what may be a frame of some stream."""
    try:
        return _decode(_read_header(path, 0), descriptor) is not None
    except OSError:
        return True  # not known


def is_long_enough(
    descriptor: RecordingDescriptor, head: SegmentHead, base_position: int, end: int
) -> bool:
    """Whether a segment file is one, with all the bytes of a recording that ends at `end`."""
    needed = min(max(end - base_position, 0), descriptor.segment_file_length)
    return head.is_file and head.length >= needed


def _read_header(path: Path, offset: int) -> bytes:
    """Read a frame's header; empty unless it is a regular file (OSError)."""
    if not path.is_file():
        return b""
    with path.open("rb", buffering=0) as file:
        return os.pread(file.fileno(), HEADER_LENGTH, offset)


def _decode(data: bytes, descriptor: RecordingDescriptor) -> FrameHeader | None:
    """Decode a header; None when no frame of a stream with such terms can have it."""
    if len(data) < HEADER_LENGTH:
        return None
    header = FrameHeader.decode(data)
    if (
        not HEADER_LENGTH <= header.frame_length <= descriptor.term_buffer_length
        or header.frame_type not in (TYPE_PADDING, TYPE_DATA)
        or header.term_offset < 0
        or header.term_offset % FRAME_ALIGNMENT
    ):
        return None
    return header
