"""The pages and their live figures."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import shlex
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates
from jinja2 import StrictUndefined
from starlette.responses import StreamingResponse

from aerotape import __version__
from aerotape.channel_uri import alias_of
from aerotape.codecs.generated import archive as codecs
from aerotape.counter_keys import CounterType
from aerotape.errors import AerotapeError
from aerotape.formatting import bytes_text, printable
from aerotape.replay.offline import option_text
from aerotape.replay.offline.selection import Selection
from aerotape.tools._web.health import checks
from aerotape.tools._web.journals import Journals
from aerotape.tools._web.observed import ObservedArchive, Snapshot
from aerotape.tools._web.pages.entities import add_entities
from aerotape.tools._web.pages.formats import (
    MAX_TEXT,
    brief,
    grouped,
    message_text,
    safe,
    second_of,
    shortened,
    time_of,
)
from aerotape.tools._web.pages.tables import PAGE_ROWS, add_tables
from aerotape.tools._web.paths import route_path
from aerotape.tools._web.rest.answers import building
from aerotape.tools._web.rest.changes import ACCEPTING, Changes
from aerotape.tools._web.rest.problems import status_of
from aerotape.tools._web.rest.reading import (
    Format,
    Reading,
    Sort,
    listed,
    row_of,
)
from aerotape.tools._web.rest.recordings import MAX_INT64
from aerotape.tools._web.rest.retention import Retention
from aerotape.tools._web.safety.users import is_admitted
from aerotape.tools._web.session import ControlSession
from aerotape.tools._web.topics import Topics

_FOLDER: Final = Path(__file__).parent
_MESSAGES: Final = 50
_SEGMENTS: Final = 200
_NOTES: Final = 100
_LIVE_INTERVAL_S: Final = 1.0
_MAX_LIVE: Final = 200
_STREAM_THREADS: Final = 4


_PARTS: Final = {
    "/": "Overview",
    "/recordings": "Recordings",
    "/ledgers": "Ledgers",
    "/entities": "Entities",
    "/replays": "Replays",
    "/sessions": "Sessions",
    "/retention": "Retention",
    "/counters": "Counters",
    "/errors": "Errors",
    "/api": "REST",
}
"""The parts of the console, by path."""


class Pages:
    """Makes pages of templates."""

    def __init__(self, observed: ObservedArchive) -> None:
        """Create it.

        Args:
            observed: the archive.
        """
        self._observed = observed
        self._templates = Jinja2Templates(_FOLDER / "templates")
        environment = self._templates.env
        environment.undefined = StrictUndefined
        environment.finalize = safe
        environment.filters |= {"size": bytes_text, "time": time_of, "grouped": grouped}
        environment.filters |= {"printable": printable, "second": second_of}
        environment.filters |= {"brief": brief, "shortened": shortened}

    def page(
        self,
        request: Request,
        name: str,
        active: str,
        problem: AerotapeError | None = None,
        **context: Any,
    ) -> Response:
        """Return a page.

        Args:
            request: that it responds to.
            name: of the template.
            active: the path of the part of the console that it belongs to.
            problem: why it does not have what was asked for, which gives its status; None: it has.
            context: of the template.
        """
        context |= {"active": active, "parts": _PARTS, "directory": str(self._observed.directory)}
        text = self._observed.error_text(problem) if problem else ""
        context |= {"root": request.scope["root_path"], "problem": text}
        status = HTTPStatus.OK if problem is None else status_of(problem)
        if status is HTTPStatus.CONFLICT:  # the archive's answer, such as that it has no ledgers
            status = HTTPStatus.OK
        return self._templates.TemplateResponse(request, name, context, status)

    def problem(self, request: Request, status: HTTPStatus, detail: str) -> Response:
        """Return a page that says what is wrong, with a way back."""
        part = f"/{route_path(request.scope).split('/')[1]}"
        back = part if part in _PARTS else "/"
        response = self.page(
            request, "problem.html", part, title=status.phrase, detail=detail, back=back
        )
        response.status_code = status
        return response


def router(
    pages: Pages,
    observed: ObservedArchive,
    reading: Reading,
    session: ControlSession,
    changes: Changes,
    retention: Retention,
    topics: Topics,
    journals: Journals,
) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(include_in_schema=False)
    page = pages.page
    files = StaticFiles(directory=_FOLDER / "static")
    # Streams that wait for the storage keep no thread from other requests.
    streams = ThreadPoolExecutor(_STREAM_THREADS, "streams")

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
            checks=sorted(checks(snapshot), key=lambda check: check.is_ok),
            version=__version__,
            errors=_errors(snapshot),
            rows=[row_of(snapshot, positions, each) for each in islice(live, _MAX_LIVE)],
        )

    @routes.get("/api")
    def api(request: Request) -> Response:
        return page(request, "api.html", "/api", operations=_operations(request.app.openapi()))

    @routes.get("/static/{name}")
    async def static(request: Request, name: str) -> Response:
        return await files.get_response(name, request.scope)

    @routes.get("/live")
    async def live(request: Request) -> Response:
        loop = asyncio.get_running_loop()

        async def events() -> AsyncIterator[str]:
            while not await request.is_disconnected() and await is_admitted(request):
                try:
                    snapshot = await loop.run_in_executor(
                        streams, observed.snapshot, _LIVE_INTERVAL_S
                    )
                    yield f"data: {json.dumps(_live(snapshot))}\n\n"
                except AerotapeError as error:
                    text = observed.error_text(error)
                    yield f"event: problem\ndata: {json.dumps(text)}\n\n"
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
        # The form has "" for any.
        stream = option_text.int32(stream_id, "stream_id") if stream_id else None
        total, rows = listed(
            observed.snapshot(),
            Selection(channel=channel or None, stream_id=stream, live=True if live else None),
            sort=sort,
            descending=not ascending,
            after=after,
            limit=PAGE_ROWS,
        )
        query = {
            "channel": channel,
            "stream_id": stream_id,
            "live": "true" if live else "",
            "sort": sort,
            "ascending": "true" if ascending else "",
        }
        following = ""
        if len(rows) == PAGE_ROWS:
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
            may_start=not changes.refusal(request, codecs.StartRecordingRequest2.TEMPLATE_ID),
        )

    @routes.get("/recordings/{recording_id}")
    def recording(
        request: Request,
        recording_id: int,
        position: Annotated[int | None, Query(ge=0, le=MAX_INT64)] = None,
        before: Annotated[int | None, Query(ge=0, le=MAX_INT64)] = None,
        format: Format = "text",
        schema: str | None = None,
        from_time: str = "",
        text: Annotated[str, Query(max_length=1_000)] = "",
    ) -> Response:
        if schema is None:  # the form has "" for none
            schema = next(iter(reading.schemas)) if len(reading.schemas) == 1 else ""
        try:
            with building():
                row = reading.recording(recording_id)
                found = reading.opened(recording_id)
                segments = list(islice(reading.segments(found), _SEGMENTS + 1))
                damage = reading.damage(recording_id)
        except AerotapeError as error:
            return pages.problem(request, status_of(error), observed.error_text(error))
        follows = row["live"] and position is None and before is None
        follows = follows and not from_time and not text
        messages, search, messages_problem = [], None, ""
        try:
            with building():
                selection = Selection(
                    from_position=position, from_time=from_time or None, to_position=before
                )
                if text:
                    search = reading.search(
                        found,
                        selection,
                        text,
                        _MESSAGES,
                        format,
                        schema or None,
                        max_payload=MAX_TEXT,
                    )
                    messages = [_shown(each) for each in search.messages]
                    position = search.from_position if from_time else position
                else:
                    if follows or before is not None:
                        selection = dataclasses.replace(selection, last=_MESSAGES)
                    for each in reading.messages(
                        found,
                        selection,
                        _MESSAGES,
                        format,
                        schema or None,
                        max_payload=MAX_TEXT,
                    ):
                        messages.append(_shown(each))
        except AerotapeError as error:
            messages_problem = observed.error_text(error)
        return page(
            request,
            "recording.html",
            "/recordings",
            row=row,
            segments=segments[:_SEGMENTS],
            has_more_segments=len(segments) > _SEGMENTS,
            damage=damage,
            suspect=damage.notes.is_suspect,
            max_notes=_NOTES,
            command=_command(observed.directory, "accept-damage", recording_id),
            messages=messages,
            messages_problem=messages_problem,
            follows=follows,
            actions=_actions(
                row,
                lambda template_id: changes.refusal(request, template_id),
                is_suspect=damage.notes.is_suspect,
            ),
            views=_views(row, messages, before, format, schema if reading.schemas else None),
            max_payload=MAX_TEXT,
            position=position,
            before=before,
            format=format,
            schema=schema,
            schemas=list(reading.schemas),
            from_time="" if text else from_time,
            text=text,
            search=search,
            selection=_selection(messages, format, schema),
        )

    add_tables(routes, page, observed, session, retention)
    add_entities(routes, page, journals, topics)
    return routes


def _shown(message: dict[str, Any]) -> dict[str, Any]:
    """Return what a page has of a message's row: not its fields, which may take much memory."""
    names = ("position", "end_position", "recorded_time", "length")
    return {**{name: message[name] for name in names}, "text": message_text(message)}


