"""The pages that are a table: ledgers, entities, replays, sessions, retention, counters, errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from fastapi import APIRouter, HTTPException, Request, Response

from aerotape.counter_keys import CounterType, key_fields
from aerotape.errors import AerotapeError
from aerotape.tools._entity.read import event_text
from aerotape.tools._web.observed import ObservedArchive, lag
from aerotape.tools._web.pages.formats import time_of
from aerotape.tools._web.rest.entities import read_journal
from aerotape.tools._web.rest.ledgers import unsigned
from aerotape.tools._web.rest.retention import Retention
from aerotape.tools._web.session import ControlSession

PAGE_ROWS: Final = 100
MAX_TEXT: Final = 4_096
"""The most characters or bytes of one text in a table."""
_MAX_TABLE_ROWS: Final = 1_000


def add_tables(
    routes: APIRouter,
    page: Callable[..., Response],
    observed: ObservedArchive,
    session: ControlSession,
    retention: Retention,
) -> None:
    """Add the routes.

    Args:
        routes: receives them.
        page: returns a page of a template.
        observed: the archive.
        session: for ledgers and entities.
        retention: plans what a policy deletes.
    """

    @routes.get("/ledgers")
    def ledgers(request: Request, scope: str = "0") -> Response:
        problem, rows = "", []
        try:
            scope_id = unsigned("scope", scope)
            found = session.run(lambda client: list(client.list_ledgers(scope_id, 0, PAGE_ROWS)))
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
        columns = ("Ledger:", "Type", "State", "LAP:", "LAC:", "Unconfirmed:B")
        form = [("Scope", "scope", scope)]
        return _table(page, request, "/ledgers", "Ledgers", columns, rows, problem, form)

    @routes.get("/entities")
    def entities(request: Request, topic: str = "", key: str = "") -> Response:
        problem, note, rows = "", "", []
        try:
            if topic:
                last, events = read_journal(session, topic, key, 1, PAGE_ROWS)
                note = f"last sequence number: {'none' if last is None else last}"
                rows = [(each.event.seq_nr, shortened(event_text(each))) for each in events]
        except AerotapeError as error:
            problem = str(error)
        except HTTPException as error:
            problem = error.detail
        form = [("Topic", "topic", topic), ("Entity", "key", key)]
        return _table(
            page, request, "/entities", "Entities", ("Number:", "Event"), rows, problem, form, note
        )

    @routes.get("/replays")
    def replays(request: Request) -> Response:
        snapshot = observed.snapshot()
        ends = snapshot.ends()
        rows = [
            (
                each.recording_id,
                each.channel,
                each.stream_id,
                each.session_id,
                each.position,
                lag(ends, each.recording_id, each.position),
            )
            for each in snapshot.replays
        ]
        count = snapshot.value(CounterType.REPLAY_SESSIONS) or 0
        note = f"{count} in progress; not shown: {max(count - len(rows), 0)}"
        columns = ("Recording:", "Channel", "Stream:", "Session:", "Position:", "Lag:B")
        return _table(page, request, "/replays", "Replays", columns, rows, note=note)

    @routes.get("/retention")
    def plan(request: Request) -> Response:
        problem, note, rows = "", "", []
        try:
            found = retention.plan()
            rows = [
                (
                    each.recording_id,
                    "all" if each.new_start_position is None else each.new_start_position,
                    each.segments,
                    each.size_bytes,
                    ", ".join(each.reasons),
                )
                for each in found.removals
            ]
            note = "; ".join(map(str, found.retained))
        except AerotapeError as error:
            problem = str(error)
        columns = ("Recording:", "Deleted before:", "Segment files:", "Size:B", "Reasons")
        title = "Retention: what would be deleted now"
        return _table(page, request, "/retention", title, columns, rows, problem, note=note)

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
                time_of(each.first_timestamp_ms),
                time_of(each.last_timestamp_ms),
                shortened(each.text),
            )
            for source, found in snapshot.error_logs()
            for each in found
        ]
        columns = ("Source", "Count:", "First:", "Last:", "Error")
        return _table(page, request, "/errors", "Errors", columns, rows)


def _table(
    page: Callable[..., Response],
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

    The titles of columns of numbers end with a colon, of bytes with `:B`. The form has a label,
    name and value for each field.
    """
    kinds = {"": "text", ":": "number", ":B": "bytes"}
    parts = [name.partition(":") for name in columns]
    shown = [{"title": title, "kind": kinds[colon + kind]} for title, colon, kind in parts]
    if len(rows) > _MAX_TABLE_ROWS:
        note = "; ".join(filter(None, (note, f"the first {_MAX_TABLE_ROWS} of {len(rows)} rows")))
        rows = rows[:_MAX_TABLE_ROWS]
    return page(
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


def shortened(text: str) -> str:
    """Return a text that fits into a table."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _plain(value: int | None) -> str:
    return "" if value is None else str(value)
