"""Frames of a part of a ledger's recording, from the messages that another archive has there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from aerotape.catalog.descriptor import RecordingDescriptor, segment_base
from aerotape.catalog.framing import (
    framed_length,
    max_message_length,
    message_frames,
    padding_header,
)
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.recovery.trailing_segment import make_if_lacking
from aerotape.catalog.segment_files import segment_file_name
from aerotape.errors import SegmentError, StorageErrors
from aerotape.frame_header import ChecksumName
from aerotape.message import Message


def restore(
    archive_dir: Path,
    descriptor: RecordingDescriptor,
    begin: int,
    end: int,
    messages: Sequence[Message],
    checksum: ChecksumName = "none",
) -> None:
    """Write a part of a recording again; it is on storage then.

    Args:
        archive_dir: the archive directory.
        descriptor: of the recording.
        begin: where the part begins, bytes.
        end: where it ends, bytes.
        messages: all that begin and end in it; where none is, there is padding.
        checksum: that data frames get in place of the session id.

    Raises:
        StorageError: a segment file cannot be written.
        SegmentError: the messages do not fit.
    """
    length = descriptor.segment_file_length
    written: dict[int, list[tuple[int, bytes]]] = {}
    for position, frame in _frames(descriptor, begin, end, messages, checksum):
        written.setdefault(segment_base(descriptor, position), []).append((position, frame))
    for base, frames in written.items():
        path = archive_dir / segment_file_name(descriptor.recording_id, base)
        with StorageErrors(f"cannot repair {path}", path):
            make_if_lacking(path, length)
            with open(path, "r+b", buffering=0, opener=open_no_follow) as file:
                for position, frame in frames:
                    os.pwrite(file.fileno(), frame, position - base)
                if os.fstat(file.fileno()).st_size < length:  # it has lost its end
                    os.ftruncate(file.fileno(), length)
                os.fdatasync(file.fileno())


def _frames(
    descriptor: RecordingDescriptor,
    begin: int,
    end: int,
    messages: Sequence[Message],
    checksum: ChecksumName,
) -> Iterator[tuple[int, bytes]]:
    at = begin
    for message in messages:
        yield from _padding(descriptor, at, message.position)
        at = message.position
        for frame in message_frames(
            descriptor,
            at,
            message.payload,
            flags=message.flags,
            reserved_value=message.reserved_value,
            checksum=checksum,
        ):
            yield at, frame
            at += len(frame)
        if at != message.end_position or at > end:
            raise SegmentError(
                f"the entry at position {message.position} ends at {message.end_position}, and its"
                f" frames at {at} of {end}",
                position=message.position,
            )
    yield from _padding(descriptor, at, end)


def _padding(descriptor: RecordingDescriptor, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
    # As where the longest message did not fit: a replay of Java's archive refuses longer ones.
    message_length = max_message_length(descriptor.term_buffer_length)
    longest = framed_length(message_length, descriptor.mtu_length)
    while begin < end:
        header = padding_header(descriptor, begin, end, longest)
        yield begin, header.encode()
        begin += header.frame_length
