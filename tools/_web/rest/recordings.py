"""`/api/v1/recordings`: what the archive directory has, read without the archive."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import closing
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request, Response

from aerotape.client.arguments import SourceLocationName
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import SegmentError
from aerotape.replay.offline.selection import Selection
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.rest.answers import answer, building, download, row_text
from aerotape.tools._web.rest.changes import Changes
from aerotape.tools._web.rest.exports import MAX_EXPORTED, Kind, exported
from aerotape.tools._web.rest.reading import (
    MAX_BINS,
    MAX_PAYLOAD,
    Format,
    Reading,
    Removal,
    Sort,
    listed,
)
from aerotape.tools._web.rest.selecting import (
    OF_MESSAGES,
    OF_RECORDINGS,
    OF_SEARCHES,
    selection_of,
)
from aerotape.tools._web.suspects import brief

MAX_ROWS: Final = 1_000
_DEFAULT_ROWS: Final = 100
Limit = Annotated[int, Query(ge=1, le=MAX_ROWS)]
MAX_INT64: Final = (1 << 63) - 1
OfRecordings = Annotated[Selection, Depends(selection_of(OF_RECORDINGS))]
OfMessages = Annotated[Selection, Depends(selection_of(OF_MESSAGES, MAX_ROWS))]
OfSearches = Annotated[Selection, Depends(selection_of(OF_SEARCHES))]
OfExports = Annotated[Selection, Depends(selection_of(OF_MESSAGES, MAX_EXPORTED))]


def router(observed: ObservedArchive, reading: Reading, changes: Changes) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/api/v1/recordings", tags=["recordings"])

    @routes.get("", summary="List recordings, a page at a time")
    def recordings(
        selection: OfRecordings,
        sort: Sort = "recording_id",
        descending: bool = False,
        after: Annotated[int | None, Query(description="last recording id of a page")] = None,
        limit: Limit = 100,
    ) -> Response:
        total, rows = listed(
            observed.snapshot(),
            selection,
            sort=sort,
            descending=descending,
            after=after,
            limit=limit,
        )
        return answer(map(row_text, rows), f'{{"total":{total},"recordings":[', "]}")

    @routes.get("/{recording_id}", summary="A recording")
    def recording(recording_id: int) -> dict[str, Any]:
        return reading.recording(recording_id)

    @routes.get("/{recording_id}/segments", summary="Its segment files")
    def segments(
        recording_id: int,
        position: Annotated[
            int | None, Query(ge=0, le=MAX_INT64, description="default: the start position")
        ] = None,
    ) -> Response:
        with building():
            return answer(map(row_text, reading.segments(reading.opened(recording_id), position)))

    @routes.get("/{recording_id}/damage", summary="Why it is suspect; what verification found")
    def damage(recording_id: int) -> Response:
        with building():
            found = reading.damage(recording_id)
        about = {
            "notes_total": found.notes.total,
            "verified_ms": found.verified_ms,
            "found": [dataclasses.asdict(note) for note in found.found],
        }
        rows = (row_text(dataclasses.asdict(note)) for note in found.notes.first)
        return answer(rows, '{"notes":[', f"],{row_text(about)[1:]}")

    @routes.post("/{recording_id}/accept-damage", summary="Accept its damage: end the mark")
    def accept_damage(recording_id: int, request: Request) -> Response:
        accepted = changes.accept_damage(request, recording_id)
        about = {"recording_id": recording_id, "accepted_total": len(accepted)}
        rows = (row_text(dataclasses.asdict(note)) for note in brief(accepted))
        return answer(rows, f'{row_text(about)[:-1]},"accepted":[', "]}")

    @routes.get("/{recording_id}/rates", summary="Bytes a second over time, of its time index")
    def rates(
        recording_id: int,
        bins: Annotated[int, Query(ge=1, le=MAX_BINS)] = 200,
        from_ns: Annotated[int | None, Query(alias="from", description="epoch ns")] = None,
        to_ns: Annotated[int | None, Query(alias="to", description="epoch ns")] = None,
    ) -> list[dict[str, Any]]:
        return reading.rates(reading.opened(recording_id), bins, from_ns, to_ns)

    @routes.get(
        "/{recording_id}/statistics", summary="Lengths of messages, and gaps, of at most 64 MiB"
    )
    def statistics(
        recording_id: int,
        position: Annotated[
            int | None, Query(ge=0, le=MAX_INT64, description="default: of the newest 64 MiB")
        ] = None,
        bins: Annotated[int, Query(ge=0, le=MAX_BINS)] = 0,
    ) -> dict[str, Any]:
        return reading.statistics(reading.opened(recording_id), position, bins)

    @routes.get("/{recording_id}/messages", summary="Messages from a position on")
    def messages(
        recording_id: int,
        selection: OfMessages,
        limit: Annotated[
            int | None, Query(ge=1, le=MAX_ROWS, description="default: last, first or 100")
        ] = None,
        format: Format = "text",
        schema: Annotated[str | None, Query(description="name of one of --schema")] = None,
        max_payload: Annotated[
            int, Query(ge=1, le=MAX_PAYLOAD, description="bytes of each that are shown")
        ] = MAX_PAYLOAD,
    ) -> Response:
        with building(), closing(
            reading.messages(
                reading.opened(recording_id),
                selection,
                limit or selection.last or selection.first or _DEFAULT_ROWS,
                format,
                schema,
                max_payload=max_payload,
            )
        ) as rows:
            return answer(map(row_text, _up_to_damage(rows)))

    @routes.get("/{recording_id}/payload", summary="The payload of a message, whole, as a file")
    def payload(
        recording_id: int, position: Annotated[int, Query(ge=0, le=MAX_INT64)]
    ) -> Response:
        with building():
            length, parts = reading.payload(reading.opened(recording_id), position)
            return download(parts, f"recording-{recording_id}-{position}.bin", length)

    @routes.get("/{recording_id}/search", summary="Messages that have a text, a part at a time")
    def search(
        recording_id: int,
        text: Annotated[str, Query(min_length=1, max_length=1_000)],
        selection: OfSearches,
        limit: Limit = _DEFAULT_ROWS,
        format: Format = "text",
        schema: Annotated[str | None, Query(description="name of one of --schema")] = None,
        max_payload: Annotated[
            int, Query(ge=1, le=MAX_PAYLOAD, description="bytes of each that are shown")
        ] = MAX_PAYLOAD,
    ) -> Response:
        with building():
            found = reading.search(
                reading.opened(recording_id),
                selection,
                text,
                limit,
                format,
                schema,
                max_payload=max_payload,
            )
            how_far = {
                name: getattr(found, name)
                for name in ("from_position", "to_position", "end_position")
            }
            end = f"],{row_text(how_far)[1:]}"
            return answer(map(row_text, found.messages), '{"messages":[', end)

    @routes.get("/{recording_id}/export", summary="Messages as a file: JSON lines, CSV, Parquet")
    def export(
        recording_id: int,
        kind: Annotated[Kind, Query(alias="as")],
        selection: OfExports,
        limit: Annotated[int, Query(ge=1, le=MAX_EXPORTED)] = MAX_EXPORTED,
        format: Format = "text",
        schema: Annotated[str | None, Query(description="name of one of --schema")] = None,
    ) -> Response:
        found = reading.opened(recording_id)
        rows = reading.messages(found, selection, limit, format, schema)
        with building(), closing(rows):
            return exported(reading, found, _up_to_damage(rows), kind, schema)

    @routes.post("", summary="Record each stream of a channel and stream id, now or later")
    def start(
        request: Request,
        channel: str,
        stream_id: int,
        source: SourceLocationName = "local",
        auto_stop: bool = False,
    ) -> dict[str, Any]:
        subscription_id = changes.request(
            request,
            codecs.StartRecordingRequest2.TEMPLATE_ID,
            lambda client: client.start_recording(channel, stream_id, source, auto_stop=auto_stop),
        )
        return {"subscription_id": subscription_id}

    @routes.post("/{recording_id}/stop", summary="Stop a recording in progress")
    def stop(recording_id: int, request: Request) -> dict[str, Any]:
        changed = changes.request(
            request,
            codecs.StopRecordingByIdentityRequest.TEMPLATE_ID,
            lambda client: client.stop_recording_by_identity(recording_id),
        )
        return {"recording_id": recording_id, "stopped": changed}

    @routes.post("/{recording_id}/truncate", summary="Truncate a stopped recording")
    def truncate(recording_id: int, position: int, request: Request) -> dict[str, Any]:
        deleted = changes.request(
            request,
            codecs.TruncateRecordingRequest.TEMPLATE_ID,
            lambda client: client.truncate_recording(recording_id, position),
        )
        return {"recording_id": recording_id, "segment_files_deleted": deleted}

    @routes.post("/{recording_id}/purge", summary="Delete the segment files before a position")
    def purge_segments(recording_id: int, position: int, request: Request) -> dict[str, Any]:
        deleted = changes.request(
            request,
            codecs.PurgeSegmentsRequest.TEMPLATE_ID,
            lambda client: client.purge_segments(recording_id, position),
        )
        return {"recording_id": recording_id, "segment_files_deleted": deleted}

    @routes.get("/{recording_id}/removal", summary="What a change would delete")
    def removal(
        recording_id: int,
        action: Removal,
        position: Annotated[int | None, Query(ge=0, le=MAX_INT64)] = None,
    ) -> dict[str, int]:
        return reading.removal(reading.opened(recording_id), action, position)

    @routes.delete("/{recording_id}", summary="Delete a stopped recording with its files")
    def purge(recording_id: int, request: Request) -> dict[str, Any]:
        deleted = changes.request(
            request,
            codecs.PurgeRecordingRequest.TEMPLATE_ID,
            lambda client: client.purge_recording(recording_id),
        )
        return {"recording_id": recording_id, "segment_files_deleted": deleted}

    return routes


def _up_to_damage(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Iterate over messages up to a damaged place, which is an error only if it is the first."""
    is_first = True
    try:
        for row in rows:
            yield row
            is_first = False
    except SegmentError:
        if is_first:
            raise
