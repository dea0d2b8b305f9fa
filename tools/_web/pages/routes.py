"""The pages and their live figures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp

from aerotape.archive.counters import CounterType, key_fields
from aerotape.errors import AerotapeError
from aerotape.formatting import bytes_text
from aerotape.tools._cli.times import time_text
from aerotape.tools._entity.read import event_text
from aerotape.tools._web.health import checks
from aerotape.tools._web.observed import ObservedArchive, Snapshot
from aerotape.tools._web.rest.entities import read_journal
from aerotape.tools._web.rest.ledgers import unsigned
from aerotape.tools._web.rest.problems import status_of
from aerotape.tools._web.rest.recordings import Format, Reading, Sort, listed, row_of
from aerotape.tools._web.session import ControlSession

_FOLDER: Final = Path(__file__).parent
_PAGE_ROWS: Final = 100
_MESSAGES: Final = 50
_LIVE_INTERVAL_S: Final = 1.0
_MAX_LIVE: Final = 200


def static_files() -> ASGIApp:
    """Return the application for `/static`."""
    return StaticFiles(directory=_FOLDER / "static")


def router(observed: ObservedArchive, reading: Reading, session: ControlSession) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(include_in_schema=False)
    templates = Jinja2Templates(_FOLDER / "templates")
    templates.env.filters |= {"size": bytes_text, "time": _time}

    def page(request: Request, name: str, active: str, **context: Any) -> Response:
        context |= {"active": active, "directory": str(observed.directory)}
        return templates.TemplateResponse(request, name, context)

    def failed(request: Request, active: str, error: AerotapeError) -> Response:
        title = status_of(error).phrase
        response = page(request, "problem.html", active, title=title, detail=str(error))
        response.status_code = status_of(error)
        return response

    @routes.get("/")
    def overview(request: Request) -> Response:
        snapshot = observed.snapshot()
        positions = snapshot.positions()
        live = (each for each in snapshot.recordings if each.recording_id in positions)
        return page(
            request,
            "overview.html",
            "/",
            snapshot=snapshot,
            checks=checks(snapshot),
            errors=_errors(snapshot),
            rows=[row_of(snapshot, positions, each) for each in islice(live, _MAX_LIVE)],
        )

    @routes.get("/live")
    async def live(request: Request) -> Response:
        async def events() -> AsyncIterator[str]:
            while not await request.is_disconnected():
                snapshot = await run_in_threadpool(observed.snapshot)
                yield f"data: {json.dumps(_live(snapshot))}\n\n"
                await asyncio.sleep(_LIVE_INTERVAL_S)

        return StreamingResponse(events(), media_type="text/event-stream")

    @routes.get("/recordings")
    def recordings(
        request: Request,
        channel: str = "",
        stream_id: str = "",
        live: bool = False,
        sort: Sort = "recording_id",
        ascending: bool = False,
        after: int | None = None,
    ) -> Response:
        stream = int(stream_id) if stream_id.removeprefix("-").isdecimal() else None
        total, rows = listed(
            observed.snapshot(),
            channel=channel or None,
            stream_id=stream,
            live=True if live else None,
            sort=sort,
            descending=not ascending,
            after=after,
            limit=_PAGE_ROWS,
        )
        query = {
            "channel": channel,
            "stream_id": stream_id,
            "live": "true" if live else "",
            "sort": sort,
            "ascending": "true" if ascending else "",
        }
        following = ""
        if len(rows) == _PAGE_ROWS:
            given = {name: value for name, value in query.items() if value}
            following = "?" + urlencode({**given, "after": rows[-1]["recording_id"]})
        shown = {**query, "stream_id": stream}
        return page(
            request,
            "recordings.html",
            "/recordings",
            total=total,
            rows=rows,
            query=shown,
            next=following,
        )

    @routes.get("/recordings/{recording_id}")
    def recording(
        request: Request,
        recording_id: int,
        position: Annotated[int | None, Query(ge=0)] = None,
        format: Format = "text",
        schema: str = "",
        from_time: str = "",
    ) -> Response:
        try:
            row = reading.recording(recording_id)
            segments = reading.segments(recording_id)
            notes = reading.opened(recording_id).suspect_notes
        except AerotapeError as error:
            return failed(request, "/recordings", error)
        problem, messages = "", []
        try:
            messages = reading.messages(
                recording_id,
                position,
                _MESSAGES,
                format,
                schema or None,
                from_time=from_time or None,
            )
        except AerotapeError as error:
            problem = str(error)
        return page(
            request,
            "recording.html",
            "/recordings",
            row=row,
            segments=segments,
            notes=notes,
            messages=messages,
            problem=problem,
            position=row["start_position"] if position is None else position,
            format=format,
            schema=schema,
            schemas=list(reading.schemas),
            from_time=from_time,
        )

    @routes.get("/ledgers")
    def ledgers(request: Request, scope: str = "0") -> Response:
        problem, rows = "", []
        try:
            scope_id = unsigned("scope", scope)
            found = session.run(lambda client: list(client.list_ledgers(scope_id, 0, _PAGE_ROWS)))
            rows = [
                (
                    str(info.id.ledger_id),
                    info.type,
                    info.state,
                    _plain(info.last_add_pushed),
                    _plain(info.last_add_confirmed),
                    info.recorded_position - info.confirmed_position,
                )
                for info in found
            ]
        except AerotapeError as error:
            problem = str(error)
        columns = ("Ledger:", "Type", "State", "LAP:", "LAC:", "Unconfirmed bytes:")
        form = [("Scope", "scope", scope)]
        return _table(page, request, "/ledgers", "Ledgers", columns, rows, problem, form)

    @routes.get("/entities")
    def entities(request: Request, topic: str = "", key: str = "") -> Response:
        problem, note, rows = "", "", []
        try:
            if topic:
                last, events = read_journal(session, topic, key, 1, _PAGE_ROWS)
                note = f"last sequence number: {'none' if last is None else last}"
                rows = [(each.event.seq_nr, event_text(each)) for each in events]
        except AerotapeError as error:
            problem = str(error)
        except HTTPException as error:
            problem = error.detail
        form = [("Topic", "topic", topic), ("Entity", "key", key)]
        return _table(
            page, request, "/entities", "Entities", ("Number:", "Event"), rows, problem, form, note
        )

    @routes.get("/sessions")
    def sessions(request: Request) -> Response:
        snapshot = observed.snapshot()
        rows = [
            (key_fields(each.type_id, each.key)["control_session_id"], each.label)
            for each in snapshot.counters
            if each.type_id == CounterType.CONTROL_SESSION
        ]
        found = {
            name: snapshot.value(counter) or 0
            for name, counter in (
                ("control sessions", CounterType.CONTROL_SESSIONS),
                ("recordings in progress", CounterType.RECORDING_SESSIONS),
                ("replays in progress", CounterType.REPLAY_SESSIONS),
            )
        }
        note = ", ".join(f"{count} {name}" for name, count in found.items())
        return _table(page, request, "/sessions", "Sessions", ("Id:", "Client"), rows, note=note)

    @routes.get("/counters")
    def counters(request: Request) -> Response:
        snapshot = observed.snapshot()
        rows = [
            (each.counter_id, each.type_id, each.value, each.label)
            for each in (*snapshot.own_counters, *snapshot.counters)
        ]
        columns = ("Id:", "Type:", "Value:", "Label")
        return _table(page, request, "/counters", "Counters", columns, rows)

    @routes.get("/errors")
    def errors(request: Request) -> Response:
        snapshot = observed.snapshot()
        rows = [
            (
                source,
                each.count,
                _time(each.first_timestamp_ms),
                _time(each.last_timestamp_ms),
                each.text,
            )
            for source, found in snapshot.error_logs()
            for each in found
        ]
        columns = ("Source", "Count:", "First:", "Last:", "Error")
        return _table(page, request, "/errors", "Errors", columns, rows)

    return routes


def _table(
    page: Any,
    request: Request,
    path: str,
    title: str,
    columns: tuple[str, ...],
    rows: list[Any],
    problem: str = "",
    form: Sequence[tuple[str, str, str]] = (),
    note: str = "",
) -> Response:
    """Return a page with a table.

    The titles of columns of numbers end with a colon. The form has a label, name and value for each
    field.
    """
    shown = [{"title": name.rstrip(":"), "number": name.endswith(":")} for name in columns]
    response: Response = page(
        request,
        "table.html",
        path,
        title=title,
        columns=shown,
        rows=rows,
        problem=problem,
        form=form,
        note=note,
    )
    return response


def _live(snapshot: Snapshot) -> dict[str, Any]:
    positions = snapshot.positions()
    live = (each for each in snapshot.recordings if each.recording_id in positions)
    return {
        "time_ms": snapshot.taken_ms,
        "count": len(snapshot.recordings),
        "free_bytes": snapshot.free_bytes,
        "errors": _errors(snapshot),
        "checks": [check.row for check in checks(snapshot)],
        "recordings": [
            {
                "recording_id": each.recording_id,
                "channel": each.original_channel,
                "stream_id": each.stream_id,
                "position": positions[each.recording_id],
            }
            for each in islice(live, _MAX_LIVE)
        ],
    }


def _errors(snapshot: Snapshot) -> int:
    return snapshot.value(CounterType.ERRORS) or 0


def _plain(value: int | None) -> str:
    return "" if value is None else str(value)


def _time(timestamp_ms: int) -> str:
    return "" if timestamp_ms < 0 else time_text(timestamp_ms)
