"""Rows of heads, events and snapshots from all actions of some entities, as stores have them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow
from pyarrow import compute

from aerotape import _native
from aerotape.codecs.entity.actions import Append, Events, PayloadType
from aerotape.codecs.entity.lower_case import CAPITAL_SIGMA
from aerotape.codecs.entity.payload import events_of
from aerotape.codecs.entity.segments import head_segment
from aerotape.entity.stores.base import MAX_SNAPSHOTS
from aerotape.entity.stores.rows import (
    EVENT_COLUMNS,
    HEAD_COLUMNS,
    SNAPSHOT_COLUMNS,
    append_rows,
    expire_on,
    snapshot_row,
)
from aerotape.entity.transitions import expires_ms
from aerotape.errors import CodecError, EntityError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow import Array, RecordBatch

_TYPES: Final = dict.fromkeys(("partition", "segment_size"), pyarrow.int32()) | dict.fromkeys(
    (
        "segment", "offset", "seq_nr", "delete_to", "created", "updated", "expire_after", "expires",
        "timestamp",
    ),
    pyarrow.int64(),
)  # fmt: skip


def _schema(columns: tuple[str, ...]) -> pyarrow.Schema:
    types = _TYPES | {"payload_bin": pyarrow.binary()}
    return pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in columns])


HEADS: Final = _schema(HEAD_COLUMNS)
EVENTS: Final = _schema(EVENT_COLUMNS)
SNAPSHOTS: Final = _schema(SNAPSHOT_COLUMNS)
ACTIONS: Final = pyarrow.schema(
    {
        "entityId": pyarrow.binary(),
        "partition": pyarrow.int32(),
        "position": pyarrow.int64(),
        "end_position": pyarrow.int64(),
        "kind": pyarrow.int32(),
        "fromSeqNr": pyarrow.int64(),
        "toSeqNr": pyarrow.int64(),
        "timestampMs": pyarrow.int64(),
        "origin": pyarrow.binary(),
        "writerVersion": pyarrow.binary(),
        "metadata": pyarrow.binary(),
        "payloadType": pyarrow.int32(),
        "sbe_payload": pyarrow.binary(),
    }
)
"""Columns of actions as `rows_of` needs them."""


def rows_of(
    actions: RecordBatch, topic: str, segments: int, segment_size: int
) -> tuple[RecordBatch, list[RecordBatch], RecordBatch]:
    """Return the heads, the events and the snapshots of entities.

    Most appends are decoded natively, column by column. Those in other forms than the usual one,
    for example with several or with binary events, and snapshots are decoded as the replicator
    does.

    Args:
        actions: all actions of these entities, with the schema `ACTIONS`, sorted by id and
            position.
        topic: the topic's name.
        segments: the number of segments of heads.
        segment_size: events in a segment of a journal.

    Raises:
        EntityError: a record is not an action, or damaged.
    """
    try:
        found, single, others, saved = _native.entity_journals(actions, segments, MAX_SNAPSHOTS)
    except ValueError as error:
        raise EntityError(f"topic {topic} has an invalid record: {error}", topic) from None
    found, single = pyarrow.record_batch(found), pyarrow.record_batch(single)
    expiries = found["expiry"].drop_null().to_pylist()
    rows = {*expiries, *(row for row, _, _ in others), *(row for row, _ in saved)}
    appends = _decoded(actions, rows, topic)
    heads = _heads(actions, found, appends, topic, segments, segment_size)
    events = [_single_events(actions, found, single, topic, segment_size)]
    record_ids = found["record_id"].to_pylist()
    if others:
        decoded: list[tuple[Any, ...]] = []
        for row, head, after in others:
            decoded += _rows(topic, appends[row], record_ids[head], after, segment_size)
        events.append(_batch(decoded, EVENTS))
    snapshots = []
    for row, head in saved:
        (event,) = _rows(topic, appends[row], record_ids[head], 0, segment_size)
        snapshots.append(snapshot_row(event))
    return heads, events, _batch(snapshots, SNAPSHOTS)


_Decoded = dict[int, tuple[Append, tuple[int, int], Events]]


def _rows(
    topic: str,
    decoded: tuple[Append, tuple[int, int], Events],
    record_id: str,
    after: int,
    segment_size: int,
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the events of an append that follow event `after`."""
    append, place, events = decoded
    writer = append.origin or None, append.version or None
    common = (*place, append.timestamp_ms, *writer, record_id)
    yield from append_rows((topic, append.id), common, append.metadata, events, after, segment_size)


def _batch(rows: list[tuple[Any, ...]], schema: pyarrow.Schema) -> RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pyarrow.record_batch([list(each) for each in columns], schema=schema)


