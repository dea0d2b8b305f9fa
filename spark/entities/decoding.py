"""Decoding of payloads in Python tasks, for the forms that Spark SQL cannot parse."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from aerotape.archive.entity.stores.rows import payload_metadata
from aerotape.codecs.entity.actions import Event, PayloadType
from aerotape.codecs.entity.payload import decode_events

if TYPE_CHECKING:
    from pyspark.sql import Column


def as_json(payload: Column, payload_type: Column) -> Column:
    """Return the events of appends as JSON that Spark SQL can parse; null for null.

    It is the JSON form of payloads, but each event has its type, and its payload as a text:
    JSON and texts as they are, bytes in base64.
    """
    return fn.udf(_as_json, "string", useArrow=False)(payload, payload_type)


def expiry(payload: Column) -> Column:
    """Return the nanoseconds of expiry in payloads in the binary form; null: none."""
    return fn.udf(_expiry, "bigint", useArrow=False)(payload)


def _as_json(payload: bytes | None, payload_type: int) -> str | None:
    if payload is None:
        return None
    decoded = decode_events(bytes(payload), PayloadType(payload_type))
    events = [
        {
            "seqNr": event.seq_nr,
            "tags": event.tags,
            "payloadType": event.payload_type,
            "payload": _content(event),
        }
        for event in decoded.events
    ]
    tree = {"events": events, "metadata": payload_metadata(decoded)}
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"))


def _content(event: Event) -> str | None:
    if event.payload is None:
        return None
    is_binary = event.payload_type == "binary"
    return (base64.b64encode(event.payload) if is_binary else event.payload).decode()


def _expiry(payload: bytes | None) -> int | None:
    if payload is None:
        return None
    return decode_events(bytes(payload), PayloadType.BINARY).expire_after_ns
