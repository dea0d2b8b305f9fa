"""Actions as messages: one SBE message (`codecs/schemas/entity.xml`) for each.

The fixed block and the entity's id come first, so that readers find out whether an action concerns
them without decoding the rest: `read_header`.
"""

from __future__ import annotations

import json
import struct
from functools import lru_cache
from typing import Any, Final, NamedTuple

from aerotape import _native
from aerotape.codecs.entity.actions import (
    MAX_SEQ_NR,
    Action,
    ActionHeader,
    Append,
    Delete,
    Mark,
    Purge,
    Snapshot,
)
from aerotape.codecs.generated import entity as codecs
from aerotape.codecs.generated.entity import ActionKind, PayloadType
from aerotape.codecs.runtime import HEADER_LENGTH, VAR_DATA_LENGTH, Buffer, data_field
from aerotape.errors import CodecError

# Header (block length, template, schema, version), block, length of the entity's id.
_START: Final = struct.Struct("<HHHHqqqBB6xI")
_KINDS: Final = {int(kind): kind for kind in ActionKind}
_PREFIX: Final = (codecs.Action.BLOCK_LENGTH, codecs.Action.TEMPLATE_ID, codecs.SCHEMA_ID)
_HEADER: Final = (*_PREFIX, codecs.SCHEMA_VERSION)
_WITH_EVENTS: Final = {ActionKind.APPEND, ActionKind.CONDITIONAL_APPEND, ActionKind.SNAPSHOT}
_EMPTY: Final = VAR_DATA_LENGTH.pack(0)
_PREFIX_BYTES: Final = struct.pack("<HHH", *_PREFIX)
_KIND_OFFSET: Final = struct.calcsize("<HHHHqqq")
_PAYLOAD_TYPE_OFFSET: Final = _KIND_OFFSET + 1
_JSON_FORM: Final = int(PayloadType.JSON)
_ID_FIELD: Final = _START.size - VAR_DATA_LENGTH.size


def encode(action: Action) -> bytes:
    """Return the message of an action.

    Raises:
        CodecError: a field is out of its range.
    """
    about = (action.id, action.timestamp_ms, action.origin, action.version, action.metadata)
    match action:
        case Append(from_seq_nr=first, to_seq_nr=last, payload_type=form, payload=payload):
            kind = ActionKind.APPEND
            if isinstance(action, Snapshot):
                kind = ActionKind.SNAPSHOT
            elif action.is_conditional:
                kind = ActionKind.CONDITIONAL_APPEND
            return encode_fields(kind, *about, first, last, form, payload)
        case Delete(to_seq_nr=last):
            return encode_fields(ActionKind.DELETE, *about, to_seq_nr=last)
        case Mark(mark_id=mark_id):
            return encode_fields(ActionKind.MARK, *about, mark_id=mark_id)
        case Purge(last_change=int(position)):
            return encode_fields(ActionKind.CONDITIONAL_PURGE, *about, to_seq_nr=position)
    return encode_fields(ActionKind.PURGE, *about)


def encode_fields(
    kind: ActionKind,
    id: str,
    timestamp_ms: int = 0,
    origin: str = "",
    version: str = "",
    metadata: Any = None,
    from_seq_nr: int = 0,
    to_seq_nr: int = 0,
    payload_type: PayloadType = PayloadType.NONE,
    payload: bytes = b"",
    mark_id: str = "",
) -> bytes:
    """Return the message of an action given by its fields, for which `encode` creates no object.

    Raises:
        CodecError: a field is out of its range.
    """
    _check_range(kind, from_seq_nr, to_seq_nr, payload_type)
    try:
        key = _encoded(id)
        start = _START.pack(
            *_HEADER,
            timestamp_ms,
            from_seq_nr,
            to_seq_nr,
            kind,
            payload_type,
            len(key),
        )
        mark = data_field(mark_id.encode()) if mark_id else _EMPTY
        about = _EMPTY if metadata is None else data_field(_json(metadata))
        writer = _writer_fields(origin, version)
        length = VAR_DATA_LENGTH.pack(len(payload))
        return b"".join((start, key, mark, writer, about, length, payload))
    except (UnicodeError, struct.error) as error:
        raise CodecError(f"{kind.name.lower()} of {id!r} cannot be encoded: {error}") from None


@lru_cache(maxsize=64)
def _writer_fields(origin: str, version: str) -> bytes:
    return data_field(_encoded(origin)) + data_field(_encoded(version))


def _encoded(text: str) -> bytes:
    if "\0" in text:
        raise UnicodeError("it has a NUL character, which stores cannot hold")
    return text.encode()


