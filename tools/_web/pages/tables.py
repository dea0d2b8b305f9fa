"""The pages that are a table: ledgers, entities, replays, sessions, retention, counters, errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Request, Response

from aerotape.client.ledger.requests import LedgerInfo
from aerotape.clients import ArchiveClient
from aerotape.codecs.entry import Entry
from aerotape.counter_keys import CounterType, key_fields
from aerotape.entity.topic import topics_of
from aerotape.errors import AerotapeError
from aerotape.formatting import utf8_text
from aerotape.qualified_id import QualifiedId
from aerotape.tools._cli.output import as_row
from aerotape.tools._entity.read import event_text
from aerotape.tools._ledger._common import info_row
from aerotape.tools._web.observed import ObservedArchive, lag
from aerotape.tools._web.pages.formats import time_of
from aerotape.tools._web.rest.answers import MAX_ANSWER
from aerotape.tools._web.rest.entities import read_journal
from aerotape.tools._web.rest.ledgers import unsigned
from aerotape.tools._web.rest.retention import Retention
from aerotape.tools._web.session import ControlSession

PAGE_ROWS: Final = 100
MAX_TEXT: Final = 4_096
"""The most characters or bytes of one text in a table."""
_MAX_TABLE_ROWS: Final = 1_000
_LEDGERS: Final = 50
_ENTRIES: Final = 50


class Link(NamedTuple):
    """A value that leads to another page.

    Attributes:
        value: what is shown.
        path: of the page.
    """

    value: str | int
    path: str


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
    def ledgers(request: Request, scope: str = "0", after: str = "") -> Response:
        problem, note, rows = "", "", []
        try:
            scope_id = unsigned("scope", scope)
            begin = unsigned("after", after) + 1 if after else 0

            def read(client: ArchiveClient) -> list[LedgerInfo]:
                ids = [each.id for each in client.list_ledgers(scope_id, begin, _LEDGERS)]
                return [client.ledger_info(each) for each in ids]  # these have LAP and LAC

            found = session.run(read)
            rows = [
                (
                    Link(str(info.id.ledger_id), f"/ledgers/{scope_id}/{info.id.ledger_id}"),
                    info.type,
                    info.state,
                    "yes" if info.has_writer else "no",
                    _plain(info.last_add_pushed),
                    _plain(info.last_add_confirmed),
                    info.recorded_position - info.confirmed_position,
                    _mirrors(info),
                )
                for info in found
            ]
            if len(found) == _LEDGERS:
                note = f"to go on, enter {found[-1].id.ledger_id} as the one after which they begin"
        except AerotapeError as error:
            problem = str(error)
        columns = (
            *("Ledger:", "Type", "State", "Writer", "LAP:", "LAC:", "Unconfirmed:B"),
            "Mirrors connected",
        )
        form = [("Scope", "scope", scope), ("after", "after", after)]
        return _table(
            page, request, "/ledgers", "Ledgers", columns, rows, problem, form, note, live=True
        )

    @routes.get("/ledgers/{scope}/{ledger}")
    def ledger(request: Request, scope: str, ledger: str, entry: str = "") -> Response:
        problem, facts = "", []
        entries: list[Entry] = []
        try:
            id = QualifiedId(unsigned("scope", scope), unsigned("ledger", ledger))
            first = unsigned("entry", entry) if entry else None
            info, entries = session.run(lambda client: _entries(client, id, first))
            facts = list(as_row(info_row(info)).items())
        except AerotapeError as error:
            problem = str(error)
        return page(
            request,
            "ledger.html",
            "/ledgers",
            title=f"Ledger {ledger[:20]}",
            facts=[(name, value) for name, value in facts if name != "members"],
            members=next((value for name, value in facts if name == "members"), []),
            entries=[
                (each.entry_id, len(each.payload), shortened(utf8_text(each.payload, MAX_TEXT + 1)))
                for each in entries
            ],
            path=f"/ledgers/{scope}/{ledger}",
            entry=entry,
            problem=problem,
        )

    @routes.get("/entities")
    def entities(request: Request, topic: str = "", key: str = "") -> Response:
        form = [("Topic", "topic", topic), ("Entity", "key", key)]
        problem, note = "", ""
        rows: list[Any] = []
        columns: tuple[str, ...] = ("Number:", "Event")
        try:
            if topic:
                last, events = read_journal(session, topic, key, 1, PAGE_ROWS)
                note = f"last sequence number: {'none' if last is None else last}"
                rows = [(each.event.seq_nr, shortened(event_text(each))) for each in events]
            else:
                columns = ("Topic",)
                found = topics_of(observed.snapshot().recordings)
                rows = [_topic(each) for each in found]
        except AerotapeError as error:
            problem = str(error)
        except HTTPException as error:
            problem = error.detail
        return _table(
            page, request, "/entities", "Entities", columns, rows, problem, form, note
        )

    @routes.get("/replays")
    def replays(request: Request) -> Response:
        snapshot = observed.snapshot()
        ends = snapshot.ends()
        rows = [
            (
                Link(each.recording_id, f"/recordings/{each.recording_id}"),
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
        return _table(page, request, "/replays", "Replays", columns, rows, note=note, live=True)

    @routes.get("/retention")
    def plan(request: Request) -> Response:
        problem, note, rows = "", "", []
        try:
            found = retention.plan()
            rows = [
                (
                    Link(each.recording_id, f"/recordings/{each.recording_id}"),
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
        columns = ("Id:", "Client")
        return _table(
            page, request, "/sessions", "Sessions", columns, rows, note=note, live=True
        )

    @routes.get("/counters")
    def counters(request: Request) -> Response:
        snapshot = observed.snapshot()
        rows = [
            (each.counter_id, each.type_id, each.value, each.label)
            for each in (*snapshot.own_counters, *snapshot.counters)
        ]
        columns = ("Id:", "Type:", "Value:", "Label")
        return _table(page, request, "/counters", "Counters", columns, rows, live=True)

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
        return _table(page, request, "/errors", "Errors", columns, rows, live=True)


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
    *,
    live: bool = False,
) -> Response:
    """Return a page with a table.

    The titles of columns of numbers end with a colon, of bytes with `:B`. The form has a label,
    name and value for each field. A live one is read again while it is shown.
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
        live=live,
    )


def shortened(text: str) -> str:
    """Return a text that fits into a table."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _topic(name: str) -> tuple[Link]:
    return (Link(name, f"/entities?{urlencode({'topic': name})}"),)


def _mirrors(info: LedgerInfo) -> str:
    """The number of connected mirrors, and of all; "" without mirrors."""
    if not info.mirrors:
        return ""
    if not info.members:
        return "not known here"
    return f"{sum(each.is_connected for each in info.members)} of {len(info.mirrors)}"


def _entries(
    client: ArchiveClient, ledger: QualifiedId, first: int | None
) -> tuple[LedgerInfo, list[Entry]]:
    """Return a ledger, and entries from one on; None: the newest."""
    info = client.ledger_info(ledger)
    last = info.last_add_confirmed
    if first is None:
        first = max(0, (-1 if last is None else last) + 1 - _ENTRIES)
    with client.open_ledger_read_only(ledger) as reader:
        found = reader.read(first, None, max_entries=_ENTRIES, max_bytes=MAX_ANSWER)
        return info, list(found)


def _plain(value: int | None) -> str:
    return "" if value is None else str(value)
