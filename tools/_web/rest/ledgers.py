"""`/api/v1/ledger`: ledgers, with the paths and parameters of BookKeeper's HTTP server.

Every path takes `ledger_id` with `ledger_scope_id`, or `ledger_qualified_name`; listing without a
scope lists scope 0. Ids are strings: they exceed the integers of JSON readers. Paths may end with a
slash, as in BookKeeper's documentation. Metadata is what `aerotape ledger status` has, and an
unknown ledger is 404, where a bookie answers 500, or 200 to its deletion.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from aerotape.clients import ArchiveClient
from aerotape.codecs.entry import Entry
from aerotape.codecs.generated import ledger_control
from aerotape.errors import ConfigurationError
from aerotape.qualified_id import QualifiedId
from aerotape.tools._cli.output import as_row
from aerotape.tools._ledger._common import info_row
from aerotape.tools._web.rest.answers import MAX_ANSWER, answer, row_text, too_large
from aerotape.tools._web.rest.changes import Changes
from aerotape.tools._web.rest.reading import Format, encoded
from aerotape.tools._web.rest.recordings import MAX_INT64, MAX_ROWS, Limit
from aerotape.tools._web.session import ControlSession


def named_ledger(
    ledger_id: Annotated[str | None, Query(description="unsigned, decimal")] = None,
    ledger_scope_id: Annotated[str, Query(description="unsigned, decimal")] = "0",
    ledger_qualified_name: Annotated[str | None, Query(description="32 hex digits")] = None,
) -> QualifiedId:
    """Return the ledger that the parameters name (ConfigurationError, QualifiedIdError)."""
    if ledger_qualified_name is not None:
        return QualifiedId.parse(ledger_qualified_name)
    if ledger_id is None:
        raise ConfigurationError(
            "no ledger is named: give ledger_id or ledger_qualified_name", "ledger_id"
        )
    return QualifiedId(
        unsigned("ledger_scope_id", ledger_scope_id), unsigned("ledger_id", ledger_id)
    )


Ledger = Annotated[QualifiedId, Depends(named_ledger)]


def router(session: ControlSession, changes: Changes) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/api/v1/ledger", tags=["ledgers"])

    @routes.get("/list/", include_in_schema=False)
    @routes.get("/list", summary="The ids of a scope's ledgers, with print_metadata what is known")
    def listing(
        ledger_scope_id: str = "0",
        print_metadata: bool = False,
        after: Annotated[str | None, Query(description="last ledger id of a page")] = None,
        limit: Limit = MAX_ROWS,
    ) -> Response:
        scope_id = unsigned("ledger_scope_id", ledger_scope_id)
        begin = 0 if after is None else unsigned("after", after) + 1
        found = session.run(lambda client: list(client.list_ledgers(scope_id, begin, limit)))
        rows = (
            f'"{info.id.ledger_id}":{row_text(as_row(info_row(info)) if print_metadata else None)}'
            for info in found
        )
        return answer(rows, "{", "}")

    @routes.get("/metadata/", include_in_schema=False)
    @routes.get("/metadata", summary="What is known of a ledger")
    def metadata(ledger: Ledger) -> dict[str, Any]:
        info = session.run(lambda client: client.ledger_info(ledger))
        return {str(ledger.ledger_id): as_row(info_row(info))}

    @routes.get("/read/", include_in_schema=False)
    @routes.get("/read", summary="Entries by id; at most 1,000, and 2 MiB")
    def read(
        ledger: Ledger,
        start_entry_id: Annotated[int, Query(ge=0, le=MAX_INT64)] = 0,
        end_entry_id: Annotated[int | None, Query(ge=0, le=MAX_INT64)] = None,
        format: Format = "text",
    ) -> Response:
        def entries(client: ArchiveClient) -> Response:
            with client.open_ledger_read_only(ledger) as reader:
                found = reader.read(
                    start_entry_id, end_entry_id, max_entries=MAX_ROWS, max_bytes=MAX_ANSWER
                )
                return _answered(list(found), format)

        # One at a time has entries in memory: they may be much longer than an answer.
        return session.run(entries)

    @routes.delete("/delete/", include_in_schema=False)
    @routes.delete("/delete", summary="Delete a ledger with its recording")
    def delete(ledger: Ledger, request: Request) -> str:
        changes.request(
            request,
            ledger_control.DeleteLedgerRequest.TEMPLATE_ID,
            lambda client: client.delete_ledger(ledger),
            ledger_control.SCHEMA_ID,
        )
        return f"Deleted ledger: {ledger.ledger_id}"

    return routes


def _answered(found: list[Entry], format: Format) -> Response:
    """Return entries (HTTPException: the first one does not fit)."""
    length = len(found[0].payload) if found else 0
    if length > MAX_ANSWER:
        found.clear()  # the error's traceback has this frame
        raise too_large(length)
    rows = (f'"{each.entry_id}":{row_text(encoded(each.payload, format))}' for each in found)
    return answer(rows, "{", "}")


def unsigned(name: str, text: str) -> int:
    """Parse an unsigned 64-bit number (ConfigurationError)."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= 20
    if not is_number or int(text) >= 1 << 64:
        raise ConfigurationError(f"{name}={text[:40]!r}: expected an unsigned 64-bit number", name)
    return int(text)
