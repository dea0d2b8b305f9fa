"""`/api/v1/entities`: the journals of entities."""

from __future__ import annotations

from http import HTTPStatus
from itertools import islice
from typing import Annotated, Final

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response

from aerotape.clients import ArchiveClient
from aerotape.entity.records import EventRecord
from aerotape.entity.topic import check_topic, recordings_of
from aerotape.tools._cli.output import json_object
from aerotape.tools._entity.read import event_row
from aerotape.tools._web.rest.answers import MAX_ANSWER, answer, building, too_large
from aerotape.tools._web.rest.recordings import MAX_INT64, Limit
from aerotape.tools._web.session import ControlSession

_BUFFERED: Final = 4 << 20
"""How much of the log a read has in memory, bytes."""


def read_journal(
    session: ControlSession, topic: str, key: str, from_seq_nr: int, limit: int
) -> tuple[int | None, list[EventRecord]]:
    """Return the last sequence number of a journal, None without one, and events from one on.

    Args:
        session: to read it with.
        topic: the topic.
        key: of the entity.
        from_seq_nr: the first event.
        limit: the most events; fewer whose payloads have more than an answer may have, but one.

    Raises:
        HTTPException: 404, there is no such topic.
        AerotapeError: the archive refuses it, or is not there.
    """

    def read(client: ArchiveClient) -> tuple[int | None, list[EventRecord]]:
        if not recordings_of(check_topic(topic), client.list_recordings()):
            raise HTTPException(HTTPStatus.NOT_FOUND, f"topic {topic} has no recording")
        with client.entities(topic, buffer_length=_BUFFERED) as entities:
            events: list[EventRecord] = []
            length = 0
            for event in islice(entities.read(key, from_seq_nr), limit):
                length += len(event.event.payload or b"")
                if events and length > MAX_ANSWER:
                    break
                events.append(event)
            return entities.pointer(key), events

    return session.run(read)


def router(session: ControlSession) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/api/v1/entities", tags=["entities"])

    @routes.get("/{topic}/{key:path}", summary="Events of a journal, its last sequence number")
    def journal(
        topic: str,
        key: str,
        from_seq_nr: Annotated[int, Query(alias="from", ge=1, le=MAX_INT64)] = 1,
        limit: Limit = 100,
    ) -> Response:
        last, events = read_journal(session, topic, key, from_seq_nr, limit)
        if events and (length := len(events[0].event.payload or b"")) > MAX_ANSWER:
            raise too_large(length)
        # Payloads of JSON are passed on as they were appended.
        rows = (json_object(event_row(event)) for event in events)
        begin = f'{{"seq_nr": {"null" if last is None else last}, "events": ['
        with building():
            return answer(rows, begin, "]}")

    return routes
