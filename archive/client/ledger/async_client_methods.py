"""The methods of the asyncio client for ledgers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

from aerotape.archive.client.executors.blocking import describe_as
from aerotape.archive.client.executors.event_loop import (
    AsyncRequests,
    Opening,
    asynchronous,
    asynchronous_pages,
)
from aerotape.archive.client.ledger import opening, requests
from aerotape.archive.client.ledger.async_handles import AsyncLedgerReader, AsyncLedgerWriter
from aerotape.archive.client.requests.request import Steps

if TYPE_CHECKING:
    from aerotape.archive.client.async_client import AsyncArchiveClient

P = ParamSpec("P")
S = TypeVar("S")
H = TypeVar("H", AsyncLedgerReader, AsyncLedgerWriter)


def _opening(
    request: Callable[P, Steps[S]], handle: Callable[[AsyncArchiveClient, S], H]
) -> Callable[Concatenate[AsyncLedgerMethods, P], Opening[H]]:
    """Return a method that opens a reader or a writer."""

    def method(self: AsyncLedgerMethods, /, *args: P.args, **kwargs: P.kwargs) -> Opening[H]:
        async def open_it() -> H:
            state = await self._run(request(*args, **kwargs))
            return handle(cast("AsyncArchiveClient", self), state)

        return Opening(open_it)

    describe_as(method, request, returns=f"Opening[{handle.__name__}]")
    return method


class AsyncLedgerMethods(AsyncRequests):
    """Those of `LedgerMethods`, with the same arguments and errors.

    What opens a writer or a reader is awaited, or entered with `async with`.
    """

    declare_ledger = asynchronous(opening.declare_ledger)
    create_ledger = _opening(opening.create_ledger, AsyncLedgerWriter)
    open_ledger_writer = _opening(opening.open_ledger_writer, AsyncLedgerWriter)
    open_ledger = _opening(opening.open_ledger, AsyncLedgerReader)
    open_ledger_read_only = _opening(opening.open_ledger_read_only, AsyncLedgerReader)
    sync_ledger = asynchronous(opening.sync_ledger)
    ledger_info = asynchronous(requests.ledger_info)
    list_ledgers = asynchronous_pages(requests.list_ledgers)
    delete_ledger = asynchronous(requests.delete_ledger)
    replace_mirror = asynchronous(requests.replace_mirror)
