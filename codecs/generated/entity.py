"""Messages of the SBE schema aerotape.entity, id 2020, version 1.

Generated from entity.xml with sbe-tool by codecs/generate.py; do not edit.
Regenerate: python -m aerotape.codecs.generate
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import ClassVar, Self

from aerotape.codecs.runtime import (
    ENCODE_FAULTS,
    Buffer,
    Message,
    check_block,
    data_field,
    decode_message,
    encode_error,
    enum_member,
    read_data,
)

SCHEMA_ID = 2020
SCHEMA_VERSION = 1


class ActionKind(IntEnum):
    """Enum `ActionKind` of the schema, uint8 on the wire."""

    APPEND = 1
    MARK = 2
    DELETE = 3
    PURGE = 4
    CONDITIONAL_APPEND = 5
    CONDITIONAL_PURGE = 6
    SNAPSHOT = 7


class PayloadType(IntEnum):
    """Enum `PayloadType` of the schema, uint8 on the wire."""

    NONE = 0
    BINARY = 1
    JSON = 2


_ACTION = Struct("<HHHHqqqBB6x")
_ACTION_BLOCK = Struct("<qqqBB")


class Action(Message):
    """Template 1, `Action`."""

    TEMPLATE_ID: ClassVar[int] = 1
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 2020
    SCHEMA_VERSION: ClassVar[int] = 1

    __match_args__ = (
        "timestamp_ms",
        "from_seq_nr",
        "to_seq_nr",
        "kind",
        "payload_type",
        "entity_id",
        "mark_id",
        "origin",
        "writer_version",
        "metadata",
        "payload",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        timestamp_ms: int = 0,
        from_seq_nr: int = 0,
        to_seq_nr: int = 0,
        kind: ActionKind = ActionKind.APPEND,
        payload_type: PayloadType = PayloadType.NONE,
        entity_id: bytes = b"",
        mark_id: bytes = b"",
        origin: bytes = b"",
        writer_version: bytes = b"",
        metadata: bytes = b"",
        payload: bytes = b"",
    ) -> None:
        self.timestamp_ms = timestamp_ms
        self.from_seq_nr = from_seq_nr
        self.to_seq_nr = to_seq_nr
        self.kind = kind
        self.payload_type = payload_type
        self.entity_id = entity_id
        self.mark_id = mark_id
        self.origin = origin
        self.writer_version = writer_version
        self.metadata = metadata
        self.payload = payload

    def encode(self) -> bytes:
        try:
            block = _ACTION.pack(
                32,
                1,
                2020,
                1,
                self.timestamp_ms,
                self.from_seq_nr,
                self.to_seq_nr,
                self.kind,
                self.payload_type,
            )
            return (
                block
                + data_field(self.entity_id)
                + data_field(self.mark_id)
                + data_field(self.origin)
                + data_field(self.writer_version)
                + data_field(self.metadata)
                + data_field(self.payload)
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _ACTION, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 1,
    ) -> Self:
        end = check_block("Action", buffer, offset, block_length, 26)
        (
            timestamp_ms,
            from_seq_nr,
            to_seq_nr,
            kind,
            payload_type,
        ) = _ACTION_BLOCK.unpack_from(buffer, offset)
        kind = enum_member(ActionKind, kind, "Action.kind")
        payload_type = enum_member(PayloadType, payload_type, "Action.payload_type")
        entity_id, end = read_data(buffer, end, "Action.entity_id")
        mark_id, end = read_data(buffer, end, "Action.mark_id")
        origin, end = read_data(buffer, end, "Action.origin")
        writer_version, end = read_data(buffer, end, "Action.writer_version")
        metadata, end = read_data(buffer, end, "Action.metadata")
        payload, _ = read_data(buffer, end, "Action.payload")
        return cls(
            timestamp_ms,
            from_seq_nr,
            to_seq_nr,
            kind,
            payload_type,
            entity_id,
            mark_id,
            origin,
            writer_version,
            metadata,
            payload,
        )


MESSAGES: dict[int, type[Message]] = {
    1: Action,
}


def decode(buffer: Buffer) -> Message:
    """Decode one message of this schema, message header first; bytes after it are ignored.

    Raises:
        CodecError: too short, of another schema, of an unknown template, or damaged.
    """
    return decode_message(buffer, SCHEMA_ID, "aerotape.entity", MESSAGES)
