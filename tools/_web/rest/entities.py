"""`/api/v1/entities`: topics, their keys, and the journals and snapshots of entities."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Final

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response

from aerotape.clients import ArchiveClient
from aerotape.entity.records import EventRecord, SnapshotRecord
from aerotape.entity.topic import check_topic, recordings_of
from aerotape.tools._cli.output import as_row, json_object
from aerotape.tools._entity.read import event_row, snapshot_row
from aerotape.tools._web.rest.answers import MAX_ANSWER, answer, building, row_text, too_large
from aerotape.tools._web.rest.recordings import MAX_INT64, MAX_ROWS, Limit
from aerotape.tools._web.session import ControlSession
from aerotape.tools._web.topics import Topics, parse_place

_BUFFERED: Final = 4 << 20
"""How much of the log a read has in memory, bytes."""
_MAX_SNAPSHOT: Final = MAX_ANSWER // 2
MAX_TAG: Final = 1_000


@dataclass(frozen=True, slots=True)
class Journal:
    """A part of a journal.

    Attributes:
        last: the last sequence number; None: there is no journal.
        snapshot: the latest snapshot; None: there is none.
        events: some of its events.
    """

    last: int | None
    snapshot: SnapshotRecord | None
    events: list[EventRecord]


def read_journal(
    session: ControlSession, topic: str, key: str, from_seq_nr: int | None, limit: int
) -> Journal:
    """Read a journal with its latest snapshot.

    Args:
        session: to read it with.
        topic: the topic.
        key: of the entity.
        from_seq_nr: the first event; None: so that the newest are read, as many as the limit if
            their numbers have no gaps.
        limit: the most events; fewer whose payloads have more than an answer may have, but one.

    Raises:
        HTTPException: 404, there is no such topic.
        AerotapeError: the archive refuses it, or is not there.
    """

    def read(client: ArchiveClient) -> Journal:
        if not recordings_of(check_topic(topic), client.list_recordings()):
            raise HTTPException(HTTPStatus.NOT_FOUND, f"topic {topic} has no recording")
        with client.entities(topic, buffer_length=_BUFFERED) as entities:
            snapshot = entities.snapshot(key)
            last = entities.pointer(key)
            begin = max((last or 0) - limit + 1, 1) if from_seq_nr is None else from_seq_nr
            events: list[EventRecord] = []
            length = 0
            for event in islice(entities.read(key, begin), limit):
                length += len(event.event.payload or b"")
                if events and length > MAX_ANSWER:
                    break
                events.append(event)
            return Journal(last, snapshot, events)

    return session.run(read)


def router(session: ControlSession, topics: Topics) -> APIRouter:
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
        found = read_journal(session, topic, key, from_seq_nr, limit)
        first = len(found.events[0].event.payload or b"") if found.events else 0
        if first > MAX_ANSWER:
            raise too_large(first)
        # Payloads of JSON are passed on as they were appended.
        rows = (json_object(event_row(event)) for event in found.events)
        last = "null" if found.last is None else found.last
        with building():
            snapshot = "null" if found.snapshot is None else _snapshot(found.snapshot)
            begin = f'{{"seq_nr": {last}, "snapshot": {snapshot}, "events": ['
            return answer(rows, begin, "]}")

    return routes


def _snapshot(record: SnapshotRecord) -> str:
    """Return the row of a snapshot, without a payload that leaves no room for events."""
    row = {"payload_bytes": len(record.payload or b""), **as_row(snapshot_row(record))}
    text = json_object(row)
    return text if len(text) <= _MAX_SNAPSHOT else json_object({**row, "payload": None})
