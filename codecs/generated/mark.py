"""Messages of the SBE schema io.aeron.archive.codecs.mark, id 100, version 2.

Generated from aeron-archive-mark-codecs.xml with sbe-tool by codecs/generate.py; do not edit.
Regenerate: python -m aerotape.codecs.generate
"""

from __future__ import annotations

from struct import Struct
from typing import ClassVar, Self

from aerotape.codecs.runtime import (
    ENCODE_FAULTS,
    Buffer,
    Message,
    check_block,
    decode_message,
    encode_error,
    read_text,
    text_field,
)

SCHEMA_ID = 100
SCHEMA_VERSION = 2


_MARK_FILE_HEADER = Struct("<HHHHi4xqqqiiiii4xq64x")
_MARK_FILE_HEADER_BLOCK_V2 = Struct("<i4xqqqiiiii4xq")
_MARK_FILE_HEADER_BLOCK_V1 = Struct("<i4xqqqiiiii")
_MARK_FILE_HEADER_BLOCK_V0 = Struct("<i4xqqqiii")


class MarkFileHeader(Message):
    """Template 200, `MarkFileHeader`."""

    TEMPLATE_ID: ClassVar[int] = 200
    BLOCK_LENGTH: ClassVar[int] = 128
    SCHEMA_ID: ClassVar[int] = 100
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = (
        "version",
        "activity_timestamp",
        "start_timestamp",
        "pid",
        "control_stream_id",
        "local_control_stream_id",
        "events_stream_id",
        "header_length",
        "error_buffer_length",
        "archive_id",
        "control_channel",
        "local_control_channel",
        "events_channel",
        "aeron_directory",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        version: int = 0,
        activity_timestamp: int = 0,
        start_timestamp: int = 0,
        pid: int = 0,
        control_stream_id: int = 0,
        local_control_stream_id: int = 0,
        events_stream_id: int = 0,
        header_length: int | None = None,  # since version 1
        error_buffer_length: int | None = None,  # since version 1
        archive_id: int | None = None,  # since version 2
        control_channel: str = "",
        local_control_channel: str = "",
        events_channel: str = "",
        aeron_directory: str = "",
    ) -> None:
        self.version = version
        self.activity_timestamp = activity_timestamp
        self.start_timestamp = start_timestamp
        self.pid = pid
        self.control_stream_id = control_stream_id
        self.local_control_stream_id = local_control_stream_id
        self.events_stream_id = events_stream_id
        self.header_length = header_length
        self.error_buffer_length = error_buffer_length
        self.archive_id = archive_id
        self.control_channel = control_channel
        self.local_control_channel = local_control_channel
        self.events_channel = events_channel
        self.aeron_directory = aeron_directory

    def encode(self) -> bytes:
        try:
            block = _MARK_FILE_HEADER.pack(
                128,
                200,
                100,
                2,
                self.version,
                self.activity_timestamp,
                self.start_timestamp,
                self.pid,
                self.control_stream_id,
                self.local_control_stream_id,
                self.events_stream_id,
                0 if self.header_length is None else self.header_length,
                0 if self.error_buffer_length is None else self.error_buffer_length,
                -1 if self.archive_id is None else self.archive_id,
            )
            return (
                block
                + text_field(self.control_channel)
                + text_field(self.local_control_channel)
                + text_field(self.events_channel)
                + text_field(self.aeron_directory)
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _MARK_FILE_HEADER, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 128,
        version: int = 2,
    ) -> Self:
        header_length: int | None = None
        error_buffer_length: int | None = None
        archive_id: int | None = None
        if version >= 2:
            end = check_block("MarkFileHeader", buffer, offset, block_length, 64)
            (
                version_,
                activity_timestamp,
                start_timestamp,
                pid,
                control_stream_id,
                local_control_stream_id,
                events_stream_id,
                header_length,
                error_buffer_length,
                archive_id,
            ) = _MARK_FILE_HEADER_BLOCK_V2.unpack_from(buffer, offset)
        elif version >= 1:
            end = check_block("MarkFileHeader", buffer, offset, block_length, 52)
            (
                version_,
                activity_timestamp,
                start_timestamp,
                pid,
                control_stream_id,
                local_control_stream_id,
                events_stream_id,
                header_length,
                error_buffer_length,
            ) = _MARK_FILE_HEADER_BLOCK_V1.unpack_from(buffer, offset)
        else:
            end = check_block("MarkFileHeader", buffer, offset, block_length, 44)
            (
                version_,
                activity_timestamp,
                start_timestamp,
                pid,
                control_stream_id,
                local_control_stream_id,
                events_stream_id,
            ) = _MARK_FILE_HEADER_BLOCK_V0.unpack_from(buffer, offset)
        if header_length == 0:
            header_length = None
        if error_buffer_length == 0:
            error_buffer_length = None
        if archive_id == -1:
            archive_id = None
        control_channel, end = read_text(buffer, end, "MarkFileHeader.control_channel")
        local_control_channel, end = read_text(buffer, end, "MarkFileHeader.local_control_channel")
        events_channel, end = read_text(buffer, end, "MarkFileHeader.events_channel")
        aeron_directory, _ = read_text(buffer, end, "MarkFileHeader.aeron_directory")
        return cls(
            version_,
            activity_timestamp,
            start_timestamp,
            pid,
            control_stream_id,
            local_control_stream_id,
            events_stream_id,
            header_length,
            error_buffer_length,
            archive_id,
            control_channel,
            local_control_channel,
            events_channel,
            aeron_directory,
        )


MESSAGES: dict[int, type[Message]] = {
    200: MarkFileHeader,
}


def decode(buffer: Buffer) -> Message:
    """Decode one message of this schema, message header first; bytes after it are ignored.

    Raises:
        CodecError: too short, of another schema, of an unknown template, or damaged.
    """
    return decode_message(buffer, SCHEMA_ID, "io.aeron.archive.codecs.mark", MESSAGES)
