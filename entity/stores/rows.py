"""Rows of the tables `metajournal`, `journal` and `snapshot`, and records from rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, NamedTuple, cast

from aerotape.codecs.entity.actions import Event, EventPayloadType, Events
from aerotape.codecs.entity.durations import parse_expire_after
from aerotape.codecs.entity.payload import metadata_of
from aerotape.entity.records import EventRecord, Head, SnapshotRecord
from aerotape.entity.transitions import Change, LoggedAction

_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

HEAD_COLUMNS: Final = (
    "topic", "id", "segment", "partition", "offset", "segment_size", "seq_nr", "delete_to",
    "created", "updated", "expire_after", "expire_on", "expires", "record_id", "origin",
)  # fmt: skip
"""Columns of `metajournal`; times are milliseconds, `expire_after` nanoseconds.

`expire_on` is the day (UTC) of the time `expires`, and has an index.
"""

READ_HEAD_COLUMNS: Final = (
    "id", "partition", "offset", "seq_nr", "delete_to", "segment_size", "expire_after",
    "expires", "record_id", "created", "updated", "origin", "expire_on",
)  # fmt: skip
"""The id, the columns of `metajournal` in the order of the fields of `Head`, and `expire_on`."""

_DAY_MS: Final = 86_400_000
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()
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

SNAPSHOT_COLUMNS: Final = tuple(each for each in EVENT_COLUMNS if each not in ("segment", "tags"))
"""Columns of `snapshot`."""


@dataclass(slots=True)
class Rows:
    """Rows to store together.

    Attributes:
        heads: ids and heads.
        events: rows of `journal`, EVENT_COLUMNS.
        snapshots: rows of `snapshot`, SNAPSHOT_COLUMNS, at most one with the same key.
    """

    heads: list[tuple[str, Head]] = field(default_factory=list)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    snapshots: list[tuple[Any, ...]] = field(default_factory=list)


def event_rows(topic: str, change: Change) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the events that a change inserts, in the order of EVENT_COLUMNS.

    Raises:
        CodecError: an append is damaged.
    """
    assert change.head is not None
    segment_size = change.head.segment_size
    for each in change.insertions:
        yield from _action_rows(topic, each.action, each.record_id, each.after, segment_size)


def snapshot_rows(topic: str, change: Change) -> list[tuple[Any, ...]]:
    """Return the rows of the snapshots of a change, in the order of SNAPSHOT_COLUMNS.

    Of several with the same sequence number, the last one counts.

    Raises:
        CodecError: a record is damaged.
    """
    head = change.head
    if head is None:
        return []
    rows = (
        snapshot_row(row)
        for action in change.snapshots
        for row in _action_rows(topic, action, head.record_id, 0, head.segment_size)
    )
    return list({row[:3]: row for row in rows}.values())


def _action_rows(
    topic: str, action: LoggedAction, record_id: str, after: int, segment_size: int
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the events of an action that follow event `after`."""
    header, single = action.header, action.single
    place = action.partition, action.offset, header.timestamp_ms
    key = topic, header.id.decode()
    if single is None:
        append = action.append
        common = (*place, append.origin or None, append.version or None, record_id)
        yield from append_rows(key, common, append.metadata, action.events, after, segment_size)
        return
    origin, version, metadata, tags, payload = single
    seq_nr = header.to_seq_nr
    yield (
        *key,
        seq_nr,
        (seq_nr - 1) // segment_size,
        *place,
        origin,
        version,
        record_id,
        tags,
        "json",
        payload,
        None,
        _metadata(json.loads(metadata), _NO_EVENTS) if metadata else None,
    )


def snapshot_row(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return the row of a snapshot, from that of an event."""
    return (*row[:3], *row[4:10], *row[11:])


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
        None if head.expires_ms is None else expire_on(head.expires_ms).isoformat(),
        head.expires_ms,
        head.record_id,
        head.origin or None,
    )


def head_of(row: tuple[Any, ...]) -> Head:
    """Return the head of a row, in the order of READ_HEAD_COLUMNS."""
    head, on = Head._make(row[1:-1]), row[-1]
    if on is not None and head.expires_ms is None:  # of version 1, which had only the day
        head = head._replace(expires_ms=end_of_day_ms(date.fromisoformat(on)))
    return head


def expire_on(expires_ms: int) -> date:
    """Return the day (UTC) of a time, milliseconds since the epoch; at most that of year 9999."""
    return date.fromordinal(min(_FIRST_DAY + expires_ms // _DAY_MS, date.max.toordinal()))


def end_of_day_ms(day: date) -> int:
    """Return the end of a day (UTC), milliseconds since the epoch."""
    return (day.toordinal() + 1 - _FIRST_DAY) * _DAY_MS


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


def snapshot_of(row: Sequence[Any]) -> SnapshotRecord:
    """Return the snapshot of a row, in the order of SNAPSHOT_COLUMNS."""
    return SnapshotRecord.of(event_of(EventRow._make((*row[:3], 0, *row[3:9], None, *row[9:]))))


def row_of_event(topic: str, id: str, head: Head, record: EventRecord) -> tuple[Any, ...]:
    """Return the row of an event that was read, in the order of EVENT_COLUMNS."""
    events = Events((record.event,), record.expire_after_ns, record.payload_metadata)
    place = record.partition, record.offset, record.timestamp_ms
    common = (*place, record.origin or None, record.version or None, head.record_id)
    (row,) = append_rows((topic, id), common, record.metadata, events, 0, head.segment_size)
    return row


def row_of_snapshot(topic: str, id: str, head: Head, record: SnapshotRecord) -> tuple[Any, ...]:
    """Return the row of a snapshot that was read, in the order of SNAPSHOT_COLUMNS."""
    of_event = EventRecord(
        Event(record.seq_nr, record.payload, record.payload_type),
        record.partition,
        record.offset,
        record.timestamp_ms,
        record.origin,
        record.version,
        record.metadata,
    )
    return snapshot_row(row_of_event(topic, id, head, of_event))


def _metadata(metadata: Any, events: Events) -> str | None:
    """Return the metadata of an append and of its events, as kafka-journal nests them."""
    of_events = metadata_of(events.expire_after_ns, events.metadata)
    if metadata is None and not of_events:
        return None
    return _json({"header": metadata, "payload": of_events})
