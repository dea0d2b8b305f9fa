"""The engine's records in the data of application entries.

    offset  0     length of the entry, int32; entries begin at multiples of 8
           12     version, int16
           14     flags, uint8: bit 0 the record has been processed
           16     position, int64
           24     source position, int64: of the record that caused this one, -1 for none
           32     key, int64: -1 for none
           40     timestamp, int64, milliseconds since the epoch
           48     length of the metadata, int32
           52     the metadata: a RecordMetadata message, then the value, in MessagePack

The metadata begins alike in all releases. What follows the intent is the rejection type and the
broker's version in Zeebe 1.0 to 8.2, whose block has 30 bytes; since 8.3 it is the broker's
version, the version of the record and the rejection type.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

from aerotape.codecs.raft.intents import INTENTS, RECORD_TYPES, REJECTION_TYPES, VALUE_TYPES
from aerotape.codecs.runtime import HEADER, HEADER_LENGTH, read_data
from aerotape.errors import CodecError

_ENTRY: Final = struct.Struct("<i8xhBxqqqqi")
_ALIGNMENT: Final = 8
_PROCESSED: Final = 1
_NONE: Final = -1
_SCHEMA_ID: Final = 0
_TEMPLATE_ID: Final = 200
_METADATA: Final = struct.Struct("<BiQHBB")
_NO_STREAM: Final = -(1 << 31)
_NO_REQUEST: Final = (1 << 64) - 1
_NO_REJECTION: Final = 255
# What follows the intent: Zeebe 1.0 to 8.2, and later.
_OLD: Final = struct.Struct("<B3i")
_NEW: Final = struct.Struct("<3iHB")
_MAX_DEPTH: Final = 100


@dataclass(frozen=True, slots=True)
class EngineRecord:
    """A record of the engine. Names of types that are not known are numbers.

    Attributes:
        position: in the log of the partition.
        source_position: of the record that caused this one; None if there is none.
        key: of the entity; None if there is none.
        timestamp: milliseconds since 1970.
        processed: the broker does not process it again, because that was done when it was written.
        record_type: EVENT, COMMAND or COMMAND_REJECTION.
        value_type: for example JOB.
        intent: for example CREATED, as Zeebe 8.3 names it.
        rejection_type: of rejections.
        rejection_reason: of rejections.
        broker_version: of the broker that wrote it.
        request_id: of the request that a client waits for.
        request_stream_id: of that client.
        value: MessagePack.
    """

    position: int
    source_position: int | None
    key: int | None
    timestamp: int
    processed: bool
    record_type: str
    value_type: str
    intent: str
    rejection_type: str | None
    rejection_reason: str | None
    broker_version: str
    request_id: int | None
    request_stream_id: int | None
    value: bytes


def decode_records(data: bytes) -> list[EngineRecord]:
    """Decode the data of an application entry (CodecError: it is not records of the engine)."""
    records = []
    offset = 0
    while offset < len(data):
        record, length = _decode(data, offset)
        records.append(record)
        offset += -(-length // _ALIGNMENT) * _ALIGNMENT
    return records


def _decode(data: bytes, offset: int) -> tuple[EngineRecord, int]:
    left = len(data) - offset
    if left < _ENTRY.size:
        raise CodecError(f"engine record at offset {offset}: {left} bytes, expected {_ENTRY.size}")
    length, _, flags, position, source, key, timestamp, metadata_length = _ENTRY.unpack_from(
        data, offset
    )
    value = offset + _ENTRY.size + metadata_length
    if not _ENTRY.size <= length <= left or not HEADER_LENGTH <= metadata_length <= length:
        raise CodecError(
            f"engine record at offset {offset}: {length} bytes, of which {metadata_length} are "
            f"metadata, in {left} bytes"
        )
    if value > offset + length:
        raise CodecError(f"engine record at offset {offset}: its metadata exceeds its end")
    metadata = data[offset + _ENTRY.size : value]
    return (
        EngineRecord(
            position,
            None if source == _NONE else source,
            None if key == _NONE else key,
            timestamp,
            bool(flags & _PROCESSED),
            **_metadata(metadata),
            value=data[value : offset + length],
        ),
        length,
    )


def _metadata(metadata: bytes) -> dict[str, Any]:
    block_length, template_id, schema_id, _ = HEADER.unpack_from(metadata)
    end = HEADER_LENGTH + block_length
    if (schema_id, template_id) != (_SCHEMA_ID, _TEMPLATE_ID):
        raise CodecError(
            f"engine record: metadata of schema {schema_id} and template {template_id}, expected "
            f"{_SCHEMA_ID} and {_TEMPLATE_ID}"
        )
    rest = HEADER_LENGTH + _METADATA.size
    if not rest + _OLD.size <= end <= len(metadata):
        raise CodecError(f"engine record: {block_length} bytes are not a block of metadata")
    record_type, stream_id, request_id, _, value_type, intent = _METADATA.unpack_from(
        metadata, HEADER_LENGTH
    )
    if rest + _NEW.size <= end:
        *version, _, rejection = _NEW.unpack_from(metadata, rest)
    else:
        rejection, *version = _OLD.unpack_from(metadata, rest)
    reason, _ = read_data(metadata, end, "rejection reason")
    value_name = VALUE_TYPES.get(value_type, str(value_type))
    intents = INTENTS.get(value_name, ())
    return {
        "record_type": RECORD_TYPES.get(record_type, str(record_type)),
        "value_type": value_name,
        "intent": intents[intent] if intent < len(intents) else str(intent),
        "rejection_type": None
        if rejection == _NO_REJECTION
        else REJECTION_TYPES.get(rejection, str(rejection)),
        "rejection_reason": reason.decode(errors="replace") or None,
        "broker_version": ".".join(map(str, version)),
        "request_id": None if request_id == _NO_REQUEST else request_id,
        "request_stream_id": None if stream_id == _NO_STREAM else stream_id,
    }


def decode_value(value: bytes) -> Any:
    """Decode a record's value from MessagePack to types of JSON, variables included.

    Binary data that is a map in MessagePack, as variables are, is decoded too; other binary data
    becomes hexadecimal text. So does the whole value if it is not MessagePack, or if the package
    msgpack is not installed.
    """
    try:
        import msgpack
    except ImportError:
        return value.hex()

    def plain(item: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ValueError("nested too deeply")
        if isinstance(item, dict):
            return {str(key): plain(each, depth + 1) for key, each in item.items()}
        if isinstance(item, list):
            return [plain(each, depth + 1) for each in item]
        if isinstance(item, bytes):
            try:
                nested = msgpack.unpackb(item, strict_map_key=False)
            except (ValueError, TypeError):
                return item.hex()
            return plain(nested, depth + 1) if isinstance(nested, dict) else item.hex()
        if item is not None and not isinstance(item, (bool, int, float, str)):
            raise ValueError(f"a value of type {type(item).__name__}")
        return item

    try:
        return plain(msgpack.unpackb(value, strict_map_key=False), 0)
    except (ValueError, TypeError):
        return value.hex()
