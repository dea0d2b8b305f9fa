"""Records of a journal: a frame, the metadata and the data, the latter two SBE messages.

    offset  0     frame: 0 no record follows, 1 a record
            1     header of RecordMetadata
            9     checksum, int64: CRC-32C of the data
           17     length, int32: bytes of the data
           21     header of RecordData
           29     index, uint64
           37     asqn, int64: -1 for none
           45     length of the blob, uint32
           49     the blob: a raft entry

The data that checksum and length are about is the RecordData message with its header, so the same
record has another checksum under another schema version. The journal does not interpret the blob.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from aerotape import _native
from aerotape.codecs.generated.raft_entry import EntryType, RaftLogEntry
from aerotape.codecs.generated.raft_journal import RecordData, RecordMetadata
from aerotape.codecs.raft.formats import LATEST, with_version
from aerotape.codecs.runtime import HEADER, HEADER_LENGTH, VAR_DATA_LENGTH, Buffer, Message
from aerotape.errors import (
    CodecError,
    CorruptJournalError,
    InvalidAsqnError,
    InvalidChecksumError,
    InvalidIndexError,
    UnknownVersionError,
)

END_FRAME: Final = 0
RECORD_FRAME: Final = 1
NO_ASQN: Final = -1
FRAME_LENGTH: Final = 1
_METADATA_END: Final = FRAME_LENGTH + HEADER_LENGTH + RecordMetadata.BLOCK_LENGTH
_DATA_OVERHEAD: Final = HEADER_LENGTH + RecordData.BLOCK_LENGTH + VAR_DATA_LENGTH.size
# Bytes of a record without those of its blob.
RECORD_OVERHEAD: Final = _METADATA_END + _DATA_OVERHEAD
_INDEX_AND_ASQN: Final = struct.Struct("<Qq")
_TERM_AND_TYPE: Final = struct.Struct("<QB")


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """A record of a journal.

    Attributes:
        index: the place in the journal, from 1.
        asqn: the application's sequence number, -1 for none.
        checksum: of the data message; 0 to 2^32 - 1.
        data: the serialized raft entry.
        version: the schema version in the header of the data message.
        length: bytes of the whole record, frame included; 0 if it was not decoded from bytes.
    """

    index: int
    asqn: int
    checksum: int
    data: bytes
    version: int = LATEST.journal_version
    length: int = 0


@dataclass(frozen=True, slots=True)
class PartialRecord:
    """A record without its application data; type and term are those of its raft entry."""

    type: EntryType
    term: int
    index: int
    asqn: int


def checksum_of(data: Buffer) -> int:
    """Return the checksum of a data message, header included: CRC-32C, 0 to 2^32 - 1."""
    return _native.checksum("crc-32c", bytes(data)) & 0xFFFF_FFFF


def encode_record(
    index: int, asqn: int, blob: bytes, version: int = LATEST.journal_version
) -> bytes:
    """Encode a record, its frame included.

    Args:
        index: from 1.
        asqn: the application's sequence number, -1 for none.
        blob: the serialized raft entry, or any bytes.
        version: the schema version of both messages.

    Raises:
        CodecError: a number is out of its type's range, or the blob too long.
    """
    data = with_version(RecordData(index, asqn, blob).encode(), version)
    metadata = RecordMetadata(checksum_of(data), len(data)).encode()
    return bytes([RECORD_FRAME]) + with_version(metadata, version) + data


def decode_record(buffer: Buffer, offset: int = 0) -> JournalRecord | None:
    """Decode the record at an offset, and check its checksum before its data is read.

    Args:
        buffer: bytes of a segment, or a record.
        offset: where the frame is, bytes.

    Returns:
        The record; None where the records end: at frame 0 or at the end of the buffer.

    Raises:
        UnknownVersionError: the frame is neither 0 nor 1.
        InvalidChecksumError: the checksum does not match the data.
        CorruptJournalError: the record is not complete, or a message is not of its schema.
    """
    begin, end, checksum = _data_range(buffer, offset)
    if not end:
        return None
    data = memoryview(buffer)[begin:end]
    found = checksum_of(data)
    if found != checksum:
        raise InvalidChecksumError(
            f"record at offset {offset}: the checksum is {checksum}, but that of its data {found}",
            offset=offset,
        )
    try:
        block_length, version = _header(data, 0, RecordData)
        decoded = RecordData.decode_body(data, HEADER_LENGTH, block_length, version)
    except CodecError as error:
        raise CorruptJournalError(f"record at offset {offset}: {error}", offset=offset) from None
    blob_length = len(decoded.blob)
    if HEADER_LENGTH + block_length + VAR_DATA_LENGTH.size + blob_length != len(data):
        raise CorruptJournalError(
            f"record at offset {offset}: {len(data)} bytes of data do not hold a blob of "
            f"{blob_length} bytes exactly",
            offset=offset,
        )
    return JournalRecord(decoded.index, decoded.asqn, checksum, decoded.blob, version, end - offset)


def decode_partially(buffer: Buffer, offset: int = 0) -> PartialRecord | None:
    """Read type, term, index and asqn of a record, without its checksum and application data.

    Returns:
        None where the records end.

    Raises:
        UnknownVersionError: the frame is neither 0 nor 1.
        CorruptJournalError: the bytes are too few, or a message is not of its schema.
    """
    begin, end, _ = _data_range(buffer, offset)
    if not end:
        return None
    try:
        block_length, _ = _header(buffer, begin, RecordData)
        index, asqn = _INDEX_AND_ASQN.unpack_from(buffer, begin + HEADER_LENGTH)
        entry = begin + HEADER_LENGTH + block_length + VAR_DATA_LENGTH.size
        _header(buffer, entry, RaftLogEntry)
        term, kind = _TERM_AND_TYPE.unpack_from(buffer, entry + HEADER_LENGTH)
        return PartialRecord(EntryType(kind), term, index, asqn)
    except (CodecError, struct.error, ValueError) as error:
        raise CorruptJournalError(f"record at offset {offset}: {error}", offset=offset) from None


def check_index(found: int, expected: int) -> None:
    """Check that a record's index follows the previous one's (InvalidIndexError)."""
    if found != expected:
        raise InvalidIndexError(
            f"a record has index {found}: expected {expected}, the one after the previous record's",
            index=expected,
        )


def check_asqn(found: int, last: int, index: int = -1) -> int:
    """Check the order of application sequence numbers.

    Args:
        found: that of the record, -1 for none.
        last: the last one that was not -1; -1 when there was none.
        index: index of the record.

    Returns:
        The last one after this record.

    Raises:
        InvalidAsqnError: it is not above the last one.
    """
    if found == NO_ASQN:
        return last
    if found <= last:
        raise InvalidAsqnError(
            f"the record with index {index} has asqn {found}: expected -1 or more than {last}",
            index=index,
        )
    return found


def _data_range(buffer: Buffer, offset: int) -> tuple[int, int, int]:
    """The begin and the end of a record's data message, and its checksum; 0 at the end."""
    frame = buffer[offset] if offset < len(buffer) else END_FRAME
    if frame == END_FRAME:
        return 0, 0, 0
    if frame != RECORD_FRAME:
        raise UnknownVersionError(
            f"record at offset {offset}: the version is {frame}, expected {RECORD_FRAME}",
            offset=offset,
        )
    try:
        block_length, version = _header(buffer, offset + FRAME_LENGTH, RecordMetadata)
        begin = offset + FRAME_LENGTH + HEADER_LENGTH
        metadata = RecordMetadata.decode_body(buffer, begin, block_length, version)
        begin += block_length
    except CodecError as error:
        raise CorruptJournalError(f"record at offset {offset}: {error}", offset=offset) from None
    left = len(buffer) - begin
    if not _DATA_OVERHEAD <= metadata.length <= left:
        raise CorruptJournalError(
            f"record at offset {offset}: the length of its data is {metadata.length}, expected "
            f"{_DATA_OVERHEAD} to {left}, the bytes left",
            offset=offset,
        )
    return begin, begin + metadata.length, metadata.checksum


