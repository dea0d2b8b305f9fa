"""Parameters of Cassandra's statements from rows, and records from rows of its driver."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from aerotape.entity.records import EventRecord, Head, SnapshotRecord
from aerotape.entity.stores.rows import (
    SNAPSHOT_COLUMNS,
    EventRow,
    end_of_day_ms,
    event_of,
    expire_on,
    head_row,
    snapshot_of,
)

_DAY_NS: Final = 86_400_000_000_000
_TIMESTAMP: Final = SNAPSHOT_COLUMNS.index("timestamp")
_RECORD_ID: Final = SNAPSHOT_COLUMNS.index("meta_record_id")


def head_parameters(topic: str, id: str, segment: int, head: Head, types: Any) -> tuple[Any, ...]:
    """Return the parameters of `put_head`; `types` is the module with the driver's durations."""
    after, expires = head.expire_after_ns, head.expires_ms
    return (
        *head_row(topic, id, segment, head)[:10],
        None if after is None else types.Duration(0, after // _DAY_NS, after % _DAY_NS),
        None if expires is None else expire_on(expires),
        expires,
        UUID(head.record_id),
        head.origin or None,
        datetime.fromtimestamp(head.created_ms / 1000, UTC).date(),
    )


def head_of_row(row: Any) -> Head:
    """Return the head of a row with READ_HEAD_COLUMNS."""
    after, expires = row.expire_after, row.expires
    if expires is None and row.expire_on is not None:  # of version 1, which had only the day
        expires = end_of_day_ms(row.expire_on.date())
    return Head._make(row[1:-1])._replace(
        expire_after_ns=None if after is None else after.days * _DAY_NS + after.nanoseconds,
        expires_ms=expires,
        record_id=str(row.record_id),
        created_ms=milliseconds(row.created),
        updated_ms=milliseconds(row.updated),
        origin=row.origin or "",
    )


def event_parameters(row: EventRow) -> tuple[Any, ...]:
    """Return the parameters of `put_event`."""
    tags = set(json.loads(row.tags)) if row.tags else None
    return (*row[:9], UUID(row.meta_record_id), tags, *row[11:])


def event_of_row(row: Any) -> EventRecord:
    """Return the event of a row with EVENT_COLUMNS."""
    tags = json.dumps(sorted(row.tags)) if row.tags else None
    time_ms, record_id = milliseconds(row.timestamp), str(row.meta_record_id)
    fields = (*row[:6], time_ms, *row[7:9], record_id, tags, *row[11:])
    return event_of(EventRow._make(fields))


def snapshot_parameters(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the parameters of `put_snapshot`."""
    return (*row[:_RECORD_ID], UUID(row[_RECORD_ID]), *row[_RECORD_ID + 1 :])


def snapshot_of_row(row: Any) -> SnapshotRecord:
    """Return the snapshot of a row with SNAPSHOT_COLUMNS."""
    fields = list(row)
    fields[_TIMESTAMP] = milliseconds(row.timestamp)
    fields[_RECORD_ID] = str(row.meta_record_id)
    return snapshot_of(fields)


def milliseconds(when: datetime) -> int:
    """Return milliseconds since the epoch of a time in UTC as the driver returns it."""
    return round(when.replace(tzinfo=UTC).timestamp() * 1000)
