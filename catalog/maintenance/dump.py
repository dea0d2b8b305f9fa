"""Dump of a recording's frames for people to read, with padding, fragments and headers.

Recordings of any state can be dumped. `aerotape.replay.offline.reader` reads messages, and fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from aerotape.catalog.descriptor import segment_base
from aerotape.catalog.directory import StoredRecording
from aerotape.catalog.segment_files import segment_file_name
from aerotape.errors import SegmentError
from aerotape.frame_header import (
    HEADER_LENGTH,
    TYPE_PADDING,
    FrameHeader,
    align_frame,
    max_frame_length,
)


class Frame(NamedTuple):
    """A frame.

    Attributes:
        position: where it begins in the recording, bytes.
        header: its header; where recorded with a checksum, that is in place of the session id.
        payload: the bytes that were published; empty for padding.
    """

    position: int
    header: FrameHeader
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
            position += align_frame(frame.header.frame_length)


def _read_segment(
    recording: StoredRecording, base: int, position: int, end: int
) -> Iterator[Frame]:
    path = recording.archive_dir / segment_file_name(recording.recording_id, base)
    longest = max_frame_length(recording.descriptor.mtu_length)
    try:
        with recording.open_segment(base) as file:
            file.seek(position - base)
            while position < end:
                data = file.read(HEADER_LENGTH)
                if len(data) < HEADER_LENGTH or not any(data):
                    raise _no_frame("there is no frame", path, base, position)
                header = FrameHeader.decode(data)
                length = header.frame_length
                aligned = align_frame(length)
                is_padding = header.frame_type == TYPE_PADDING
                most = end - position if is_padding else min(longest, end - position)
                if length < HEADER_LENGTH or aligned > most:
                    raise _no_frame(f"a frame cannot have {length} bytes", path, base, position)
                body = b""
                if is_padding:
                    file.seek(aligned - HEADER_LENGTH, 1)
                else:
                    body = file.read(aligned - HEADER_LENGTH)
                    if len(body) < aligned - HEADER_LENGTH:
                        raise _no_frame("the file ends within the frame", path, base, position)
                yield Frame(position, header, body[: length - HEADER_LENGTH])
                position += aligned
    except FileNotFoundError:
        raise _no_frame("there is no segment file", path, base, position) from None


def _no_frame(what: str, path: Path, base: int, position: int) -> SegmentError:
    return SegmentError(f"{what} at position {position} ({path})", path, position - base, position)
