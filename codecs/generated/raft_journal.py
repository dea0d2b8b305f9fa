"""Messages of the SBE schema aerotape.raft.journal, id 7, version 2.

Generated from raft-journal.xml with sbe-tool by codecs/generate.py; do not edit.
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

SCHEMA_ID = 7
SCHEMA_VERSION = 2


_RECORD_METADATA = Struct("<HHHHqi")
_RECORD_METADATA_BLOCK = Struct("<qi")


class RecordMetadata(Message):
    """Template 1, `RecordMetadata`."""

    TEMPLATE_ID: ClassVar[int] = 1
    BLOCK_LENGTH: ClassVar[int] = 12
    SCHEMA_ID: ClassVar[int] = 7
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = ("checksum", "length")
    __slots__ = __match_args__

    def __init__(
        self,
        checksum: int = 0,
        length: int = 0,
    ) -> None:
        self.checksum = checksum
        self.length = length

    def encode(self) -> bytes:
        try:
            return _RECORD_METADATA.pack(12, 1, 7, 2, self.checksum, self.length)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _RECORD_METADATA, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 12,
        version: int = 2,
    ) -> Self:
        check_block("RecordMetadata", buffer, offset, block_length, 12)
        (checksum, length) = _RECORD_METADATA_BLOCK.unpack_from(buffer, offset)
        return cls(checksum, length)


_RECORD_DATA = Struct("<HHHHQq")
_RECORD_DATA_BLOCK = Struct("<Qq")


class RecordData(Message):
    """Template 2, `RecordData`."""

    TEMPLATE_ID: ClassVar[int] = 2
    BLOCK_LENGTH: ClassVar[int] = 16
    SCHEMA_ID: ClassVar[int] = 7
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = ("index", "asqn", "blob")
    __slots__ = __match_args__

    def __init__(
        self,
        index: int = 0,
        asqn: int = 0,
        blob: bytes = b"",
    ) -> None:
        self.index = index
        self.asqn = asqn
        self.blob = blob

    def encode(self) -> bytes:
        try:
            block = _RECORD_DATA.pack(16, 2, 7, 2, self.index, self.asqn)
            return block + data_field(self.blob)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _RECORD_DATA, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 16,
        version: int = 2,
    ) -> Self:
        end = check_block("RecordData", buffer, offset, block_length, 16)
        (index, asqn) = _RECORD_DATA_BLOCK.unpack_from(buffer, offset)
        blob, _ = read_data(buffer, end, "RecordData.blob")
        return cls(index, asqn, blob)


_SEGMENT_DESCRIPTOR = Struct("<HHHHQQIQI")
_SEGMENT_DESCRIPTOR_BLOCK_V2 = Struct("<QQIQI")
_SEGMENT_DESCRIPTOR_BLOCK_V0 = Struct("<QQI")


class SegmentDescriptor(Message):
    """Template 3, `SegmentDescriptor`."""

    TEMPLATE_ID: ClassVar[int] = 3
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 7
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = ("id", "index", "max_segment_size", "last_index", "last_position")
    __slots__ = __match_args__

    def __init__(
        self,
        id: int = 0,
        index: int = 0,
        max_segment_size: int = 0,
        last_index: int | None = None,  # since version 2
        last_position: int | None = None,  # since version 2
    ) -> None:
        self.id = id
        self.index = index
        self.max_segment_size = max_segment_size
        self.last_index = last_index
        self.last_position = last_position

    def encode(self) -> bytes:
        try:
            return _SEGMENT_DESCRIPTOR.pack(
                32,
                3,
                7,
                2,
                self.id,
                self.index,
                self.max_segment_size,
                18446744073709551615 if self.last_index is None else self.last_index,
                4294967295 if self.last_position is None else self.last_position,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _SEGMENT_DESCRIPTOR, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 2,
    ) -> Self:
        last_index: int | None = None
        last_position: int | None = None
        if version >= 2:
            check_block("SegmentDescriptor", buffer, offset, block_length, 32)
            (
                id,
                index,
                max_segment_size,
                last_index,
                last_position,
            ) = _SEGMENT_DESCRIPTOR_BLOCK_V2.unpack_from(buffer, offset)
        else:
            check_block("SegmentDescriptor", buffer, offset, block_length, 20)
            (id, index, max_segment_size) = _SEGMENT_DESCRIPTOR_BLOCK_V0.unpack_from(buffer, offset)
        if last_index == 18446744073709551615:
            last_index = None
        if last_position == 4294967295:
            last_position = None
        return cls(id, index, max_segment_size, last_index, last_position)


_DESCRIPTOR_METADATA = Struct("<HHHHq")
_DESCRIPTOR_METADATA_BLOCK = Struct("<q")


class DescriptorMetadata(Message):
    """Template 4, `DescriptorMetadata`."""

    TEMPLATE_ID: ClassVar[int] = 4
    BLOCK_LENGTH: ClassVar[int] = 8
    SCHEMA_ID: ClassVar[int] = 7
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = ("checksum",)
    __slots__ = __match_args__

    def __init__(
        self,
        checksum: int = 0,
    ) -> None:
        self.checksum = checksum

    def encode(self) -> bytes:
        try:
            return _DESCRIPTOR_METADATA.pack(8, 4, 7, 2, self.checksum)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _DESCRIPTOR_METADATA, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 8,
        version: int = 2,
    ) -> Self:
        check_block("DescriptorMetadata", buffer, offset, block_length, 8)
        (checksum,) = _DESCRIPTOR_METADATA_BLOCK.unpack_from(buffer, offset)
        return cls(checksum)


MESSAGES: dict[int, type[Message]] = {
    1: RecordMetadata,
    2: RecordData,
    3: SegmentDescriptor,
    4: DescriptorMetadata,
}


def decode(buffer: Buffer) -> Message:
    """Decode one message of this schema, message header first; bytes after it are ignored.

    Raises:
        CodecError: too short, of another schema, of an unknown template, or damaged.
    """
    return decode_message(buffer, SCHEMA_ID, "aerotape.raft.journal", MESSAGES)
