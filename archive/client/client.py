"""The blocking client of an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from aerotape.aeron import Aeron
from aerotape.archive.client.blocking.ledgers import LedgerMethods
from aerotape.archive.client.blocking.queries import QueryMethods
from aerotape.archive.client.blocking.recordings import RecordingMethods
from aerotape.archive.client.blocking.segments import SegmentMethods
from aerotape.archive.client.blocking.streams import StreamMethods
from aerotape.archive.client.connection import (
    ConnectionSettings,
    ConnectOptions,
    prepare,
    takes_connect_options,
)
from aerotape.archive.client.session.client_session import ClientSession
from aerotape.archive.client.session.keep_alive import IdleReader
from aerotape.catalog.layout import version_string
from aerotape.context import Closing
from aerotape.formatting import shown
from aerotape.protocol import NULL_VALUE

if TYPE_CHECKING:
    from aerotape.archive.entity.entities import Entities
    from aerotape.archive.entity.records import EntityOptions
    from aerotape.archive.entity.stores.store import Store


class ClientProperties:
    """Properties of a connection to an archive."""

    _aeron: Aeron
    _session: ClientSession

    @property
    def aeron(self) -> Aeron:
        """The Aeron client in use, to publish and subscribe with."""
        return self._aeron

    @property
    def archive_id(self) -> int:
        """The archive's id, as received at connect; -1 for an archive too old to have one."""
        return self._session.archive_id

    @property
    def archive_version(self) -> str:
        """The version of the control protocol of the archive, like ``1.12.0``."""
        return version_string(self._session.archive_version)

    @property
    def control_session_id(self) -> int:
        """The session's id at the archive."""
        session_id = self._session.control_session_id
        return NULL_VALUE if session_id is None else session_id

    @property
    def is_closed(self) -> bool:
        """Whether the client was closed or the archive went away."""
        return self._session.is_closed

    def __repr__(self) -> str:
        return shown(self, "_session.publication.channel", "archive_id", "control_session_id")


class ArchiveClient(
    RecordingMethods,
    SegmentMethods,
    QueryMethods,
    StreamMethods,
    LedgerMethods,
    ClientProperties,
    Closing,
):
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

    def __init__(self, connecting: ConnectionSettings, session: ClientSession) -> None:
        """Create a client of an open session. Use `connect`."""
        super().__init__(session)
        self._aeron = connecting.aeron
        self._connecting = connecting
        self._replay_channel = connecting.replay_channel
        interval_ns = connecting.keep_alive_interval_ns
        self._reader = IdleReader(session, interval_ns) if interval_ns > 0 else None

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
        from aerotape.archive.entity.entities import Entities

        return Entities(self, topic, partitions, store, **options)

    def close(self) -> None:
        """End the session. Idempotent."""
        if self._reader is not None:
            self._reader.close()
        self._session.close()
        if self._connecting.owned_aeron is not None:
            self._connecting.owned_aeron.close()


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
