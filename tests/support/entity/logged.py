"""Actions as the replicator reads them from a log, and batches of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from aerotape.codecs.entity.actions import (
    Action,
    Append,
    Delete,
    Event,
    Mark,
    Purge,
    Snapshot,
)
from aerotape.codecs.entity.messages import encode
from aerotape.codecs.entity.payload import encode_events
from aerotape.entity.records import Pointer
from aerotape.entity.stores.base import EntityStore
from aerotape.entity.transitions import Change, LoggedAction, collapse

TOPIC = "orders"
DAY_NS = 86_400_000_000_000


def append(id: str, *seq_nrs: int, expire_after_ns: int | None = None, **fields: Any) -> Append:
    """Return an append of events with these sequence numbers and a payload that shows them."""
    events = [Event(number, f'{{"n":{number}}}'.encode(), "json", ("tag",)) for number in seq_nrs]
    return append_events(id, events, expire_after_ns, **fields)


def append_events(
    id: str, events: Sequence[Event], expire_after_ns: int | None = None, **fields: Any
) -> Append:
    """Return an append of these events."""
    payload, payload_type = encode_events(events, expire_after_ns)
    return Append(
        id=id,
        from_seq_nr=events[0].seq_nr,
        to_seq_nr=events[-1].seq_nr,
        payload=payload,
        payload_type=payload_type,
        **fields,
    )


def delete(id: str, to: int) -> Delete:
    """Return a delete."""
    return Delete(id=id, to_seq_nr=to, timestamp_ms=2_000)


def purge(id: str) -> Purge:
    """Return a purge."""
    return Purge(id=id, timestamp_ms=3_000)


def conditional(id: str, *seq_nrs: int) -> Append:
    """Return an append that is refused unless the journal ends directly before its first event."""
    return append(id, *seq_nrs, is_conditional=True)


def purge_unchanged(id: str, last_change: int) -> Purge:
    """Return a purge of a journal whose last change is at a position."""
    return Purge(id=id, timestamp_ms=3_000, last_change=last_change)


def snapshot(id: str, seq_nr: int) -> Snapshot:
    """Return a snapshot of the entity after an event."""
    return save(id, Event(seq_nr, b'{"state":1}', "json"))


def save(id: str, state: Event, **fields: Any) -> Snapshot:
    """Return a snapshot with the payload of an event."""
    payload, payload_type = encode_events([state])
    return Snapshot(
        id=id,
        from_seq_nr=state.seq_nr,
        to_seq_nr=state.seq_nr,
        payload=payload,
        payload_type=payload_type,
        **fields,
    )


def mark(id: str) -> Mark:
    """Return a mark."""
    return Mark(id=id, mark_id="a mark")


def logged(actions: Iterable[Action], first_offset: int = 0) -> list[LoggedAction]:
    """Return the actions of one partition, 64 bytes each in the log."""
    return [
        LoggedAction(0, first_offset + 64 * index, encode(action))
        for index, action in enumerate(actions)
    ]


def apply(
    store: EntityStore,
    log: Sequence[LoggedAction],
    topic: str = TOPIC,
    next_position: int | None = None,
) -> None:
    """Store a batch of one partition, as the replicator does; `next_position`: where it ends."""
    ids = list(dict.fromkeys(each.header.id.decode() for each in log))
    heads = store.heads(topic, ids)
    changes: dict[str, Change] = {
        id: collapse(
            heads.get(id),
            [each for each in log if each.header.id.decode() == id],
            store.options.segment_size,
        )
        for id in ids
    }
    store.apply(topic, 0, changes, Pointer(log[-1].offset, next_position or log[-1].offset + 64))


def put_snapshots(
    store: EntityStore, id: str, log: Sequence[LoggedAction], topic: str = TOPIC
) -> None:
    """Store snapshots of a journal: appends of one event with the sequence number of each."""
    change = replace(collapse(store.head(topic, id), [], 3), snapshots=list(log))
    store.apply(topic, 0, {id: change}, Pointer(log[-1].offset, log[-1].offset + 64))
