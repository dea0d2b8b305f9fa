"""The blocking client of an archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from aerotape.aeron import DEFAULT_TIMEOUT_NS, Aeron
from aerotape.archive.client import channels
from aerotape.archive.client.blocking.ledgers import LedgerMethods
from aerotape.archive.client.blocking.queries import QueryMethods
from aerotape.archive.client.blocking.recordings import RecordingMethods
from aerotape.archive.client.blocking.segments import SegmentMethods
from aerotape.archive.client.blocking.streams import StreamMethods
from aerotape.archive.client.connection import (
    DEFAULT_KEEP_ALIVE_INTERVAL_NS,
    ConnectionSettings,
    prepare,
)
from aerotape.archive.client.credentials import Credentials, UserSecret
from aerotape.archive.client.session.client_properties import ClientProperties
from aerotape.archive.client.session.client_session import ClientSession
from aerotape.archive.client.session.keep_alive import IdleReader
from aerotape.context import Closing

if TYPE_CHECKING:
    from aerotape.archive.entity.entities import Entities
    from aerotape.archive.entity.records import EntityOptions
    from aerotape.archive.entity.stores.store import Store


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


def connect(
    *,
    aeron: Aeron | None = None,
    aeron_dir: str | Path | None = None,
    control_request_channel: str = channels.DEFAULT_CONTROL_CHANNEL,
    control_request_stream_id: int = channels.DEFAULT_CONTROL_STREAM_ID,
    control_response_channel: str | None = None,
    control_response_stream_id: int = channels.DEFAULT_RESPONSE_STREAM_ID,
    timeout_ns: int = DEFAULT_TIMEOUT_NS,
    start_timeout_ns: int | None = None,
    keep_alive_interval_ns: int = DEFAULT_KEEP_ALIVE_INTERVAL_NS,
    credentials: bytes | Credentials | UserSecret = b"",
    on_challenge: Callable[[bytes], bytes] | None = None,
    client_name: str = "aerotape",
) -> ArchiveClient:
    """Connect to an archive, Aeron's own or this package's.

    Args:
        aeron: the Aeron client to use; it is left open. Default: a new one.
        aeron_dir: the media driver's directory, when `aeron` is not given.
        control_request_channel: where the archive listens. Default: over IPC, which needs the
            archive to use the same media driver.
        control_request_stream_id: stream on that channel.
        control_response_channel: the channel for the archive's responses. Default: IPC for IPC,
            else a free port of this host, which an archive on another host cannot reach.
        control_response_stream_id: stream on that channel.
        timeout_ns: for the connect and for each request.
        start_timeout_ns: how long to wait for a media driver; 0 fails at once. Default:
            `timeout_ns`.
        keep_alive_interval_ns: how often the response stream is read while the client is idle,
            so that the archive does not close the session; 0 leaves that to
            `poll_for_recording_signals` and `poll_for_errors`.
        credentials: for an archive that requires them: bytes, or an object that supplies them, like
            ``aerotape.UserSecret("alice", secret)``.
        on_challenge: returns the credentials that respond to the archive's challenge; called in
            another thread.
        client_name: the name that the archive shows for this client.

    Raises:
        AeronError: there is no media driver, or it refuses a channel.
        AeronTimeoutError: there is no archive, or it does not respond.
        ArchiveError: the archive refuses: protocol version, credentials.
        ConfigurationError: the response channel must be given.
    """
    connecting = prepare(
        {
            "aeron": aeron,
            "aeron_dir": aeron_dir,
            "control_request_channel": control_request_channel,
            "control_request_stream_id": control_request_stream_id,
            "control_response_channel": control_response_channel,
            "control_response_stream_id": control_response_stream_id,
            "timeout_ns": timeout_ns,
            "start_timeout_ns": start_timeout_ns,
            "keep_alive_interval_ns": keep_alive_interval_ns,
            "credentials": credentials,
            "on_challenge": on_challenge,
            "client_name": client_name,
        }
    )
    try:
        session = connecting.open()
    except BaseException:
        if connecting.owned_aeron is not None:
            connecting.owned_aeron.close()
        raise
    return ArchiveClient(connecting, session)
