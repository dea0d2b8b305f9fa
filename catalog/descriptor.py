"""The descriptor of a recording, and the geometry of its segment files.

Shared by the catalog, the client and the Spark source; it holds no reference to any file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from aerotape.catalog import layout
from aerotape.channel_uri import ChannelUri, initial_position
from aerotape.errors import CatalogError, ConfigurationError
from aerotape.frame_header import FRAME_ALIGNMENT
from aerotape.protocol import NULL_VALUE
from aerotape.times import datetime_of_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingDescriptor:
    """One recording, as RecordingDescriptor (message id 22 of the archive schema) describes it.

    Attributes:
        recording_id: id in its archive, from 0.
        start_timestamp_ms: when recording started, epoch milliseconds.
        stop_timestamp_ms: when it stopped, epoch milliseconds; -1 while active.
        start_position: position in the stream where it begins, bytes.
        stop_position: position where it ends, bytes; -1 while active.
        initial_term_id: id of the stream's first term.
        segment_file_length: length of each segment file, bytes.
        term_buffer_length: length of a term of the stream, bytes.
        mtu_length: MTU of the stream, its longest frame, bytes.
        session_id: session id of the recorded image (the last one, when extended).
        stream_id: stream id.
        stripped_channel: the channel reduced to what identifies it.
        original_channel: the channel as the client asked for it.
        source_identity: where the image came from: host:port or ``aeron:ipc``.
    """

    recording_id: int
    start_timestamp_ms: int
    stop_timestamp_ms: int
    start_position: int
    stop_position: int
    initial_term_id: int
    segment_file_length: int
    term_buffer_length: int
    mtu_length: int
    session_id: int
    stream_id: int
    stripped_channel: str
    original_channel: str
    source_identity: str

    @property
    def is_active(self) -> bool:
        """Whether no stop position is set."""
        return self.stop_position == NULL_VALUE

    @property
    def start_time(self) -> datetime | None:
        """The time at which recording started, in UTC; None if the descriptor has none."""
        return datetime_of_ms(self.start_timestamp_ms)

    @property
    def stop_time(self) -> datetime | None:
        """The time at which it stopped, in UTC; None while it is active."""
        return datetime_of_ms(self.stop_timestamp_ms)

    def encode(self) -> bytes:
        """Encode as the catalog stores it: no message header and no padding.

        The two fields that only mean something on the wire (controlSessionId, correlationId)
        are zero.

        Raises:
            CatalogError: a string is not ASCII, or a number does not fit its field.
        """
        try:
            *numbers, first, second, third = (getattr(self, name) for name in self.__slots__)
            block = layout.DESCRIPTOR_BLOCK.pack(0, 0, *numbers)
            strings = [text.encode("ascii") for text in (first, second, third)]
        except (UnicodeEncodeError, struct.error) as error:
            raise CatalogError(
                f"recording {self.recording_id} cannot be described in the catalog: {error}"
            ) from error
        return block + b"".join(layout.VAR_LENGTH.pack(len(text)) + text for text in strings)

    @classmethod
    def decode(cls, data: bytes | memoryview) -> RecordingDescriptor:
        """Decode the bare body of a descriptor; bytes after it (alignment) are ignored.

        Raises:
            CatalogError: the bytes end within a field.
        """
        descriptor, damage = cls.decode_damaged(data)
        if damage:
            raise CatalogError(f"recording {descriptor.recording_id}: {damage}")
        return descriptor

    @classmethod
    def decode_damaged(cls, data: bytes | memoryview) -> tuple[RecordingDescriptor, str]:
        """Decode as far as possible; strings that do not fit come out empty.

        Returns:
            The descriptor, and what is wrong with the strings or "".

        Raises:
            CatalogError: not even the fixed block is there.
        """
        available = len(data)
        if available < layout.DESCRIPTOR_BLOCK_LENGTH:
            raise CatalogError(
                f"a recording descriptor of {available} bytes is shorter than its fixed block of "
                f"{layout.DESCRIPTOR_BLOCK_LENGTH}"
            )
        numbers = layout.DESCRIPTOR_BLOCK.unpack_from(data)[2:]
        strings, damage = _strings(data)
        return cls(**dict(zip(cls.__slots__, (*numbers, *strings), strict=True))), damage


def _strings(data: bytes | memoryview) -> tuple[list[str], str]:
    """Return the three strings, empty if they do not fit the data, and the problem or ""."""
    strings = ["", "", ""]
    offset, available = layout.DESCRIPTOR_BLOCK_LENGTH, len(data)
    for index, name in enumerate(("strippedChannel", "originalChannel", "sourceIdentity")):
        begin = offset + layout.VAR_LENGTH.size
        if begin > available:
            return strings, f"the descriptor ends before {name}"
        (length,) = layout.VAR_LENGTH.unpack_from(data, offset)
        offset = begin + length
        if offset > available:
            return strings, (
                f"{name} of {length} bytes does not fit the descriptor of {available} bytes"
            )
        # An archive writes ASCII; anything else must still be shown rather than refused.
        strings[index] = str(data[begin:offset], "ascii", "backslashreplace")
    return strings, ""


def segment_base_position(
    start_position: int, position: int, term_length: int, segment_length: int
) -> int:
    """Return the base position of the segment file that holds `position`.

    All arguments and the result are bytes; both lengths are powers of two.
    """
    first_base = start_position & -term_length
    return first_base + ((position - first_base) & -segment_length)


def segment_base(descriptor: RecordingDescriptor, position: int) -> int:
    """Return the base position of the segment file of a recording that holds `position`."""
    return segment_base_position(
        descriptor.start_position,
        position,
        descriptor.term_buffer_length,
        descriptor.segment_file_length,
    )


def max_position(descriptor: RecordingDescriptor) -> int:
    """Return the position at which a stream with terms of this length ends: 2^31 of them."""
    return descriptor.term_buffer_length << 31


def extension_channel(recording: RecordingDescriptor, channel: str) -> str:
    """Return `channel` for a publication that continues at the end of a stopped recording.

    >>> recording = client.list_recording(0)
    >>> channel = aerotape.extension_channel(recording, "aeron:ipc")
    >>> subscription_id = client.extend_recording(0, channel, recording.stream_id)
    >>> publication = client.aeron.add_exclusive_publication(channel, recording.stream_id)
    >>> publication.position
    192

    Raises:
        ConfigurationError: the recording has not stopped, or `channel` is not a channel URI.
    """
    if recording.is_active:
        raise ConfigurationError(
            f"recording {recording.recording_id} is live: stop it before extending it"
        )
    uri = ChannelUri.parse(channel)
    additions = initial_position(
        recording.stop_position, recording.initial_term_id, recording.term_buffer_length
    )
    for name, value in {**additions, "mtu": recording.mtu_length}.items():
        uri.put(name.replace("_", "-"), str(value))
    return str(uri)


def describe_problem(descriptor: RecordingDescriptor) -> str:
    """Describe impossible figures of a descriptor; empty when they are possible."""
    problem = lengths_problem(descriptor.term_buffer_length, descriptor.segment_file_length)
    if problem:
        return problem
    start, stop, last = (
        descriptor.start_position,
        descriptor.stop_position,
        max_position(descriptor),
    )
    for name, value in (("start position", start), ("stop position", stop)):
        if value != NULL_VALUE and (value < 0 or value % FRAME_ALIGNMENT):
            return f"{name} {value} is negative or not a multiple of {FRAME_ALIGNMENT}"
        if value > last:
            return f"{name} {value} is beyond the last that terms of this length can have"
    if start < 0:
        return "the start position is not set"
    if NULL_VALUE < stop < start:
        return f"stop position {stop} is before start position {start}"
    return ""


@lru_cache(maxsize=64)
def lengths_problem(term_buffer_length: int, segment_file_length: int) -> str:
    """Describe impossible lengths, which many recordings have in common."""
    for name, value in (
        ("term buffer length", term_buffer_length),
        ("segment file length", segment_file_length),
    ):
        if value < 64 * 1024 or value > 1 << 30 or value & (value - 1):
            return f"{name} {value} is not a power of two from 64 KiB to 1 GiB"
    if segment_file_length < term_buffer_length:
        return (
            f"segment file length {segment_file_length} is less than the term length "
            f"{term_buffer_length}"
        )
    return ""