def _views(
    row: dict[str, Any],
    messages: list[dict[str, Any]],
    before: int | None,
    format: Format,
    schema: str | None,
) -> dict[str, str]:
    """Return the queries of other views of a recording's messages; "" where there are none.

    Args:
        row: of the recording.
        messages: those that are shown.
        before: the position before which they begin; None: they begin at a position or a time.
        format: of payloads.
        schema: its name, "" for none; None: the service has no schema.
    """
    how = {"format": format} if schema is None else {"format": format, "schema": schema}
    start, end = row["start_position"], row["recorded_position"] or row["start_position"]
    place = end if before is None else max(min(before, end), start)
    first = messages[0]["position"] if messages else place
    following = messages[-1]["end_position"] if messages else place

    def query(**where: int) -> str:
        return "?" + urlencode({**where, **how})

    return {
        "at": f"?{urlencode(how)}&position=",
        "oldest": query(position=start) if first > start else "",
        "older": query(before=first) if first > start else "",
        "newer": query(position=following) if following < end else "",
        "newest": query() if row["live"] else query(before=end) if following < end else "",
        "end": str(following),
    }


def _command(directory: Path, name: str, *arguments: object) -> str:
    """Return a command of `aerotape tool` that a person types."""
    return shlex.join(["aerotape", "tool", str(directory), name, *map(str, arguments)])


