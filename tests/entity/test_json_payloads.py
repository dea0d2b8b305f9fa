"""Payloads in JSON on their ways into stores: bytes in, bytes out."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.entity.json_texts import json_texts
from support.entity.logged import TOPIC, append_events, apply, logged

from aerotape.codecs.entity.actions import Append, Event
from aerotape.entity.stores.rows import EventRow, event_of
from aerotape.entity.stores.url import open_store
from aerotape.errors import CodecError
from aerotape.spark.entities.rows import ACTIONS, rows_of

# An append of one event, which is read natively, and one of several, which is not.
PAYLOADS = st.lists(json_texts(), min_size=2, max_size=4)


def appends(payloads: list[bytes]) -> list[Append]:
    events = [Event(number, payload, "json") for number, payload in enumerate(payloads, 1)]
    return [append_events("id", events[:1]), append_events("id", events[1:])]


@given(PAYLOADS)
@settings(max_examples=50, deadline=None)
def test_store(payloads: list[bytes]) -> None:
    """The replicator stores in SQLite what was appended, and readers get it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(f"sqlite:{Path(folder) / 'journals.db'}", writable=True) as store,
        store.replicating(),
    ):
        apply(store, logged(appends(payloads)))
        assert [each.event.payload for each in store.events(TOPIC, "id")] == payloads


@given(PAYLOADS)
@settings(deadline=None)
def test_tables_for_spark(payloads: list[bytes]) -> None:
    """The rows that Spark writes have what was appended."""
    actions = [
        {
            "entityId": b"id", "partition": 0, "position": at, "end_position": at, "kind": 1,
            "fromSeqNr": each.from_seq_nr, "toSeqNr": each.to_seq_nr, "timestampMs": 0,
            "origin": b"", "writerVersion": b"", "metadata": b"",
            "payloadType": each.payload_type.value, "sbe_payload": each.payload,
        }
        for at, each in enumerate(appends(payloads))
    ]  # fmt: skip
    _, batches, _ = rows_of(pyarrow.RecordBatch.from_pylist(actions, ACTIONS), TOPIC, 1, 100)
    rows = [EventRow(**row) for batch in batches for row in batch.to_pylist()]
    found = {each.seq_nr: each.event.payload for each in map(event_of, rows)}
    assert [found[number] for number in sorted(found)] == payloads


def test_one_event_of_another_writer() -> None:
    """Whitespace around a payload in the JSON form is not of the payload, for any reader."""
    append = appends([b"[1, 2]", b"3"])[0]
    spaced = replace(append, payload=append.payload.replace(b"[1, 2]", b" \t[1, 2]\n"))
    (action,) = logged([spaced])
    assert action.single is not None
    assert action.single.payload.encode() == action.events.events[0].payload == b"[1, 2]"


def test_tags_that_are_no_texts() -> None:
    """The fast way refuses the tags that the other one refuses."""
    append = append_events("id", [Event(1, b"3", "json", ("t",))])
    for tags in (b"[1]", b'["\\ud800"]', b'["t",]'):
        (action,) = logged([replace(append, payload=append.payload.replace(b'["t"]', tags))])
        assert action.single is None
        with pytest.raises(CodecError):
            _ = action.events
