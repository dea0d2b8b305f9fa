"""The payload of an append: its events in the JSON or the binary form of kafka-journal.

The JSON form is written when no event has a binary payload, and no payload in JSON has whitespace
at its ends. Payloads in JSON are checked and never rewritten, neither here nor by stores: what was
appended is read, byte for byte. Layout of the binary form, integers big endian: version (uint8, 1),
number of events (int32); for each event its size (int32), sequence number (int64), size of its tags
(int32), for each tag its length (int32) and UTF-8; the payload's type (uint8: 0 none, 1 binary,
2 JSON, 3 text), its length (int32) and bytes; after the last event the metadata in JSON, up to the
end. Version 0 is without metadata.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, Final

from aerotape import _native
from aerotape.codecs.entity.actions import (
    MAX_SEQ_NR,
    Append,
    Event,
    EventPayloadType,
    Events,
    PayloadType,
)
from aerotape.codecs.entity.durations import format_expire_after, parse_expire_after
from aerotape.errors import CodecError

MAX_DEPTH: Final = 500
"""Levels of arrays and objects in a payload; those who read JSON have limits, from 1000 on."""

_VERSION: Final = 1
_HEAD: Final = struct.Struct(">Bi")
_EVENT: Final = struct.Struct(">iqi")
_LENGTH: Final = struct.Struct(">i")
_KIND: Final = struct.Struct(">Bi")
_PAYLOAD_TYPES: Final[tuple[EventPayloadType, ...]] = ("none", "binary", "json", "text")
_CODES: Final = {name: code for code, name in enumerate(_PAYLOAD_TYPES)}
# Errors of struct, json and str about bytes that are not a payload.
_FAULTS: Final = (struct.error, ValueError, TypeError, KeyError, AttributeError, RecursionError)
_dumps: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_SPACE: Final = b" \t\n\r"
_SHOWN: Final = 100


def encode_events(
    events: Sequence[Event], expire_after_ns: int | None = None, metadata: Any = None
) -> tuple[bytes, PayloadType]:
    """Return the payload of an append and its form.

    Args:
        events: at least one, with strictly rising sequence numbers.
        expire_after_ns: nanoseconds; None: never.
        metadata: any JSON value; None: none.

    Raises:
        CodecError: there is no event, they are out of order, or one is invalid.
    """
    check_events(events)
    about = metadata_of(expire_after_ns, metadata)
    try:
        if all([_fits_json(event) for event in events]):
            return _json(events, about), PayloadType.JSON
        return _binary(events, about), PayloadType.BINARY
    except _FAULTS as error:
        raise CodecError(f"events cannot be encoded: {error}") from error


def metadata_of(expire_after_ns: int | None, data: Any) -> dict[str, Any]:
    """Return the metadata of the events of an append as payloads and stores have it."""
    about = {} if expire_after_ns is None else {"expireAfter": format_expire_after(expire_after_ns)}
    return about if data is None else {**about, "data": data}


def decode_events(payload: bytes, payload_type: PayloadType) -> Events:
    """Decode the payload of an append.

    Raises:
        CodecError: the payload is damaged or of an unknown version.
    """
    try:
        if payload_type is PayloadType.BINARY:
            events = _from_binary(payload)
        elif payload_type is PayloadType.JSON:
            events = _from_json(payload)
        else:
            raise CodecError("an append without a payload type")
        check_events(events.events)
    except _FAULTS as error:
        raise CodecError(
            f"payload of {len(payload)} bytes, {payload_type.name}, is damaged: {error!r}"
        ) from error
    return events


def events_of(append: Append) -> Events:
    """Decode the events of an append.

    Raises:
        CodecError: the payload is damaged, or its events are not those of the append's range.
    """
    events = decode_events(append.payload, append.payload_type)
    first, last = events.events[0].seq_nr, events.events[-1].seq_nr
    if (first, last) != (append.from_seq_nr, append.to_seq_nr):
        raise CodecError(
            f"append of events {append.from_seq_nr} to {append.to_seq_nr} of {append.id!r} has a "
            f"payload with events {first} to {last}"
        )
    return events


def check_events(events: Sequence[Event]) -> None:
    """Check that there is an event and that sequence numbers rise strictly from 1 or more.

    Raises:
        CodecError: otherwise, or a tag is not a text.
    """
    if not events:
        raise CodecError("an append without events: expected at least one")
    last = 0
    for event in events:
        if type(event.seq_nr) is not int or not last < event.seq_nr <= MAX_SEQ_NR:
            raise CodecError(
                f"event {event.seq_nr!r} after {last}: expected sequence numbers that rise from 1 "
                f"to at most {MAX_SEQ_NR}"
            )
        last = event.seq_nr
        if event.tags and not all(isinstance(tag, str) for tag in event.tags):
            raise CodecError(f"event {last} has the tags {event.tags!r}: expected texts")


def _fits_json(event: Event) -> bool:
    """Check the payload of an event; return whether the JSON form can hold it as it is."""
    payload, kind = event.payload, event.payload_type
    if payload is None or kind == "none":
        if payload is not None or kind != "none":
            raise CodecError(
                f"event {event.seq_nr} of type {kind} with payload {payload!r}: only type none is "
                "without a payload"
            )
        return True
    if kind == "binary":
        return False
    try:
        if kind == "json":
            _native.check_json(payload, MAX_DEPTH)
            return payload[0] not in _SPACE and payload[-1] not in _SPACE
        payload.decode()
    except ValueError as error:
        raise CodecError(
            f"event {event.seq_nr} of type {kind} with payload {payload[:_SHOWN]!r}: {error}"
        ) from None
    return True


def _binary(events: Sequence[Event], about: dict[str, Any]) -> bytes:
    parts = [_HEAD.pack(_VERSION, len(events))]
    for event in events:
        texts = [tag.encode() for tag in event.tags]
        tags = b"".join(_LENGTH.pack(len(text)) + text for text in texts)
        payload = event.payload or b""
        size = 17 + len(tags) + len(payload)
        parts += (
            _EVENT.pack(size, event.seq_nr, len(tags)),
            tags,
            _KIND.pack(_CODES[event.payload_type], len(payload)),
            payload,
        )
    parts.append(_dumps(about).encode() if about else b"{}")
    return b"".join(parts)


def _from_binary(payload: bytes) -> Events:
    version, count = _HEAD.unpack_from(payload)
    if version > _VERSION:
        raise CodecError(
            f"payload of version {version}: expected at most {_VERSION}; update aerotape"
        )
    offset = _HEAD.size
    events = []
    for _ in range(count):
        size, seq_nr, tags_size = _EVENT.unpack_from(payload, offset)
        offset += _LENGTH.size
        end = offset + size
        if not offset < end <= len(payload):
            raise CodecError(f"event of {size} bytes exceeds the end of the payload")
        offset += 12
        tags, offset = _tags(payload, offset, tags_size)
        code, length = _KIND.unpack_from(payload, offset)
        offset += _KIND.size
        if offset + length != end or code >= len(_PAYLOAD_TYPES):
            raise CodecError(
                f"event {seq_nr}: payload type {code} of {length} bytes does not fit its size"
            )
        content, kind = payload[offset:end] if code else None, _PAYLOAD_TYPES[code]
        if kind == "json":
            _native.check_json(payload[offset:end])
        elif kind == "text":
            payload[offset:end].decode()
        events.append(Event(seq_nr, content, kind, tags))
        offset = end
    about = json.loads(payload[offset:]) if version else {}
    return _events(tuple(events), about)


def _tags(payload: bytes, offset: int, size: int) -> tuple[tuple[str, ...], int]:
    end = offset + size
    tags = []
    while offset < end:
        (length,) = _LENGTH.unpack_from(payload, offset)
        offset += _LENGTH.size
        if not 0 <= length <= end - offset:
            raise CodecError(f"tag of {length} bytes exceeds the end of the tags")
        tags.append(payload[offset : offset + length].decode())
        offset += length
    return tuple(tags), end


def _json(events: Sequence[Event], about: dict[str, Any]) -> bytes:
    return b'{"events":[%b],"metadata":%b}' % (
        b",".join([_item(event) for event in events]),
        _dumps(about).encode() if about else b"{}",
    )


def _item(event: Event) -> bytes:
    kind, payload = event.payload_type, event.payload
    tags = _dumps(event.tags).encode() if event.tags else b"[]"
    if payload is None:
        return b'{"seqNr":%d,"tags":%b}' % (event.seq_nr, tags)
    if kind == "text":
        payload = _dumps(payload.decode()).encode()
    return b'{"seqNr":%d,"tags":%b,"payloadType":"%b","payload":%b}' % (
        event.seq_nr,
        tags,
        _PAYLOAD_TYPES[_CODES[kind]].encode(),
        payload,
    )


def _from_json(payload: bytes) -> Events:
    found, metadata = _native.json_events(payload)
    events = (Event(seq_nr, content, kind, tuple(tags)) for seq_nr, content, kind, tags in found)
    return _events(tuple(events), json.loads(metadata or "{}"))


def _events(events: tuple[Event, ...], about: dict[str, Any]) -> Events:
    expire_after = about.get("expireAfter")
    return Events(
        events,
        None if expire_after is None else parse_expire_after(expire_after),
        about.get("data"),
    )
