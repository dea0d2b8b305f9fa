"""Frames of a part of a ledger's recording, from the messages that another archive has there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from aerotape import _native
from aerotape.catalog.descriptor import RecordingDescriptor, segment_base
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.recovery.trailing_segment import make_if_lacking
from aerotape.catalog.segment_files import segment_file_name
from aerotape.errors import SegmentError, StorageErrors
from aerotape.frame_header import (
    BEGIN_FLAG,
    END_FLAG,
    HEADER_LENGTH,
    TYPE_DATA,
    TYPE_PADDING,
    UNFRAGMENTED,
    ChecksumName,
    FrameHeader,
    align_frame,
    term_id_at,
)
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
        longest = descriptor.mtu_length - HEADER_LENGTH
        for offset in range(0, max(len(message.payload), 1), longest):
            part = message.payload[offset : offset + longest]
            is_first, is_last = offset == 0, offset + longest >= len(message.payload)
            flags = message.flags & ~UNFRAGMENTED | BEGIN_FLAG * is_first | END_FLAG * is_last
            header = _header(descriptor, at, HEADER_LENGTH + len(part), flags, TYPE_DATA)
            header = header._replace(reserved_value=message.reserved_value)
            aligned = align_frame(header.frame_length)
            content = part.ljust(aligned - HEADER_LENGTH, b"\0")
            if checksum != "none":
                header = header._replace(session_id=_native.checksum(checksum, content))
            yield at, header.encode() + content
            at += aligned
        if at != message.end_position or at > end:
            raise SegmentError(
                f"the entry at position {message.position} ends at {message.end_position}, and its"
                f" frames at {at} of {end}",
                position=message.position,
            )
    yield from _padding(descriptor, at, end)


def _padding(descriptor: RecordingDescriptor, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
    term_length = descriptor.term_buffer_length
    while begin < end:
        until = min(end, (begin & -term_length) + term_length)
        header = _header(descriptor, begin, until - begin, UNFRAGMENTED, TYPE_PADDING)
        yield begin, header.encode()
        begin = until


def _header(
    descriptor: RecordingDescriptor, position: int, length: int, flags: int, frame_type: int
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
        0,
    )
