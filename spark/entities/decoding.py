"""Decoding of payloads in Python tasks, for the forms that Spark SQL cannot parse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from aerotape.archive.entity.stores.rows import EVENT_COLUMNS, append_rows
from aerotape.codecs.entity.actions import PayloadType
from aerotape.codecs.entity.payload import decode_events

EVENTS: Final = (
    "topic string, id string, seq_nr bigint, segment bigint, partition int, offset bigint,"
    " timestamp bigint, origin string, version string, meta_record_id string, tags string,"
    " payload_type string, payload_txt string, payload_bin binary, metadata string"
)
"""The schema of `events_decoder`."""


def events_decoder(
    topic: str, segment_size: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for `mapInArrow` from appends to rows of `journal`."""

    def decoded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        types = {"seq_nr": pa.int64(), "segment": pa.int64(), "partition": pa.int32(),
                 "offset": pa.int64(), "timestamp": pa.int64(),
                 "payload_bin": pa.binary()}  # fmt: skip
        schema = pa.schema([(name, types.get(name, pa.string())) for name in EVENT_COLUMNS])
        for batch in batches:
            appends = batch.to_pylist()
            rows = chain.from_iterable(_rows(each, topic, segment_size) for each in appends)
            yield pa.RecordBatch.from_pylist(
                [dict(zip(EVENT_COLUMNS, row, strict=True)) for row in rows], schema
            )

    return decoded


def _rows(row: dict[str, Any], topic: str, segment_size: int) -> Iterator[tuple[Any, ...]]:
    payload_type = PayloadType(row["payloadType"])
    return append_rows(
        (topic, row["id"]),
        (
            row["partition"],
            row["position"],
            row["timestamp"],
            row["origin"] or None,
            row["version"] or None,
            row["meta_record_id"],
        ),
        row["metadata"].encode(),
        decode_events(row["payload"], payload_type),
        row["after"],
        segment_size,
    )


def expiry_decoder(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: set `expire` of heads whose last payload is `binary`."""
    for batch in batches:
        columns = {name: batch.column(name) for name in batch.schema.names}
        payloads = columns.pop("binary")
        if payloads.null_count < len(payloads):
            expiries = zip(columns["expire"].to_pylist(), payloads.to_pylist(), strict=True)
            columns["expire"] = pa.array(
                [
                    given
                    if payload is None
                    else decode_events(payload, PayloadType.BINARY).expire_after_ns
                    for given, payload in expiries
                ],
                pa.int64(),
            )
        yield pa.RecordBatch.from_pydict(columns)
