"""The asyncio client of an archive."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, Unpack

from aerotape.archive.client.client import ArchiveClient, connect
from aerotape.archive.client.connection import DEFAULT_KEEP_ALIVE_INTERVAL_NS, ConnectOptions
from aerotape.archive.client.executors.blocking import describe_as
from aerotape.archive.client.executors.event_loop import (
    AsyncClosing,
    Opening,
    asynchronous,
    asynchronous_pages,
)
from aerotape.archive.client.ledger.async_client_methods import AsyncLedgerMethods
from aerotape.archive.client.replay import opening
from aerotape.archive.client.replay.async_streams import AsyncMessages, AsyncReplay, AsyncSignals
from aerotape.archive.client.replay.signal_stream import await_signal
from aerotape.archive.client.replay.signals import signal_filter
from aerotape.archive.client.replay.stream import ReplayStream
from aerotape.archive.client.requests import (
    messages,
    queries,
    recordings,
    replays,
    replication,
    scopes,
    segments,
)
from aerotape.archive.client.requests.request import Steps
from aerotape.archive.client.session.client_properties import ClientProperties
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.context import Closing

if TYPE_CHECKING:
    from aerotape.archive.entity.async_entities import AsyncEntities
    from aerotape.archive.entity.entities import Entities

P = ParamSpec("P")
A = TypeVar("A", bound=AsyncClosing)
C = TypeVar("C", bound=Closing)


def connect_async(**options: Unpack[ConnectOptions]) -> Opening[AsyncArchiveClient]:
    """Connect to an archive from an event loop.

    >>> async with connect_async(aeron_dir=directory) as client:
    ...     async for recording in client.list_recordings():
    ...         print(recording)

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


def _wrapping(
    open_it: Callable[Concatenate[ArchiveClient, P], C],
    wrap: Callable[[C, AsyncArchiveClient], A],
    returns: str,
) -> Callable[Concatenate[AsyncArchiveClient, P], Opening[A]]:
    """Return a method that opens a resource of the blocking client, for use in the loop.

    Args:
        open_it: the method of the blocking client.
        wrap: creates the resource for use in the loop.
        returns: the name of its class.
    """

    def method(self: AsyncArchiveClient, /, *args: P.args, **kwargs: P.kwargs) -> Opening[A]:
        async def begin() -> A:
            opened = await _in_thread(lambda: open_it(self._client, *args, **kwargs))
            return wrap(opened, self)

        return Opening(begin)

    functools.update_wrapper(method, open_it)
    method.__signature__ = inspect.signature(open_it).replace(  # type: ignore[attr-defined]
        return_annotation=f"Opening[{returns}]"
    )
    return method


def _wrap_entities(entities: Entities, _: object) -> AsyncEntities:
    from aerotape.archive.entity.async_entities import AsyncEntities

    return AsyncEntities(entities)


def _replaying(
    request: Callable[P, Steps[ReplayStream]],
) -> Callable[Concatenate[AsyncArchiveClient, P], Opening[AsyncReplay]]:
    """Return a method that opens a replay, iterated in the loop."""

    def method(
        self: AsyncArchiveClient, /, *args: P.args, **kwargs: P.kwargs
    ) -> Opening[AsyncReplay]:
        kwargs["channel"] = kwargs.get("channel") or self._client._replay_channel
        steps = request(*args, **kwargs)

        async def open_it() -> AsyncReplay:
            return AsyncReplay(await self._run(steps), self)

        return Opening(open_it)

    describe_as(method, request, returns="Opening[AsyncReplay]")
    return method