def _actions(
    row: dict[str, Any], refusal: Callable[[int], str], *, is_suspect: bool
) -> list[str]:
    """Return the changes of a recording that are possible now and not refused."""
    if row["live"]:
        possible = {
            "stop": codecs.StopRecordingByIdentityRequest.TEMPLATE_ID,
            "purge": codecs.PurgeSegmentsRequest.TEMPLATE_ID,
        }
    else:
        possible = {
            "truncate": codecs.TruncateRecordingRequest.TEMPLATE_ID,
            "purge": codecs.PurgeSegmentsRequest.TEMPLATE_ID,
            "delete": codecs.PurgeRecordingRequest.TEMPLATE_ID,
        }
    if is_suspect:
        possible["accept"] = ACCEPTING
    return [name for name, template_id in possible.items() if not refusal(template_id)]


def _selection(messages: list[dict[str, Any]], format: Format, schema: str) -> str:
    """Return the query of a file with the messages from the first one shown to the last."""
    if not messages:
        return ""
    query: dict[str, Any] = {"position": messages[0]["position"]}
    query |= {"to_position": messages[-1]["end_position"], "format": format}
    return urlencode(query | {"schema": schema} if schema else query)


def _operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the operations of an OpenAPI document, a dictionary each."""
    return [
        {"method": method.upper(), "path": path, **operation}
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


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
                "channel": brief(each.original_channel),
                "alias": brief(alias_of(each.original_channel)),
                "stream_id": each.stream_id,
                "position": positions[each.recording_id],
            }
            for each in islice(live, _MAX_LIVE)
        ],
    }


def _errors(snapshot: Snapshot) -> int:
    return snapshot.value(CounterType.ERRORS) or 0