def _decoded(actions: RecordBatch, rows: set[int], topic: str) -> _Decoded:
    """Decode appends in Python; return each with its partition and offset, and its events."""
    decoded: _Decoded = {}
    order = sorted(rows)
    for row, fields in zip(
        order, actions.take(pyarrow.array(order, "int64")).to_pylist(), strict=True
    ):
        place = fields["partition"], fields["position"]
        try:
            append = Append(
                id=fields["entityId"].decode(),
                timestamp_ms=fields["timestampMs"],
                origin=fields["origin"].decode(),
                version=fields["writerVersion"].decode(),
                metadata=json.loads(fields["metadata"]) if fields["metadata"] else None,
                from_seq_nr=fields["fromSeqNr"],
                to_seq_nr=fields["toSeqNr"],
                payload=fields["sbe_payload"],
                payload_type=PayloadType(fields["payloadType"]),
            )
            decoded[row] = append, place, events_of(append)
        except (CodecError, ValueError) as error:
            raise EntityError(
                f"topic {topic}, partition {place[0]}: invalid record at {place[1]}: {error}", topic
            ) from error
    return decoded


def _heads(
    actions: RecordBatch,
    found: RecordBatch,
    appends: _Decoded,
    topic: str,
    segments: int,
    segment_size: int,
) -> RecordBatch:
    first, last = actions.take(found["begin"]), actions.take(found["last"])
    after_ns: list[int | None] = [None] * len(found)
    times_ms: list[int | None] = [None] * len(found)
    for head, row in enumerate(found["expiry"].to_pylist()):
        expire_after_ns = None if row is None else appends[row][2].expire_after_ns
        if expire_after_ns is not None:
            after_ns[head] = expire_after_ns
            times_ms[head] = expires_ms(appends[row][0].timestamp_ms, expire_after_ns)
    days = [None if each is None else expire_on(each).isoformat() for each in times_ms]
    columns = {
        "topic": pyarrow.repeat(topic, len(found)),
        "id": first["entityId"].cast("string"),
        "segment": _segments(first["entityId"].cast("string"), found["segment"], segments),
        "partition": last["partition"],
        "offset": last["position"],
        "segment_size": pyarrow.repeat(pyarrow.scalar(segment_size, "int32"), len(found)),
        "seq_nr": found["seq_nr"],
        "delete_to": found["delete_to"],
        "created": first["timestampMs"],
        "updated": last["timestampMs"],
        "expire_after": pyarrow.array(after_ns, "int64"),
        "expire_on": pyarrow.array(days, "string"),
        "expires": pyarrow.array(times_ms, "int64"),
        "record_id": found["record_id"],
        "origin": _or_null(first["origin"]),
    }
    return pyarrow.record_batch(columns, schema=HEADS)


def _segments(ids: Array, found: Array, segments: int) -> Array:
    """Return the segments of heads; those of ids with a capital sigma are not computed natively."""
    has_sigma = compute.match_substring(ids, CAPITAL_SIGMA)
    exact = [head_segment(id, segments) for id in ids.filter(has_sigma).to_pylist()]
    return compute.replace_with_mask(found, has_sigma, pyarrow.array(exact, "int64"))


def _single_events(
    actions: RecordBatch, found: RecordBatch, single: RecordBatch, topic: str, segment_size: int
) -> RecordBatch:
    rows = actions.take(single["row"])
    count = len(rows)
    metadata = _or_null(rows["metadata"])
    columns = {
        "topic": pyarrow.repeat(topic, count),
        "id": rows["entityId"].cast("string"),
        "seq_nr": single["seq_nr"],
        "segment": compute.divide(compute.subtract(single["seq_nr"], 1), segment_size),
        "partition": rows["partition"],
        "offset": rows["position"],
        "timestamp": rows["timestampMs"],
        "origin": _or_null(rows["origin"]),
        "version": _or_null(rows["writerVersion"]),
        "meta_record_id": found["record_id"].take(single["head"]),
        "tags": single["tags"],
        "payload_type": pyarrow.repeat("json", count),
        "payload_txt": single["payload"],
        "payload_bin": pyarrow.nulls(count, "binary"),
        # As stores nest the metadata of an append and that of its events, which these do not have.
        "metadata": compute.binary_join_element_wise(
            '{"header":', metadata, ',"payload":{}}', "", null_handling="emit_null"
        ),
    }
    return pyarrow.record_batch(columns, schema=EVENTS)


def _or_null(texts: Array) -> Array:
    """Return UTF-8 as texts, null for empty ones."""
    texts = texts.cast("string")
    return compute.if_else(compute.equal(texts, ""), None, texts)