def decode(buffer: Buffer) -> Action:
    """Decode a message; the payload of an append stays encoded.

    Raises:
        CodecError: it is not an action, or damaged.
    """
    message = codecs.decode(buffer)
    assert isinstance(message, codecs.Action)
    _check_range(message.kind, message.from_seq_nr, message.to_seq_nr, message.payload_type)
    common: dict[str, Any] = {
        "id": _text(message.entity_id, "id"),
        "timestamp_ms": message.timestamp_ms,
        "origin": _text(message.origin, "origin"),
        "version": _text(message.writer_version, "version"),
        "metadata": _value(message.metadata) if message.metadata else None,
    }
    if message.kind in _WITH_EVENTS:
        common |= {
            "from_seq_nr": message.from_seq_nr,
            "to_seq_nr": message.to_seq_nr,
            "payload": message.payload,
            "payload_type": message.payload_type,
        }
        if message.kind is ActionKind.SNAPSHOT:
            return Snapshot(**common)
        return Append(is_conditional=message.kind is ActionKind.CONDITIONAL_APPEND, **common)
    if message.kind is ActionKind.DELETE:
        return Delete(to_seq_nr=message.to_seq_nr, **common)
    if message.kind is ActionKind.MARK:
        return Mark(mark_id=_text(message.mark_id, "mark id"), **common)
    if message.kind is ActionKind.CONDITIONAL_PURGE:
        return Purge(last_change=message.to_seq_nr, **common)
    return Purge(**common)


class SingleAppend(NamedTuple):
    """An append of one event in JSON without metadata of it, its texts not decoded further.

    Attributes:
        origin: None: unknown.
        version: None: unknown.
        metadata: of the append, JSON; empty: none.
        tags: a JSON array; None: none.
        payload: of the event, JSON.
    """

    origin: str | None
    version: str | None
    metadata: bytes
    tags: str | None
    payload: str


def single_append(message: bytes, header: ActionHeader) -> SingleAppend | None:
    """Read the most frequent append, faster than `decode` and `decode_events`.

    Returns:
        None for another action, or another form than aerotape writes; `decode` can read them.
    """
    seq_nr = header.to_seq_nr
    if (
        header.from_seq_nr != seq_nr
        or not seq_nr
        or message[_PAYLOAD_TYPE_OFFSET] != _JSON_FORM
        or message[:6] != _PREFIX_BYTES
    ):
        return None
    found = _native.single_append(message, _START.size + len(header.id), seq_nr)
    return None if found is None else SingleAppend._make(found)


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
        raise CodecError("not an action, or of a later version: update aerotape")
    end = _START.size + length
    if end > len(buffer):
        raise CodecError(f"Action.entity_id: {length} bytes exceed the end at {len(buffer)}")
    return ActionHeader(
        kind, bytes(buffer[_START.size : end]), from_seq_nr, to_seq_nr, timestamp_ms
    )


def is_mark(message: bytes) -> bool:
    """Whether a message, known to be an action, is a mark."""
    return message[_KIND_OFFSET] == ActionKind.MARK


class Selector:
    """Finds the actions of one entity, without decoding those of others.

    Attributes:
        id: the entity's id.
        key: its id in UTF-8.
    """

    def __init__(self, id: str) -> None:
        """Select the actions of the entity `id`."""
        self.id = id
        self.key = id.encode()
        self._end = _START.size + len(self.key)
        self._field = VAR_DATA_LENGTH.pack(len(self.key)) + self.key

    def header(self, message: bytes) -> ActionHeader | None:
        """Return the header of an action of the entity, None for another one.

        Raises:
            CodecError: the message is not an action, or damaged.
        """
        if message[:6] == _PREFIX_BYTES and message[_ID_FIELD : self._end] != self._field:
            return None
        return read_header(message)


def _check_range(kind: ActionKind, first: int, last: int, payload_type: PayloadType) -> None:
    if kind in _WITH_EVENTS:
        name = kind.name.lower().replace("_", " ")
        if not 1 <= first <= last <= MAX_SEQ_NR:
            raise CodecError(f"{name} of events {first} to {last}: expected a range from 1 up")
        if kind is ActionKind.SNAPSHOT and first != last:
            raise CodecError(f"snapshot of events {first} to {last}: expected one")
        if payload_type is PayloadType.NONE:
            raise CodecError(f"{name} without a payload type: expected BINARY or JSON")
    elif kind is ActionKind.DELETE and not 1 <= last <= MAX_SEQ_NR:
        raise CodecError(f"delete up to event {last}: expected a sequence number from 1 up")
    elif kind is ActionKind.CONDITIONAL_PURGE and not 0 <= last <= MAX_SEQ_NR:
        raise CodecError(f"purge if the last change is at {last}: expected a position from 0 up")


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
    except (ValueError, RecursionError) as error:
        raise CodecError(f"metadata of an action is not JSON: {error}") from None


def _text(value: bytes, name: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise CodecError(f"{name} of an action is not UTF-8: {error}") from None


assert _START.size == HEADER_LENGTH + codecs.Action.BLOCK_LENGTH + 4
