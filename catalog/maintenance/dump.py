"""The frames of a recording one by one, as they stand in its segment files, for people to look at.

For messages, and for reading fast, there is `aerotape.replay.offline.reader`; here padding,
fragments and headers are to be seen, of recordings of any state.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aerotape.catalog import layout
from aerotape.catalog.descriptor import segment_base
from aerotape.catalog.directory import StoredRecording
from aerotape.catalog.segment_files import segment_file_name
from aerotape.errors import SegmentError

FRAME_HEADER_LENGTH: Final = 32
TYPE_PADDING: Final = 0
TYPE_DATA: Final = 1
BEGIN_FLAG: Final = 0x80
END_FLAG: Final = 0x40
# DataHeaderFlyweight, little endian.
FRAME_HEADER: Final = struct.Struct("<iBBHiiiiq")


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame.

    Attributes:
        position: where it begins in the recording, bytes.
        length: of header and payload together, without alignment, bytes.
        flags: begin and end of a message, and whatever else the publisher set.
        frame_type: data, padding or what should not be there.
        term_offset: where it says that it begins in its term, bytes.
        session_id: of its publication; its checksum where recorded with one.
        stream_id: of its publication.
        term_id: of its term.
        reserved_value: the publisher's.
        payload: what was published; of padding, nothing.
    """

    position: int
    length: int
    flags: int
    frame_type: int
    term_offset: int
    session_id: int
    stream_id: int
    term_id: int
    reserved_value: int
    payload: bytes


def read_frames(
    recording: StoredRecording, from_position: int | None = None, to_position: int | None = None
) -> Iterator[Frame]:
    """Iterate the frames of a recording from its start to its recorded position.

    Args:
        recording: of an opened archive directory.
        from_position: begin here, where a frame begins, rather than at the start.
        to_position: end before the frame that begins here or later.

    Raises:
        CatalogError: its descriptor is damaged.
        SegmentError: a segment file is missing, or has no frame where there should be one.
        StorageError: a file cannot be read.
    """
    recording.check()
    descriptor = recording.descriptor
    position, end = descriptor.start_position, recording.recorded_position
    if from_position is not None:
        position = max(position, from_position)
    if to_position is not None:
        end = min(end, to_position)
    while position < end:
        base = segment_base(descriptor, position)
        segment_end = base + descriptor.segment_file_length
        for frame in _read_segment(recording, base, position, min(segment_end, end)):
            yield frame
            position += layout.align(frame.length, FRAME_HEADER_LENGTH)


def _read_segment(
    recording: StoredRecording, base: int, position: int, end: int
) -> Iterator[Frame]:
    path = recording.archive_dir / segment_file_name(recording.recording_id, base)
    try:
        with recording.open_segment(base) as file:
            file.seek(position - base)
            while position < end:
                header = file.read(FRAME_HEADER_LENGTH)
                if len(header) < FRAME_HEADER_LENGTH or not any(header):
                    raise _no_frame("there is no frame", path, base, position)
                (
                    length,
                    _,
                    flags,
                    frame_type,
                    term_offset,
                    session_id,
                    stream_id,
                    term_id,
                    reserved_value,
                ) = FRAME_HEADER.unpack(header)
                aligned = layout.align(length, FRAME_HEADER_LENGTH)
                if length < FRAME_HEADER_LENGTH or position + aligned > end:
                    raise _no_frame(f"a frame cannot have {length} bytes", path, base, position)
                body = b""
                if frame_type == TYPE_PADDING:
                    file.seek(aligned - FRAME_HEADER_LENGTH, 1)
                else:
                    body = file.read(aligned - FRAME_HEADER_LENGTH)
                    if len(body) < aligned - FRAME_HEADER_LENGTH:
                        raise _no_frame("the file ends within the frame", path, base, position)
                payload = body[: length - FRAME_HEADER_LENGTH]
                yield Frame(
                    position=position,
                    length=length,
                    flags=flags,
                    frame_type=frame_type,
                    term_offset=term_offset,
                    session_id=session_id,
                    stream_id=stream_id,
                    term_id=term_id,
                    reserved_value=reserved_value,
                    payload=payload,
                )
                position += aligned
    except FileNotFoundError:
        raise _no_frame("there is no segment file", path, base, position) from None


def _no_frame(what: str, path: Path, base: int, position: int) -> SegmentError:
    return SegmentError(f"{what} at position {position} ({path})", path, position - base, position)