class AsyncArchiveClient(AsyncLedgerMethods, ClientProperties, AsyncClosing):
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
        client._connecting = replace(client._connecting, keep_alive_interval_ns=idle_interval_ns)
        self._aeron = client.aeron

    # -- recordings ----------------------------------------------------------------------------

    start_recording = asynchronous(recordings.start_recording)
    extend_recording = asynchronous(recordings.extend_recording)
    stop_recording = asynchronous(recordings.stop_recording)
    try_stop_recording = asynchronous(recordings.try_stop_recording)
    stop_recording_session = asynchronous(recordings.stop_recording_session)
    stop_recording_subscription = asynchronous(recordings.stop_recording_subscription)
    try_stop_recording_subscription = asynchronous(recordings.try_stop_recording_subscription)
    stop_recording_by_identity = asynchronous(recordings.stop_recording_by_identity)
    truncate_recording = asynchronous(recordings.truncate_recording)
    purge_recording = asynchronous(recordings.purge_recording)
    update_channel = asynchronous(recordings.update_channel)
    add_recorded_publication = asynchronous(recordings.add_recorded_publication)
    add_recorded_exclusive_publication = asynchronous(recordings.add_recorded_exclusive_publication)

    # -- segments and replication --------------------------------------------------------------

    detach_segments = asynchronous(segments.detach_segments)
    delete_detached_segments = asynchronous(segments.delete_detached_segments)
    purge_segments = asynchronous(segments.purge_segments)
    attach_segments = asynchronous(segments.attach_segments)
    migrate_segments = asynchronous(segments.migrate_segments)

    replicate = asynchronous(replication.replicate)
    stop_replication = asynchronous(replication.stop_replication)
    try_stop_replication = asynchronous(replication.try_stop_replication)

    # -- queries -------------------------------------------------------------------------------

    list_recordings = asynchronous_pages(queries.list_recordings)
    list_recordings_for_uri = asynchronous_pages(queries.list_recordings_for_uri)
    list_recording = asynchronous(queries.list_recording)
    list_recording_subscriptions = asynchronous_pages(queries.list_recording_subscriptions)
    find_last_matching_recording = asynchronous(queries.find_last_matching_recording)
    start_position = asynchronous(queries.start_position)
    stop_position = asynchronous(queries.stop_position)
    recording_position = asynchronous(queries.recording_position)
    max_recorded_position = asynchronous(queries.max_recorded_position)
    get_archive_id = asynchronous(queries.get_archive_id)
    scopes = asynchronous(scopes.scopes)

    # -- replays -------------------------------------------------------------------------------

    start_replay = asynchronous(replays.start_replay)
    start_bounded_replay = asynchronous(replays.start_bounded_replay)
    stop_replay = asynchronous(replays.stop_replay)
    stop_all_replays = asynchronous(replays.stop_all_replays)

    replay = _replaying(opening.replay)
    replay_merge = _wrapping(ArchiveClient.replay_merge, AsyncMessages, "AsyncMessages")
    persistent_subscription = _wrapping(
        ArchiveClient.persistent_subscription, AsyncMessages, "AsyncMessages"
    )

    # -- journals of entities ------------------------------------------------------------------

    entities = _wrapping(ArchiveClient.entities, _wrap_entities, "AsyncEntities")

    # -- asynchronous messages -----------------------------------------------------------------

    poll_for_errors = asynchronous(messages.poll_for_errors)
    poll_for_recording_signals = asynchronous(messages.poll_for_recording_signals)

    def signals(
        self,
        *signals: RecordingSignal,
        recording_id: int | None = None,
        correlation_id: int | None = None,
        timeout_ns: int | None = None,
    ) -> AsyncSignals:
        """Return an asynchronous iterator over the signals that arrive from now on.

        Arguments and errors as of `ArchiveClient.signals`.
        """
        return AsyncSignals(self, signal_filter(signals, recording_id, correlation_id), timeout_ns)

    await_signal = asynchronous(await_signal)

    # -- the session ---------------------------------------------------------------------------

    ping = asynchronous(queries.ping)
    keep_alive = asynchronous(messages.keep_alive)

    async def close(self) -> None:
        """End the session; requests that are still awaited raise ClosedError. Idempotent."""
        await asyncio.shield(self._loop.run_in_executor(None, self._close))

    def _close(self) -> None:
        self._reader.close()
        self._client.close()
