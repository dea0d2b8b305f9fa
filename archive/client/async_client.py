"""The asyncio client of an archive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar, Unpack

from aerotape.archive.client.asynchronous.ledgers import AsyncLedgerMethods
from aerotape.archive.client.asynchronous.queries import AsyncQueryMethods
from aerotape.archive.client.asynchronous.recordings import AsyncRecordingMethods
from aerotape.archive.client.asynchronous.segments import AsyncSegmentMethods
from aerotape.archive.client.asynchronous.streams import AsyncStreamMethods
from aerotape.archive.client.client import ArchiveClient, ClientProperties, connect
from aerotape.archive.client.connection import (
    DEFAULT_KEEP_ALIVE_INTERVAL_NS,
    ConnectOptions,
    takes_connect_options,
)
from aerotape.context import AsyncClosing, Closing, Opening

if TYPE_CHECKING:
    from aerotape.archive.entity.async_entities import AsyncEntities
    from aerotape.archive.entity.records import EntityOptions
    from aerotape.archive.entity.stores.store import Store

C = TypeVar("C", bound=Closing)


@takes_connect_options
def connect_async(**options: Unpack[ConnectOptions]) -> Opening[AsyncArchiveClient]:
    """Connect to an archive from an event loop.

    >>> async with aerotape.connect_async(aeron_dir=aeron_dir) as client:
    ...     async for recording in client.list_recordings():
    ...         print(recording.recording_id, recording.original_channel)
    0 aeron:ipc

    or ``client = await connect_async(…)``, and later ``await client.close()``. A thread connects;
    if the task is cancelled in the meantime, the connection is closed again.

    Args:
        options: as those of `connect`; `keep_alive_interval_ns` cannot be 0 here.

    Raises:
        AerotapeError: as `connect`.
    """
    interval_ns = options.get("keep_alive_interval_ns") or DEFAULT_KEEP_ALIVE_INTERVAL_NS
    options["keep_alive_interval_ns"] = 0  # the asynchronous client reads by itself

    async def open_it() -> AsyncArchiveClient:
        return AsyncArchiveClient(await _in_thread(partial(connect, **options)), interval_ns)

    return Opening(open_it)


async def _in_thread(open_it: Callable[[], C]) -> C:
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


class AsyncArchiveClient(
    AsyncRecordingMethods,
    AsyncSegmentMethods,
    AsyncQueryMethods,
    AsyncStreamMethods,
    AsyncLedgerMethods,
    ClientProperties,
    AsyncClosing,
):
    """A connection to an archive. Created by `connect_async`; belongs to one event loop.

    It has the requests of `ArchiveClient`, with the same arguments, results and errors. Any number
    of them may be awaited at the same time. When a task is cancelled while it awaits one, the
    session and other requests continue; the archive may still perform the cancelled request. A
    replay that was being opened is stopped again.
    """

    def __init__(self, client: ArchiveClient, idle_interval_ns: int) -> None:
        """Create an asyncio client of an open one. Use `connect_async`."""
        super().__init__(client._session, idle_interval_ns)
        self._client = client
        # For the sessions of persistent subscriptions; the client's own is read by this object.
        self._connecting = replace(client._connecting, keep_alive_interval_ns=idle_interval_ns)
        self._aeron = client.aeron
        self._replay_channel = client._replay_channel

    def entities(
        self,
        topic: str,
        partitions: int | None = None,
        store: Store | None = None,
        **options: Unpack[EntityOptions],
    ) -> Opening[AsyncEntities]:
        """Open a topic. Arguments and errors as of `ArchiveClient.entities`."""
        from aerotape.archive.entity.async_entities import AsyncEntities

        async def open_it() -> AsyncEntities:
            opened = partial(self._client.entities, topic, partitions, store, **options)
            return AsyncEntities(await _in_thread(opened))

        return Opening(open_it)

    async def close(self) -> None:
        """End the session; requests that are still awaited raise ClosedError. Idempotent."""
        await asyncio.shield(self._loop.run_in_executor(None, self._close))

    def _close(self) -> None:
        self._reader.close()
        self._client.close()
