"""The pages of entities: topics, the keys of one, and the events and the snapshot of a key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from aerotape.codecs.entity.actions import Event
from aerotape.entity.records import EventRecord
from aerotape.errors import AerotapeError
from aerotape.formatting import utf8_text
from aerotape.tools._entity.read import snapshot_event
from aerotape.tools._web.journals import Journal, Journals
from aerotape.tools._web.pages.formats import MAX_TEXT, shortened
from aerotape.tools._web.pages.tables import Link, table
from aerotape.tools._web.rest.answers import MAX_ANSWER, building
from aerotape.tools._web.rest.entities import MAX_TAG
from aerotape.tools._web.rest.recordings import MAX_INT64
from aerotape.tools._web.topics import Keys, Topics, parse_place

_KEYS: Final = 100
_EVENTS: Final = 50


def add_entities(
    routes: APIRouter, page: Callable[..., Response], journals: Journals, topics: Topics
) -> None:
    """Add the routes.

    Args:
        routes: receives them.
        page: returns a page of a template.
        journals: reads journals.
        topics: reads topics and their keys.
    """

    @routes.get("/entities")
    def listing(request: Request) -> Response:
        rows = [
            (
                Link(each["topic"], f"/entities/{each['topic']}"),
                each["type"] or "",
                each["partitions"],
                each["recorded_bytes"],
                each["problem"],
            )
            for each in topics.listed()
        ]
        columns = ("Topic", "Type", "Partitions:", "Log:B", "Problem")
        return table(page, request, "/entities", "Entities: topics", columns, rows, live=True)

    @routes.get("/entities/{topic}")
    def keys(
        request: Request,
        topic: str,
        key: Annotated[str, Query(max_length=1_000)] = "",
        tag: Annotated[str, Query(max_length=MAX_TAG)] = "",
        before: str = "",
    ) -> Response:
        problem, found = None, Keys([], {}, 0, 0)
        try:
            with building():
                found = topics.keys(topic, key, tag, parse_place(before), _KEYS)
        except AerotapeError as error:
            problem = error
        query = {"key": key, "tag": tag, "before": found.place}
        return page(
            request,
            "topic.html",
            "/entities",
            topic=topic,
            key=key,
            tag=tag,
            problem=problem,
            found=found,
            rows=[
                {**each, "journal": _journal(topic, each["key"]), "key": shortened(each["key"])}
                for each in found.keys
            ],
            journal=_journal(topic, key) if key else "",
            next="?" + urlencode({name: value for name, value in query.items() if value}),
        )

    @routes.get("/entities/{topic}/journal")
    def journal(
        request: Request,
        topic: str,
        key: str,
        from_seq_nr: Annotated[int | None, Query(alias="from", ge=1, le=MAX_INT64)] = None,
    ) -> Response:
        problem, shown = None, _shown(topic, key, Journal(None, None, []))
        try:
            with building():
                # Not the journal itself, whose payloads may be long.
                shown = _shown(
                    topic, key, journals.read(topic, key, from_seq_nr, _EVENTS, MAX_ANSWER)
                )
        except AerotapeError as error:
            problem = error
        return page(
            request,
            "journal.html",
            "/entities",
            topic=topic,
            key=shortened(key),
            whole_key=key,
            problem=problem,
            from_seq_nr="" if from_seq_nr is None else from_seq_nr,
            **shown,
        )


def _journal(topic: str, key: str) -> str:
    # Not a part of the path: browsers shorten `..` there.
    return f"/entities/{topic}/journal?{urlencode({'key': key})}"


def _shown(topic: str, key: str, found: Journal) -> dict[str, Any]:
    """Return what a page has of a journal."""
    snapshot = found.snapshot
    return {
        "last": found.last,
        "snapshot": None if snapshot is None else replace(snapshot, payload=None),
        "state": "" if snapshot is None else _payload(snapshot_event(snapshot)),
        "events": [_event(each) for each in found.events],
        "views": _views(topic, key, found),
    }


def _event(record: EventRecord) -> dict[str, Any]:
    return {
        "seq_nr": record.seq_nr,
        "timestamp_ms": record.timestamp_ms,
        "tags": ", ".join(record.event.tags),
        "origin": record.origin,
        "payload": _payload(record.event),
    }


def _payload(event: Event) -> str:
    """Return the begin of a payload as text."""
    if event.payload_type == "binary":
        return shortened((event.payload or b"")[:MAX_TEXT].hex())
    # A character has up to four bytes.
    begin = (event.payload or b"")[: 4 * (MAX_TEXT + 1)]
    return shortened(utf8_text(begin, MAX_TEXT + 1))


def _views(topic: str, key: str, found: Journal) -> dict[str, str]:
    """Return the paths of other parts of a journal; "" where there are none."""
    path = _journal(topic, key)
    if not found.events:
        return {"oldest": path + "&from=1", "older": "", "newer": "", "newest": path}
    first, last = found.events[0].seq_nr, found.events[-1].seq_nr
    has_newer = found.last is not None and last < found.last
    return {
        "oldest": path + "&from=1" if first > 1 else "",
        "older": f"{path}&from={max(first - _EVENTS, 1)}" if first > 1 else "",
        "newer": f"{path}&from={last + 1}" if has_newer else "",
        "newest": path if has_newer else "",
    }
