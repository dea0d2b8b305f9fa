"""The pages that are a table: ledgers, replays, sessions, retention, counters, errors."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from fastapi import APIRouter, Request, Response

from aerotape.channel_uri import ChannelUri, ChannelUriError, alias_of
from aerotape.client.ledger.requests import LedgerInfo
from aerotape.clients import ArchiveClient
from aerotape.counter_keys import CounterType
from aerotape.errors import AerotapeError
from aerotape.formatting import utf8_text
from aerotape.qualified_id import QualifiedId
from aerotape.tools._cli.output import as_row
from aerotape.tools._ledger._common import info_row
from aerotape.tools._web.error_text import without_directories
from aerotape.tools._web.observed import ObservedArchive, lag
from aerotape.tools._web.pages.formats import MAX_TEXT, brief, shortened, time_of
from aerotape.tools._web.rest.answers import MAX_ANSWER
from aerotape.tools._web.rest.ledgers import unsigned
from aerotape.tools._web.rest.retention import Retention
from aerotape.tools._web.session import ControlSession
from aerotape.tools._web.sessions import Session

PAGE_ROWS: Final = 100
_MAX_TABLE_ROWS: Final = 1_000
_BY_IPC: Final = "this machine, by IPC"
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


class Links(NamedTuple):
    """Several values of a cell that lead to other pages.

    Attributes:
        links: the values.
    """

    links: Sequence[Link]


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
        session: for ledgers.
        retention: plans what a policy deletes.
    """

    @routes.get("/ledgers")
    def ledgers(request: Request, scope: str = "0", after: str = "") -> Response:
        problem, note, rows = None, "", []
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
            problem = error
        columns = (
            *("Ledger:#", "Type", "State", "Writer", "LAP:", "LAC:", "Unconfirmed:B"),
            "Mirrors connected",
        )
        form = [("Scope", "scope", scope), ("after", "after", after)]
        return table(
            page, request, "/ledgers", "Ledgers", columns, rows, problem, form, note, live=True
        )

    @routes.get("/ledgers/{scope}/{ledger}")
    def ledger(request: Request, scope: str, ledger: str, entry: str = "") -> Response:
        problem, facts = None, []
        entries: list[tuple[int, int, str]] = []
        try:
            id = QualifiedId(unsigned("scope", scope), unsigned("ledger", ledger))
            first = unsigned("entry", entry) if entry else None
            info, entries = session.run(lambda client: _entries(client, id, first))
            facts = list(as_row(info_row(info)).items())
        except AerotapeError as error:
            problem = error
        return page(
            request,
            "ledger.html",
            "/ledgers",
            title=f"Ledger {ledger[:20]}",
            facts=[(name, title_of(name), value) for name, value in facts if name != "members"],
            members=next((value for name, value in facts if name == "members"), []),
            entries=entries,
            path=f"/ledgers/{scope}/{ledger}",
            entry=entry,
            problem=problem,
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
        columns = ("Recording:#", "Channel", "Stream:#", "Session:#", "Position:", "Lag:B")
        return table(page, request, "/replays", "Replays", columns, rows, note=note, live=True)

    @routes.get("/retention")
    def plan(request: Request) -> Response:
        problem, note, rows = None, "", []
        name, command, size, segments = "", "", 0, 0
        try:
            found = retention.named()
            name = found.name
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
            size = sum(each.size_bytes for each in found.removals)
            segments = sum(each.segments for each in found.removals)
            notes = [str(each) for each in found.kept]
            if found.kept_left:
                notes.append(f"{found.kept_left} more recordings stay, too")
            if found.left:
                notes.append(
                    f"{found.left} more recordings would be deleted: they are shown once these are"
                )
            note = "; ".join(notes)
            words = ["aerotape", "retain", str(observed.directory), str(retention.policy)]
            command = shlex.join(words) if retention.refusal(request) else ""
        except AerotapeError as error:
            if retention.policy is None:
                note = str(error)
            else:
                problem = error
        columns = ("Recording:#", "Deleted before:", "Segment files:", "Size:B", "Reasons")
        return table(
            page,
            request,
            "/retention",
            "Retention: what would be deleted now",
            columns,
            rows,
            problem,
            note=note,
            template="retention.html",
            plan=name,
            size=size,
            segments=segments,
            command=command,
        )

    @routes.get("/sessions")
    def sessions(request: Request) -> Response:
        snapshot = observed.snapshot()
        used = {id for each in snapshot.sessions for id in (*each.replays, *each.published)}
        names = {
            each.recording_id: brief(alias_of(each.original_channel))
            for each in snapshot.recordings
            if each.recording_id in used
        }

        def links(recordings: Iterable[int]) -> Links:
            return Links(
                [
                    Link(f"{id} {names.get(id) or ''}".rstrip(), f"/recordings/{id}")
                    for id in recordings
                ]
            )

        rows = [
            (
                shortened(" ".join(filter(None, (each.client, each.version)))) or "without a name",
                _source(each),
                f"{'before ' if each.is_older else ''}{time_of(each.first_seen_ms)}",
                _responses(each.response_channel),
                links(each.replays) if each.is_local else "not known here",
                links(each.published) if each.is_local else "not known here",
                each.control_session_id,
            )
            for each in snapshot.sessions
        ]
        found = {
            name: snapshot.value(counter) or 0
            for name, counter in (
                ("connected", CounterType.CONTROL_SESSIONS),
                ("recordings in progress", CounterType.RECORDING_SESSIONS),
                ("replays in progress", CounterType.REPLAY_SESSIONS),
            )
        }
        note = ", ".join(f"{name}: {count}" for name, count in found.items())
        columns = (
            *("Client", "From", "Since", "Responses to", "Reads replays of", "Publishes"),
            "Session id:#",
        )
        return table(
            page, request, "/sessions", "Sessions", columns, rows, note=note, live=True
        )

    @routes.get("/counters")
    def counters(request: Request) -> Response:
        snapshot = observed.snapshot()
        rows = [
            (each.counter_id, each.type_id, each.value, each.label)
            for each in (*snapshot.own_counters, *snapshot.counters)
        ]
        columns = ("Id:#", "Type:#", "Value:", "Label")
        return table(page, request, "/counters", "Counters", columns, rows, live=True)

    @routes.get("/errors")
    def errors(request: Request) -> Response:
        snapshot = observed.snapshot()
        rows = [
            (
                source,
                each.count,
                time_of(each.first_timestamp_ms),
                time_of(each.last_timestamp_ms),
                without_directories(shortened(each.text)),
            )
            for source, found in snapshot.error_logs()
            for each in found
        ]
        columns = ("Source", "Count:", "First:", "Last:", "Error")
        return table(page, request, "/errors", "Errors", columns, rows, live=True)


def table(
    page: Callable[..., Response],
    request: Request,
    path: str,
    title: str,
    columns: tuple[str, ...],
    rows: list[Any],
    problem: AerotapeError | None = None,
    form: Sequence[tuple[str, str, str]] = (),
    note: str = "",
    *,
    live: bool = False,
    template: str = "table.html",
    **context: Any,
) -> Response:
    """Return a page with a table.

    The titles of columns of numbers end with a colon, of bytes with `:B`, of ids with `:#`. The
    form has a label, name and value for each field. A live one is read again while it is shown.
    A template that extends that of tables may have a context of its own.
    """
    kinds = {"": "text", ":": "number", ":B": "bytes", ":#": "id"}
    parts = [name.partition(":") for name in columns]
    shown = [{"title": title, "kind": kinds[colon + kind]} for title, colon, kind in parts]
    if len(rows) > _MAX_TABLE_ROWS:
        note = "; ".join(filter(None, (note, f"the first {_MAX_TABLE_ROWS} of {len(rows)} rows")))
        rows = rows[:_MAX_TABLE_ROWS]
    return page(
        request,
        template,
        path,
        title=title,
        columns=shown,
        rows=rows,
        problem=problem,
        form=form,
        note=note,
        live=live,
        **context,
    )


def title_of(field: str) -> str:
    """Return the name of a field of REST in words, without its unit."""
    name = field.removesuffix("_ms").removesuffix("_bytes").removeprefix("has_")
    return name.replace("_", " ").capitalize()


def _source(session: Session) -> str:
    """Return from where a client connects, in words."""
    if session.source == "aeron:ipc":
        return _BY_IPC
    where = session.source or "unknown"
    return f"{where}, this media driver" if session.is_local else where


def _responses(channel: str) -> str:
    """Return where the responses of a session are sent, in words."""
    try:
        found = ChannelUri.parse(channel)
    except ChannelUriError:  # "" while the session connects
        return channel or "not connected yet"
    if found.media == "ipc":
        return _BY_IPC
    where = found.get("endpoint") or found.get("control")
    if found.get("control-mode") == "response":
        return f"the connection of its requests, {where}"
    return f"{where}, by UDP"


def _mirrors(info: LedgerInfo) -> str:
    """The number of connected mirrors, and of all; "" without mirrors."""
    if not info.mirrors:
        return ""
    if not info.members:
        return "not known here"
    return f"{sum(each.is_connected for each in info.members)} of {len(info.mirrors)}"


def _entries(
    client: ArchiveClient, ledger: QualifiedId, first: int | None
) -> tuple[LedgerInfo, list[tuple[int, int, str]]]:
    """Return a ledger, and the id, length and begin of entries from one on; None: the newest."""
    info = client.ledger_info(ledger)
    last = info.last_add_confirmed
    if first is None:
        first = max(0, (-1 if last is None else last) + 1 - _ENTRIES)
    with client.open_ledger_read_only(ledger) as reader:
        found = reader.read(first, None, max_entries=_ENTRIES, max_bytes=MAX_ANSWER)
        return info, [
            (each.entry_id, len(each.payload), shortened(utf8_text(each.payload, MAX_TEXT + 1)))
            for each in found
        ]


def _plain(value: int | None) -> str:
    return "" if value is None else str(value)
