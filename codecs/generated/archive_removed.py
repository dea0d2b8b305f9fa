"""Messages of the SBE schema io.aeron.archive.codecs.removed, id 101, version 13.

Generated from archive-removed.xml with sbe-tool by codecs/generate.py; do not edit.
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

SCHEMA_ID = 101
SCHEMA_VERSION = 13


_CONNECT_REQUEST = Struct("<HHHHqii")
_CONNECT_REQUEST_BLOCK_V2 = Struct("<qii")
_CONNECT_REQUEST_BLOCK_V0 = Struct("<qi")


class ConnectRequest(Message):
    """Template 2, `ConnectRequest`."""

    TEMPLATE_ID: ClassVar[int] = 2
    BLOCK_LENGTH: ClassVar[int] = 16
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 13

    __match_args__ = ("correlation_id", "response_stream_id", "version", "response_channel")
    __slots__ = __match_args__

    def __init__(
        self,
        correlation_id: int = 0,
        response_stream_id: int = 0,
        version: int | None = None,  # since version 2
        response_channel: str = "",
    ) -> None:
        self.correlation_id = correlation_id
        self.response_stream_id = response_stream_id
        self.version = version
        self.response_channel = response_channel

    def encode(self) -> bytes:
        try:
            block = _CONNECT_REQUEST.pack(
                16,
                2,
                101,
                13,
                self.correlation_id,
                self.response_stream_id,
                0 if self.version is None else self.version,
            )
            return block + text_field(self.response_channel)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _CONNECT_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 16,
        version: int = 13,
    ) -> Self:
        version_: int | None = None
        if version >= 2:
            end = check_block("ConnectRequest", buffer, offset, block_length, 16)
            (
                correlation_id,
                response_stream_id,
                version_,
            ) = _CONNECT_REQUEST_BLOCK_V2.unpack_from(buffer, offset)
        else:
            end = check_block("ConnectRequest", buffer, offset, block_length, 12)
            (
                correlation_id,
                response_stream_id,
            ) = _CONNECT_REQUEST_BLOCK_V0.unpack_from(buffer, offset)
        if version_ == 0:
            version_ = None
        response_channel, _ = read_text(buffer, end, "ConnectRequest.response_channel")
        return cls(correlation_id, response_stream_id, version_, response_channel)


MESSAGES: dict[int, type[Message]] = {
    2: ConnectRequest,
}


def decode(buffer: Buffer) -> Message:
    """Decode one message of this schema, message header first; bytes after it are ignored.

    Raises:
        CodecError: too short, of another schema, of an unknown template, or damaged.
    """
    return decode_message(buffer, SCHEMA_ID, "io.aeron.archive.codecs.removed", MESSAGES)