def _header(buffer: Buffer, offset: int, kind: type[Message]) -> tuple[int, int]:
    """Check the header of a message; return the length of its block and its schema version."""
    if len(buffer) - offset < HEADER_LENGTH:
        raise CodecError(f"{kind.__name__}: its header exceeds the end of the bytes")
    block_length, template_id, schema_id, version = HEADER.unpack_from(buffer, offset)
    if (template_id, schema_id) != (kind.TEMPLATE_ID, kind.SCHEMA_ID):
        raise CodecError(
            f"a message of template {template_id} and schema {schema_id}, expected "
            f"{kind.__name__}, {kind.TEMPLATE_ID} and {kind.SCHEMA_ID}"
        )
    if block_length < kind.BLOCK_LENGTH:
        raise CodecError(
            f"{kind.__name__}: block of {block_length} bytes is too short: expected at least "
            f"{kind.BLOCK_LENGTH}"
        )
    return block_length, version


def blob_of(record: Buffer) -> bytes:
    """Return the blob of a record that is known to be sound, without checks."""
    begin = FRAME_LENGTH + HEADER_LENGTH + HEADER.unpack_from(record, FRAME_LENGTH)[0]
    begin += HEADER_LENGTH + HEADER.unpack_from(record, begin)[0] + VAR_DATA_LENGTH.size
    return bytes(record[begin:])
