"""`/api/v1/entities`: the journals of entities."""

from __future__ import annotations

from http import HTTPStatus
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response

from aerotape.archive.client.client import ArchiveClient
from aerotape.archive.entity.records import EventRecord
from aerotape.archive.entity.topic import check_topic, recordings_of
from aerotape.tools._cli.output import json_object
from aerotape.tools._entity.read import event_row
from aerotape.tools._web.rest.recordings import Limit
from aerotape.tools._web.session import ControlSession


def read_journal(
    session: ControlSession, topic: str, key: str, from_seq_nr: int, limit: int
) -> tuple[int | None, list[EventRecord]]:
    """Return the last sequence number of a journal, None without one, and events from one on.

    Raises:
        HTTPException: 404, there is no such topic.
        AerotapeError: the archive refuses it, or is not there.
    """

    def read(client: ArchiveClient) -> tuple[int | None, list[EventRecord]]:
        if not recordings_of(check_topic(topic), client.list_recordings()):
            raise HTTPException(HTTPStatus.NOT_FOUND, f"topic {topic} has no recording")
        with client.entities(topic) as entities:
            events = list(islice(entities.read(key, from_seq_nr), limit))
            return entities.pointer(key), events

    return session.run(read)


def router(session: ControlSession) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/api/v1/entities", tags=["entities"])

    @routes.get("/{topic}/{key:path}", summary="Events of a journal, its last sequence number")
    def journal(
        topic: str,
        key: str,
        from_seq_nr: Annotated[int, Query(alias="from", ge=1)] = 1,
        limit: Limit = 100,
    ) -> Response:
        last, events = read_journal(session, topic, key, from_seq_nr, limit)
        rows = ", ".join(json_object(event_row(event)) for event in events)
        # Payloads of JSON are passed on as they were appended.
        content = f'{{"seq_nr": {"null" if last is None else last}, "events": [{rows}]}}'
        return Response(content, media_type="application/json")

    return routes
