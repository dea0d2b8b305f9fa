"""`/api/v1/entities`: topics, their keys, and the journals and snapshots of entities."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

from fastapi import APIRouter, Query
from fastapi.responses import Response

from aerotape.entity.records import SnapshotRecord
from aerotape.tools._cli.output import as_row, json_object
from aerotape.tools._entity.read import event_row, snapshot_row
from aerotape.tools._web.journals import Journal, Journals
from aerotape.tools._web.rest.answers import MAX_ANSWER, answer, building, row_text, too_large
from aerotape.tools._web.rest.recordings import MAX_INT64, MAX_ROWS, Limit
from aerotape.tools._web.topics import Topics, parse_place

_MAX_SNAPSHOT: Final = MAX_ANSWER // 2
MAX_TAG: Final = 1_000


def router(journals: Journals, topics: Topics) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/api/v1/entities", tags=["entities"])

    @routes.get("", summary="Topics, with the bytes of their logs")
    def listing() -> Response:
        return answer(map(row_text, topics.listed()))

    @routes.get("/{topic}", summary="Keys of a topic, those that changed last first")
    def keys(
        topic: str,
        key: Annotated[str, Query(max_length=1_000, description="a part of the keys")] = "",
        tag: Annotated[str, Query(max_length=MAX_TAG, description="of an event")] = "",
        before: Annotated[str, Query(description="`before` of the answer before this one")] = "",
        limit: Annotated[int, Query(ge=1, le=MAX_ROWS)] = 100,
    ) -> Response:
        with building():
            found = topics.keys(topic, key, tag, parse_place(before), limit)
            about = {
                "before": found.place,
                "searched_bytes": found.searched_bytes,
                "left_bytes": found.left_bytes,
                "problems": found.problems,
            }
            return answer(map(row_text, found.keys), '{"keys":[', f"],{row_text(about)[1:]}")

    @routes.get("/{topic}/{key:path}", summary="Events of a journal, and its latest snapshot")
    def journal(
        topic: str,
        key: str,
        from_seq_nr: Annotated[int, Query(alias="from", ge=1, le=MAX_INT64)] = 1,
        limit: Limit = 100,
    ) -> Response:
        with building():
            return _answered(journals.read(topic, key, from_seq_nr, limit, MAX_ANSWER))

    return routes


def _answered(found: Journal) -> Response:
    """Return a part of a journal (HTTPException: its first event does not fit)."""
    first = len(found.events[0].event.payload or b"") if found.events else 0
    if first > MAX_ANSWER:
        raise too_large(first)
    # Payloads of JSON are passed on as they were appended.
    rows = (json_object(event_row(event)) for event in found.events)
    last = "null" if found.last is None else found.last
    snapshot = "null" if found.snapshot is None else _snapshot(found.snapshot)
    return answer(rows, f'{{"seq_nr": {last}, "snapshot": {snapshot}, "events": [', "]}")


def _snapshot(record: SnapshotRecord) -> str:
    """Return the row of a snapshot, without a payload that leaves no room for events."""
    length = len(record.payload or b"")
    without = {
        "payload_bytes": length,
        **as_row(snapshot_row(replace(record, payload=b""))),
        "payload": None,
    }
    if length > _MAX_SNAPSHOT:
        return json_object(without)
    text = json_object({**without, **as_row(snapshot_row(record))})
    return text if len(text) <= _MAX_SNAPSHOT else json_object(without)
