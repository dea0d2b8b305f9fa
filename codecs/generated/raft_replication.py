"""Messages of the SBE schema aerotape.raft.replication, id 2019, version 0.

Generated from raft-replication.xml with sbe-tool by codecs/generate.py; do not edit.
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
    data_field,
    decode_message,
    encode_error,
    read_data,
)

SCHEMA_ID = 2019
SCHEMA_VERSION = 0


_REPLICATED_RECORD = Struct("<HHHHqqqq")
_REPLICATED_RECORD_BLOCK = Struct("<qqqq")


class ReplicatedRecord(Message):
    """Template 1, `ReplicatedRecord`."""

    TEMPLATE_ID: ClassVar[int] = 1
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 2019
    SCHEMA_VERSION: ClassVar[int] = 0

    __match_args__ = ("term", "index", "asqn", "checksum", "serialized_raft_record")
    __slots__ = __match_args__

    def __init__(
        self,
        term: int = 0,
        index: int = 0,
        asqn: int = 0,
        checksum: int = 0,
        serialized_raft_record: bytes = b"",
    ) -> None:
        self.term = term
        self.index = index
        self.asqn = asqn
        self.checksum = checksum
        self.serialized_raft_record = serialized_raft_record

    def encode(self) -> bytes:
        try:
            block = _REPLICATED_RECORD.pack(
                32,
                1,
                2019,
                0,
                self.term,
                self.index,
                self.asqn,
                self.checksum,
            )
            return block + data_field(self.serialized_raft_record)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _REPLICATED_RECORD, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 0,
    ) -> Self:
        end = check_block("ReplicatedRecord", buffer, offset, block_length, 32)
        (term, index, asqn, checksum) = _REPLICATED_RECORD_BLOCK.unpack_from(buffer, offset)
        serialized_raft_record, _ = read_data(
            buffer,
            end,
            "ReplicatedRecord.serialized_raft_record",
        )
        return cls(term, index, asqn, checksum, serialized_raft_record)


MESSAGES: dict[int, type[Message]] = {
    1: ReplicatedRecord,
}


def decode(buffer: Buffer) -> Message:
    """Decode one message of this schema, message header first; bytes after it are ignored.

    Raises:
        CodecError: too short, of another schema, of an unknown template, or damaged.
    """
    return decode_message(buffer, SCHEMA_ID, "aerotape.raft.replication", MESSAGES)
