"""Rows of the tables `metajournal` and `journal` from changes, and events from rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from typing import Any, Final, NamedTuple, cast

from aerotape.archive.entity.records import EventRecord, Head
from aerotape.archive.entity.transitions import Change
from aerotape.codecs.entity.actions import Event, EventPayloadType, Events
from aerotape.codecs.entity.durations import parse_expire_after
from aerotape.codecs.entity.payload import metadata_of

_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

HEAD_COLUMNS: Final = (
    "topic", "id", "segment", "partition", "offset", "segment_size", "seq_nr", "delete_to",
    "created", "updated", "expire_after", "expire_on", "record_id", "origin",
)  # fmt: skip
"""Columns of `metajournal`; times are milliseconds, `expire_after` nanoseconds."""

READ_HEAD_COLUMNS: Final = (
    "id", "partition", "offset", "seq_nr", "delete_to", "segment_size", "expire_after",
    "expire_on", "record_id", "created", "updated", "origin",
)  # fmt: skip
"""The id, and the columns of `metajournal` in the order of the fields of `Head`."""

_NO_EVENTS: Final = Events(())


class EventRow(NamedTuple):
    """A row of `journal`; `tags` is a JSON array, null if there are none."""

    topic: str
    id: str
    seq_nr: int
    segment: int
    partition: int
    offset: int
    timestamp: int
    origin: str | None
    version: str | None
    meta_record_id: str
    tags: str | None
    payload_type: str | None
    payload_txt: str | None
    payload_bin: bytes | None
    metadata: str | None


EVENT_COLUMNS: Final = EventRow._fields
"""Columns of `journal`."""


def event_rows(topic: str, change: Change) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the events that a change inserts, in the order of EVENT_COLUMNS.

    Raises:
        CodecError: an append is damaged.
    """
    assert change.head is not None
    segment_size = change.head.segment_size
    for each in change.insertions:
        action = each.action
        header, single = action.header, action.single
        place = action.partition, action.offset, header.timestamp_ms
        key = topic, header.id.decode()
        if single is None:
            append = action.append
            common = (*place, append.origin or None, append.version or None, each.record_id)
            yield from append_rows(
                key, common, append.metadata, action.events, each.after, segment_size
            )
            continue
        origin, version, metadata, tags, payload = single
        seq_nr = header.to_seq_nr
        yield (
            *key,
            seq_nr,
            (seq_nr - 1) // segment_size,
            *place,
            origin,
            version,
            each.record_id,
            tags,
            "json",
            payload,
            None,
            _metadata(json.loads(metadata), _NO_EVENTS) if metadata else None,
        )


def append_rows(
    key: tuple[str, str],
    common: tuple[int, int, int, str | None, str | None, str],
    metadata: Any,
    events: Events,
    after: int,
    segment_size: int,
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the events of an append that follow event `after`.

    Args:
        key: topic and id.
        common: partition, offset, timestamp, origin, version and record id.
        metadata: of the append, any JSON value; None: none.
        events: of the append.
        after: earlier events are left out.
        segment_size: of the journal.
    """
    about = _metadata(metadata, events)
    for event in events.events:
        if event.seq_nr <= after:
            continue
        kind, payload = event.payload_type, event.payload
        # PostgreSQL's type text has no NUL; in JSON it is escaped.
        is_text = kind == "json" or (kind == "text" and b"\0" not in (payload or b""))
        yield (
            *key,
            event.seq_nr,
            (event.seq_nr - 1) // segment_size,
            *common,
            _json(event.tags) if event.tags else None,
            None if kind == "none" else kind,
            (payload or b"").decode() if is_text else None,
            None if is_text or kind == "none" else payload or b"",
            about,
        )


def head_row(topic: str, id: str, segment: int, head: Head) -> tuple[Any, ...]:
    """Return the row of a head, in the order of HEAD_COLUMNS."""
    on = head.expire_on
    return (
        topic,
        id,
        segment,
        head.partition,
        head.offset,
        head.segment_size,
        head.seq_nr,
        head.delete_to,
        head.created_ms,
        head.updated_ms,
        head.expire_after_ns,
        None if on is None else on.isoformat(),
        head.record_id,
        head.origin or None,
    )


def head_of(row: tuple[Any, ...]) -> Head:
    """Return the head of a row, in the order of READ_HEAD_COLUMNS."""
    head = Head._make(row[1:])
    if row[7] is not None:
        head = head._replace(expire_on=date.fromisoformat(row[7]))
    return head


def event_of(row: EventRow) -> EventRecord:
    """Return the event of a row."""
    payload = row.payload_bin if row.payload_txt is None else row.payload_txt.encode()
    kind = cast("EventPayloadType", row.payload_type or "none")
    about = json.loads(row.metadata) if row.metadata else {}
    events = about.get("payload") or {}
    expire_after = events.get("expireAfter")
    return EventRecord(
        event=Event(
            row.seq_nr,
            None if kind == "none" else payload,
            kind,
            tuple(json.loads(row.tags)) if row.tags else (),
        ),
        partition=row.partition,
        offset=row.offset,
        timestamp_ms=row.timestamp,
        origin=row.origin or "",
        version=row.version or "",
        metadata=about.get("header"),
        payload_metadata=events.get("data"),
        expire_after_ns=None if expire_after is None else parse_expire_after(expire_after),
    )


def _metadata(metadata: Any, events: Events) -> str | None:
    """Return the metadata of an append and of its events, as kafka-journal nests them."""
    of_events = metadata_of(events.expire_after_ns, events.metadata)
    if metadata is None and not of_events:
        return None
    return _json({"header": metadata, "payload": of_events})
