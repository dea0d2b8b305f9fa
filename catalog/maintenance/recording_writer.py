"""A new recording written into an archive directory without an archive, from its messages.

The messages are framed as a publication frames them: fragments of at most the MTU, and a padding
frame where a message does not fit in the rest of its term. As an import does, the recording becomes
visible when it is complete (`aerotape.catalog.maintenance.export_import`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import SystemRandom
from typing import Final

from aerotape.catalog.descriptor import RecordingDescriptor, lengths_problem
from aerotape.catalog.durability import sync_directory, write_at
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.framing import (
    framed_length,
    max_message_length,
    message_frames,
    padding_header,
)
from aerotape.catalog.maintenance.export_import import (
    add_next_segment,
    enter,
    importing,
)
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.recovery.owned_files import ids_with_files
from aerotape.catalog.segment_files import SegmentFile, segment_ranges
from aerotape.channel_uri import ChannelUri, stripped_channel
from aerotape.clock import epoch_ms
from aerotape.context import Closing
from aerotape.errors import ConfigurationError, StorageErrors
from aerotape.frame_header import (
    FRAME_ALIGNMENT,
    HEADER_LENGTH,
    MAX_MTU_LENGTH,
    to_int32,
)

_BUFFER_LENGTH: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStream:
    """The stream of a new recording.

    Attributes:
        channel: its channel, which may have an alias.
        stream_id: its stream id.
        term_buffer_length: bytes; a message has an eighth of it at most.
        segment_file_length: bytes.
        mtu_length: bytes.
    """

    channel: str = "aeron:ipc"
    stream_id: int = 1
    term_buffer_length: int = 64 << 20
    segment_file_length: int = 128 << 20
    mtu_length: int = 1408

    @property
    def max_message_length(self) -> int:
        """The length of the longest message, bytes."""
        return max_message_length(self.term_buffer_length)

    def check(self) -> None:
        """Raise ConfigurationError if no publication has these lengths."""
        problem = lengths_problem(self.term_buffer_length, self.segment_file_length)
        if problem:
            raise ConfigurationError(problem)
        mtu = self.mtu_length
        if not HEADER_LENGTH < mtu <= MAX_MTU_LENGTH or mtu % FRAME_ALIGNMENT:
            raise ConfigurationError(
                f"MTU length {mtu} is not a multiple of {FRAME_ALIGNMENT} from "
                f"{HEADER_LENGTH + FRAME_ALIGNMENT} to {MAX_MTU_LENGTH}",
                "mtu",
            )

    def descriptor(self, recording_id: int) -> RecordingDescriptor:
        """Return the descriptor of an empty recording of this stream that starts now."""
        random = SystemRandom()
        uri = ChannelUri.parse(self.channel)
        return RecordingDescriptor(
            recording_id=recording_id,
            start_timestamp_ms=epoch_ms(),
            stop_timestamp_ms=-1,
            start_position=0,
            stop_position=0,
            initial_term_id=to_int32(random.getrandbits(32)),
            segment_file_length=self.segment_file_length,
            term_buffer_length=self.term_buffer_length,
            mtu_length=self.mtu_length,
            session_id=to_int32(random.getrandbits(32)),
            stream_id=self.stream_id,
            stripped_channel=stripped_channel(uri),
            original_channel=self.channel,
            source_identity="aeron:ipc" if not uri.is_udp else "127.0.0.1:0",
        )


class RecordingWriter(Closing):
    """Writes the messages of a recording into segment files of a folder.

    Attributes:
        position: where the next frame begins, bytes.
    """

    def __init__(self, folder: Path, stream: NewStream, descriptor: RecordingDescriptor) -> None:
        self.position = descriptor.start_position
        self._folder = folder
        self._stream = stream
        self._descriptor = descriptor
        self._buffer = bytearray()
        self._written_to = self.position
        self._file = -1
        self._segments: list[SegmentFile] = []

    def append(self, payload: bytes | memoryview, reserved_value: int = 0) -> int:
        """Append a message and return its position.

        Raises:
            ConfigurationError: it is too long for terms of this length.
            OSError: the folder cannot be written.
        """
        length = len(payload)
        if length > self._stream.max_message_length:
            raise ConfigurationError(
                f"a message of {length} bytes is too long for terms of "
                f"{self._stream.term_buffer_length} bytes: the longest has "
                f"{self._stream.max_message_length}; choose a longer term",
                "term-length",
            )
        left = -self.position % self._stream.term_buffer_length
        if left and framed_length(length, self._stream.mtu_length) > left:
            self._buffer += padding_header(
                self._descriptor, self.position, self.position + left, left
            ).encode()
            self._buffer += bytes(left - HEADER_LENGTH)
            self.position += left
        begin = self.position
        frames = message_frames(self._descriptor, begin, payload, reserved_value=reserved_value)
        for frame in frames:
            self._buffer += frame
            self.position += len(frame)
        if len(self._buffer) >= _BUFFER_LENGTH:
            self._flush()
        return begin

    def _flush(self) -> None:
        data = memoryview(self._buffer)
        ranges = segment_ranges(self._folder, self._descriptor, self._written_to, self.position)
        for segment, begin, end in ranges:
            if begin == 0:
                self._next_file(segment)
            write_at(self._file, data[: end - begin], begin)
            data = data[end - begin :]
        data.release()
        self._buffer = bytearray()
        self._written_to = self.position

    def _next_file(self, segment: SegmentFile) -> None:
        self._close_file()
        self._file = open_no_follow(segment.path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        os.ftruncate(self._file, self._stream.segment_file_length)
        self._segments.append(segment)

    def _close_file(self) -> None:
        if self._file >= 0:
            os.fsync(self._file)
            os.close(self._file)
            self._file = -1

    def finish(self) -> tuple[RecordingDescriptor, list[SegmentFile]]:
        """Force all to storage; return the stopped recording and its segment files (OSError)."""
        self._flush()
        self._close_file()
        descriptor = replace(
            self._descriptor, stop_position=self.position, stop_timestamp_ms=epoch_ms()
        )
        add_next_segment(self._folder, descriptor, self._segments)
        sync_directory(self._folder)
        return descriptor, self._segments

    def close(self) -> None:
        """Close the open file. Idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def write_recording(
    catalog: Catalog,
    archive_dir: Path,
    stream: NewStream,
    write: Callable[[RecordingWriter], None],
) -> RecordingDescriptor:
    """Add a recording to a directory that no archive uses.

    Args:
        catalog: open for writing.
        archive_dir: the directory.
        stream: of the recording.
        write: appends the messages.

    Returns:
        The recording.

    Raises:
        ConfigurationError: the stream is impossible, or a message is too long for it.
        StorageError: the directory cannot be written.
        CatalogError: the catalog cannot be written. In each case there is no recording.
    """
    stream.check()
    catalog.check_readable()
    catalog.avoid_ids(ids_with_files(archive_dir))
    empty = stream.descriptor(catalog.next_recording_id)
    with (
        StorageErrors("cannot write a recording", archive_dir, names_file=True),
        importing(archive_dir) as folder,
        RecordingWriter(folder, stream, empty) as writer,
    ):
        write(writer)
        descriptor, segments = writer.finish()
        enter(catalog, archive_dir, descriptor, [segment.path for segment in segments])
    return descriptor
