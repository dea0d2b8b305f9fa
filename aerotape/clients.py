"""Connections to an archive: the client of recordings, and entities by which it is used.

The client and the library of entities do not know this module: it puts them together.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Unpack

from aerotape.client.async_client import AsyncClient, open_in_thread
from aerotape.client.client import Client, access
from aerotape.client.connection import (
    DEFAULT_KEEP_ALIVE_INTERVAL_NS,
    ConnectOptions,
    prepare,
    takes_connect_options,
)
from aerotape.context import Opening

if TYPE_CHECKING:
    from aerotape.entity.asynchronous.entities import AsyncEntities
    from aerotape.entity.blocking.entities import Entities
    from aerotape.entity.records import EntityOptions
    from aerotape.entity.stores.store import Store


class ArchiveClient(Client):
    """A connection to an archive. Created by `connect`; thread-safe.

    >>> subscription_id = client.start_recording("aeron:ipc", 2002)
    >>> publication = client.aeron.add_publication("aeron:ipc", 2002)
    >>> started = client.await_signal(aerotape.RecordingSignal.START)
    >>> end = publication.send(b"hello")
    >>> client.stop_recording("aeron:ipc", 2002)
    >>> stopped = client.await_signal(aerotape.RecordingSignal.STOP)
    >>> stopped.recording_id == started.recording_id
    True

    Every request raises `ConfigurationError` for invalid arguments, before anything is sent;
    `ArchiveError` with the archive's error code, of a subclass for most codes, when it is refused;
    `AeronTimeoutError` when there is no response in time; and `ClosedError` when the archive went
    away or the client is closed. Like the Java client, it does not reconnect by itself: a request
    in flight may or may not have been performed, and only the caller can decide whether to repeat
    it. Create a new client with `connect`.

    Positions and lengths are bytes, timestamps milliseconds since the epoch; -1 stands, as
    everywhere in Aeron, for a missing position or id.
    """

    def entities(
        self,
        topic: str,
        partitions: int | None = None,
        store: Store | None = None,
        **options: Unpack[EntityOptions],
    ) -> Entities:
        """Open a topic: journals of entities in recordings.

        >>> with client.entities("orders") as orders:
        ...     orders.append("order-7", [Event(1, b'{"placed": true}', "json")])
        ...     for record in orders.read("order-7"):
        ...         print(record.seq_nr, record.event.payload)

        Args:
            topic: a name of letters, digits, ``.``, ``_`` and ``-``.
            partitions: the number of recordings. Default: as the topic has, 1 for a new one.
            store: the store that a replicator writes, to read what is replicated from. Default:
                none; journals are then read from the recordings alone.
            options: see `EntityOptions`.

        Raises:
            ConfigurationError: an argument is invalid, or the topic has other partitions.
            EntityError: the topic's recordings are ambiguous.
        """
        from aerotape.entity.blocking.entities import Entities
        from aerotape.entity.log.topic_log import open_topic

        opening = open_topic(access(self), topic, partitions, store, **options)
        return Entities(self, self._run(opening))


@takes_connect_options
def connect(**options: Unpack[ConnectOptions]) -> ArchiveClient:
    """Connect to an archive, Aeron's own or this package's.

    >>> with aerotape.connect(aeron_dir=aeron_dir) as client:
    ...     print(client.archive_version, len(list(client.list_recordings())))
    1... 1

    Args:
        aeron: the Aeron client to use; it is left open. Default: a new one.
        aeron_dir: the media driver's directory, when `aeron` is not given.
        control_request_channel: where the archive listens. Default: over IPC, which needs the
            archive to use the same media driver.
        control_request_stream_id: stream on that channel. Default: 10.
        control_response_channel: the channel for the archive's responses. Default: IPC for IPC,
            else a free port of this host, which an archive on another host cannot reach.
        control_response_stream_id: stream on that channel. Default: 20.
        timeout_ns: for the connect and for each request. Default: 10 s.
        start_timeout_ns: how long to wait for a media driver; 0 fails at once. Default:
            `timeout_ns`.
        keep_alive_interval_ns: how often the response stream is read while the client is idle,
            so that the archive does not close the session; 0 leaves that to
            `poll_for_recording_signals` and `poll_for_errors`. Default: 1 s.
        credentials: for an archive that requires them: bytes, or an object that supplies them, like
            ``aerotape.UserSecret("alice", secret)``.
        on_challenge: returns the credentials that respond to the archive's challenge; called in
            another thread.
        client_name: the name that the archive shows for this client. Default: ``aerotape``.

    Raises:
        AeronError: there is no media driver, or it refuses a channel.
        AeronTimeoutError: there is no archive, or it does not respond.
        ArchiveError: the archive refuses: protocol version, credentials.
        ConfigurationError: the response channel must be given.
    """
    connecting = prepare(**options)
    try:
        session = connecting.open()
    except BaseException:
        if connecting.owned_aeron is not None:
            connecting.owned_aeron.close()
        raise
    return ArchiveClient(connecting, session)


class AsyncArchiveClient(AsyncClient):
    """A connection to an archive. Created by `connect_async`; belongs to one event loop.

    It has the requests of `ArchiveClient`, with the same arguments, results and errors. Any number
    of them may be awaited at the same time. When a task is cancelled while it awaits one, the
    session and other requests continue; the archive may still perform the cancelled request. A
    replay that was being opened is stopped again.
    """

    def entities(
        self,
        topic: str,
        partitions: int | None = None,
        store: Store | None = None,
        **options: Unpack[EntityOptions],
    ) -> Opening[AsyncEntities]:
        """Open a topic. Arguments and errors as of `ArchiveClient.entities`."""
        from aerotape.entity.asynchronous.entities import AsyncEntities
        from aerotape.entity.log.topic_log import open_topic

        begin = partial(open_topic, access(self), topic, partitions, store, **options)
        return self._open(begin, partial(AsyncEntities, self))


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
        return AsyncArchiveClient(await open_in_thread(partial(connect, **options)), interval_ns)

    return Opening(open_it)
