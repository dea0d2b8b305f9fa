"""Segment descriptors: the head of a segment file.

    version 1:  01, the SegmentDescriptor message                               29 bytes
    version 2:  02, the DescriptorMetadata message, the SegmentDescriptor       45 or 57 bytes

The checksum in the metadata is CRC-32C of the SegmentDescriptor message with its header. Version 2
of the schema (Zeebe 8.3) added the last index and position, which are stored when the segment is
complete; 0 before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aerotape.codecs.generated.raft_journal import DescriptorMetadata, SegmentDescriptor, decode
from aerotape.codecs.raft.formats import FORMATS, JournalFormat, with_version
from aerotape.codecs.raft.record import checksum_of
from aerotape.codecs.runtime import HEADER, HEADER_LENGTH, Buffer
from aerotape.errors import (
    CodecError,
    CorruptJournalError,
    InvalidChecksumError,
    UnknownVersionError,
)

# Block length by schema version; what later versions append is skipped.
_BLOCK_LENGTHS: Final = {1: 20, 2: SegmentDescriptor.BLOCK_LENGTH}


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The descriptor of a segment.

    Attributes:
        id: number of the segment, from 1.
        index: index of its first record.
        max_segment_size: length of the file, bytes.
        last_index: index of the last record; 0 if not stored.
        last_position: offset after the last record, bytes; 0 if not stored.
        version: of the descriptor, 1 or 2.
        schema_version: of its message.
        length: bytes of the descriptor; the first record follows.
    """

    id: int
    index: int
    max_segment_size: int
    last_index: int = 0
    last_position: int = 0
    version: int = 2
    schema_version: int = 2
    length: int = 0

    @property
    def format(self) -> JournalFormat:
        """The format that has such descriptors; of unknown schema versions the latest."""
        for each in FORMATS.values():
            if (self.version, self.schema_version) == (
                each.descriptor_version,
                each.journal_version,
            ):
                return each
        return FORMATS["1.0" if self.version == 1 else "8.3"]


def encode_descriptor(descriptor: Descriptor, journal_format: JournalFormat) -> bytes:
    """Encode a descriptor in a format (CodecError: a number is out of its type's range)."""
    version = journal_format.journal_version
    block_length = _BLOCK_LENGTHS[version]
    encoded = SegmentDescriptor(
        descriptor.id,
        descriptor.index,
        descriptor.max_segment_size,
        descriptor.last_index,
        descriptor.last_position,
    ).encode()[: HEADER_LENGTH + block_length]
    message = with_version(encoded, version, block_length)
    head = bytes([journal_format.descriptor_version])
    if journal_format.descriptor_version == 1:
        return head + message
    metadata = DescriptorMetadata(checksum_of(message)).encode()
    return head + with_version(metadata, version) + message


def decode_descriptor(buffer: Buffer) -> Descriptor:
    """Decode the descriptor at the start of a segment's bytes.

    Raises:
        UnknownVersionError: the version is neither 1 nor 2.
        InvalidChecksumError: the checksum does not match.
        CorruptJournalError: the bytes are too few, or not a descriptor.
    """
    version = buffer[0] if len(buffer) else 0
    if version not in (1, 2):
        raise UnknownVersionError(
            f"segment descriptor: the version is {version}, expected 1 or 2", offset=0
        )
    try:
        begin = 1
        checksum = None
        if version == 2:
            metadata = decode(memoryview(buffer)[begin:])
            if not isinstance(metadata, DescriptorMetadata):
                raise CodecError(f"it begins with a {type(metadata).__name__}")
            checksum = metadata.checksum
            begin += HEADER_LENGTH + HEADER.unpack_from(buffer, begin)[0]
        message = decode(memoryview(buffer)[begin:])
        if not isinstance(message, SegmentDescriptor):
            raise CodecError(f"it has a {type(message).__name__}")
    except CodecError as error:
        raise CorruptJournalError(f"segment descriptor: {error}", offset=0) from None
    block_length, _, _, schema_version = HEADER.unpack_from(buffer, begin)
    end = begin + HEADER_LENGTH + block_length
    found = checksum_of(memoryview(buffer)[begin:end])
    if checksum is not None and found != checksum:
        raise InvalidChecksumError(
            f"segment descriptor: the checksum is {checksum}, but that of its bytes {found}",
            offset=0,
        )
    return Descriptor(
        message.id,
        message.index,
        message.max_segment_size,
        message.last_index or 0,
        message.last_position or 0,
        version,
        schema_version,
        end,
    )
