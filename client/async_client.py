"""The asyncio client of an archive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from aerotape.client.asynchronous.ledgers import AsyncLedgerMethods
from aerotape.client.asynchronous.queries import AsyncQueryMethods
from aerotape.client.asynchronous.recordings import AsyncRecordingMethods
from aerotape.client.asynchronous.segments import AsyncSegmentMethods
from aerotape.client.asynchronous.streams import AsyncStreamMethods
from aerotape.client.client import Client, ClientProperties
from aerotape.context import AsyncClosing, Closing

C = TypeVar("C", bound=Closing)


async def open_in_thread(open_it: Callable[[], C]) -> C:
    """Open a resource in a thread; on cancellation, close it once it is open."""
    opening = asyncio.get_running_loop().run_in_executor(None, open_it)
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_unwanted)
        raise


def _close_unwanted(opening: asyncio.Future[C]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


class AsyncClient(
    AsyncRecordingMethods,
    AsyncSegmentMethods,
    AsyncQueryMethods,
    AsyncStreamMethods,
    AsyncLedgerMethods,
    ClientProperties,
    AsyncClosing,
):
    """As `Client`, with coroutines; belongs to one event loop."""

    def __init__(self, client: Client, idle_interval_ns: int) -> None:
        """Create an asyncio client of an open one."""
        super().__init__(client._session, idle_interval_ns)
        self._client = client
        # For the sessions of persistent subscriptions; the client's own is read by this object.
        self._connecting = replace(client._connecting, keep_alive_interval_ns=idle_interval_ns)
        self._aeron = client.aeron
        self._replay_channel = client._replay_channel

    async def close(self) -> None:
        """End the session; requests that are still awaited raise ClosedError. Idempotent."""
        await asyncio.shield(self._loop.run_in_executor(None, self._close))

    def _close(self) -> None:
        self._reader.close()
        self._client.close()
