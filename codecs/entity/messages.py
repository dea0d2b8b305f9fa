"""Actions as messages: one SBE message (`codecs/schemas/entity.xml`) for each.

The fixed block and the entity's id come first, so that readers find out whether an action concerns
them without decoding the rest: `read_header`.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Final

from aerotape.codecs.entity.actions import (
    MAX_SEQ_NR,
    Action,
    ActionHeader,
    Append,
    Delete,
    Mark,
    Purge,
)
from aerotape.codecs.generated import entity as codecs
from aerotape.codecs.generated.entity import ActionKind, PayloadType
from aerotape.codecs.runtime import HEADER_LENGTH, Buffer
from aerotape.errors import CodecError

# Header (block length, template, schema, version), block, length of the entity's id.
_START: Final = struct.Struct("<HHHHqqqBB6xI")
_KINDS: Final = {int(kind): kind for kind in ActionKind}
_PREFIX: Final = (codecs.Action.BLOCK_LENGTH, codecs.Action.TEMPLATE_ID, codecs.SCHEMA_ID)


def encode(action: Action) -> bytes:
    """Return the message of an action.

    Raises:
        CodecError: a field is out of its range.
    """
    message = codecs.Action(
        timestamp_ms=action.timestamp_ms,
        entity_id=action.id.encode(),
        origin=action.origin.encode(),
        writer_version=action.version.encode(),
        metadata=b"" if action.metadata is None else _json(action.metadata),
    )
    if isinstance(action, Append):
        message.kind = ActionKind.APPEND
        message.from_seq_nr = action.from_seq_nr
        message.to_seq_nr = action.to_seq_nr
        message.payload_type = action.payload_type
        message.payload = action.payload
    elif isinstance(action, Delete):
        message.kind = ActionKind.DELETE
        message.to_seq_nr = action.to_seq_nr
    elif isinstance(action, Mark):
        message.kind = ActionKind.MARK
        message.mark_id = action.mark_id.encode()
    else:
        message.kind = ActionKind.PURGE
    _check_range(message)
    return message.encode()


def decode(buffer: Buffer) -> Action:
    """Decode a message; the payload of an append stays encoded.

    Raises:
        CodecError: it is not an action, or damaged.
    """
    message = codecs.decode(buffer)
    assert isinstance(message, codecs.Action)
    _check_range(message)
    common: dict[str, Any] = {
        "id": _text(message.entity_id, "id"),
        "timestamp_ms": message.timestamp_ms,
        "origin": _text(message.origin, "origin"),
        "version": _text(message.writer_version, "version"),
        "metadata": _value(message.metadata) if message.metadata else None,
    }
    if message.kind is ActionKind.APPEND:
        return Append(
            from_seq_nr=message.from_seq_nr,
            to_seq_nr=message.to_seq_nr,
            payload=message.payload,
            payload_type=message.payload_type,
            **common,
        )
    if message.kind is ActionKind.DELETE:
        return Delete(to_seq_nr=message.to_seq_nr, **common)
    if message.kind is ActionKind.MARK:
        return Mark(mark_id=_text(message.mark_id, "mark id"), **common)
    return Purge(**common)


def read_header(buffer: Buffer) -> ActionHeader:
    """Read kind, id, range and time of an action; nothing else is decoded.

    Raises:
        CodecError: it is not an action, or damaged.
    """
    if len(buffer) < _START.size:
        raise CodecError(f"{len(buffer)} bytes are too short for an action")
    block, template, schema, _, timestamp_ms, from_seq_nr, to_seq_nr, code, _, length = (
        _START.unpack_from(buffer)
    )
    kind = _KINDS.get(code)
    if (block, template, schema) != _PREFIX or kind is None:
        return _header(decode(buffer))  # of a later version with a longer block; or an error
    end = _START.size + length
    if end > len(buffer):
        raise CodecError(f"Action.entity_id: {length} bytes exceed the end at {len(buffer)}")
    return ActionHeader(
        kind, bytes(buffer[_START.size : end]), from_seq_nr, to_seq_nr, timestamp_ms
    )


def _header(action: Action) -> ActionHeader:
    id = action.id.encode()
    match action:
        case Append(from_seq_nr=first, to_seq_nr=last):
            return ActionHeader(ActionKind.APPEND, id, first, last, action.timestamp_ms)
        case Delete(to_seq_nr=last):
            return ActionHeader(ActionKind.DELETE, id, 0, last, action.timestamp_ms)
        case Mark():
            return ActionHeader(ActionKind.MARK, id, 0, 0, action.timestamp_ms)
    return ActionHeader(ActionKind.PURGE, id, 0, 0, action.timestamp_ms)


def _check_range(message: codecs.Action) -> None:
    first, last = message.from_seq_nr, message.to_seq_nr
    if message.kind is ActionKind.APPEND and not 1 <= first <= last <= MAX_SEQ_NR:
        raise CodecError(f"append of events {first} to {last}: expected a range from 1 up")
    if message.kind is ActionKind.APPEND and message.payload_type is PayloadType.NONE:
        raise CodecError("append without a payload type: expected BINARY or JSON")
    if message.kind is ActionKind.DELETE and not 1 <= last <= MAX_SEQ_NR:
        raise CodecError(f"delete up to event {last}: expected a sequence number from 1 up")


def _json(value: Any) -> bytes:
    try:
        return json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()
    except (TypeError, ValueError) as error:
        raise CodecError(f"metadata {value!r} is not a JSON value: {error}") from None


def _value(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise CodecError(f"metadata of an action is not JSON: {error}") from None


def _text(value: bytes, name: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise CodecError(f"{name} of an action is not UTF-8: {error}") from None


assert _START.size == HEADER_LENGTH + codecs.Action.BLOCK_LENGTH + 4
