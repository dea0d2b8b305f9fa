"""A connection to an archive: making it, keeping it and ending it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from aerotape.aeron import DEFAULT_TIMEOUT_NS, Aeron
from aerotape.archive.client import channels
from aerotape.archive.client.credentials import Credentials, credentials_of
from aerotape.archive.client.handshake import open_session
from aerotape.archive.client.recording_requests import RecordingRequests
from aerotape.archive.client.replay_requests import ReplayRequests
from aerotape.archive.client.session import ControlSession, IdleReader
from aerotape.archive.protocol import NULL_VALUE
from aerotape.codecs import archive as codecs
from aerotape.errors import ArchiveError

DEFAULT_KEEP_ALIVE_INTERVAL_NS: Final = 1_000_000_000

# A driver shows that it lives about once a second.
_MIN_DRIVER_TIMEOUT_NS: Final = 3_000_000_000


def connect(
    *,
    aeron: Aeron | None = None,
    aeron_dir: str | Path | None = None,
    control_request_channel: str = channels.DEFAULT_CONTROL_CHANNEL,
    control_request_stream_id: int = channels.DEFAULT_CONTROL_STREAM_ID,
    control_response_channel: str | None = None,
    control_response_stream_id: int = channels.DEFAULT_RESPONSE_STREAM_ID,
    timeout_ns: int = DEFAULT_TIMEOUT_NS,
    keep_alive_interval_ns: int = DEFAULT_KEEP_ALIVE_INTERVAL_NS,
    credentials: bytes | Credentials = b"",
    on_challenge: Callable[[bytes], bytes] | None = None,
    client_name: str = "aerotape",
) -> ArchiveClient:
    """Connect to an archive, Aeron's own or this package's.

    Args:
        aeron: the Aeron client to use; it is left open. Default: one of its own.
        aeron_dir: the media driver's directory, when `aeron` is not given.
        control_request_channel: where the archive listens. Default: over IPC, which needs the
            archive to use the same media driver.
        control_request_stream_id: stream on that channel.
        control_response_channel: where the archive shall answer. Default: IPC for IPC, else a
            free port of this host, which only serves when the archive is on this host too.
        control_response_stream_id: stream on that channel.
        timeout_ns: for the connect and for each request.
        keep_alive_interval_ns: how often the response stream is read while the client is idle,
            so that the archive does not take it for dead; 0 leaves that to
            `poll_for_recording_signals` and `poll_for_errors`.
        credentials: for an archive that wants any: bytes as they are, or what supplies them, like
            ``aerotape.UserSecret("alice", secret)``.
        on_challenge: answers the archive's challenge with further credentials.
        client_name: what the archive shows for this client.

    Raises:
        AeronError: there is no media driver, or it refuses a channel.
        AeronTimeoutError: there is no archive, or it does not answer.
        ArchiveError: it refuses: protocol version, credentials.
        ConfigurationError: the response channel must be given.
    """
    encoded_credentials, on_challenge = credentials_of(credentials, on_challenge)
    response_channel = control_response_channel
    if response_channel is None:
        response_channel = channels.default_response_channel(control_request_channel)
    owned = None
    if aeron is None:
        driver_timeout_ns = max(_MIN_DRIVER_TIMEOUT_NS, min(timeout_ns, DEFAULT_TIMEOUT_NS))
        aeron = owned = Aeron(
            aeron_dir, client_name=client_name, driver_timeout_ns=driver_timeout_ns
        )
    try:
        session, archive_id = open_session(
            aeron.native,
            request_channel=control_request_channel,
            request_stream_id=control_request_stream_id,
            response_channel=response_channel,
            response_stream_id=control_response_stream_id,
            timeout_ns=timeout_ns,
            credentials=encoded_credentials,
            on_challenge=on_challenge,
            client_name=client_name,
        )
    except BaseException:
        if owned is not None:
            owned.close()
        raise
    return ArchiveClient(
        aeron,
        session,
        archive_id=archive_id,
        owned_aeron=owned,
        replay_channel=channels.default_replay_channel(response_channel),
        keep_alive_interval_ns=keep_alive_interval_ns,
    )


class ArchiveClient(RecordingRequests, ReplayRequests):
    """A connection to an archive. Made by `connect`; thread-safe.

    Every request raises `ArchiveError` with the archive's error code when it is refused,
    `AeronTimeoutError` when there is no answer in time and `ClosedError` when the archive has
    gone away or the client is closed.
    """

    def __init__(
        self,
        aeron: Aeron,
        session: ControlSession,
        *,
        archive_id: int,
        owned_aeron: Aeron | None,
        replay_channel: str,
        keep_alive_interval_ns: int,
    ) -> None:
        """Take over a session. Use `connect`."""
        ReplayRequests.__init__(self, aeron, session, replay_channel)
        self._archive_id = archive_id
        self._owned_aeron = owned_aeron
        self._reader = (
            IdleReader(session, keep_alive_interval_ns) if keep_alive_interval_ns > 0 else None
        )

    @property
    def aeron(self) -> Aeron:
        """The Aeron client in use, to publish and subscribe with."""
        return self._aeron

    @property
    def archive_id(self) -> int:
        """The archive's id, as told at the connect; -1 if it is too old to have one."""
        return self._archive_id

    @property
    def control_session_id(self) -> int:
        """The session's id at the archive."""
        session_id = self._session.control_session_id
        return NULL_VALUE if session_id is None else session_id

    @property
    def is_closed(self) -> bool:
        """Whether the client was closed or the archive has been found gone."""
        return self._session.is_closed

    def get_archive_id(self) -> int:
        """Ask the archive for its id."""
        return self._ask(codecs.ArchiveIdRequest(), "ask for the archive's id")

    def keep_alive(self) -> None:
        """Tell the archive that this client is alive."""
        session = self._session
        session.ensure_connected("keep the session alive")
        message = codecs.KeepAliveRequest(
            control_session_id=self.control_session_id, correlation_id=NULL_VALUE
        )
        session.send(message.encode(), "keep the session alive")

    def poll_for_errors(self) -> list[ArchiveError]:
        """Return errors that the archive has sent for no pending request, oldest first.

        Raises:
            ClosedError: the archive has gone away.
        """
        self._session.ensure_connected("poll for errors")
        return self._session.take_errors()

    def poll_for_recording_signals(self) -> list[codecs.RecordingSignalEvent]:
        """Return the signals (start, stop, …) that have come since the last call, oldest first.

        The last 4096 are kept.

        Raises:
            ClosedError: the archive has gone away.
        """
        self._session.ensure_connected("poll for recording signals")
        return self._session.take_signals()

    def close(self) -> None:
        """End the session. Idempotent."""
        if self._reader is not None:
            self._reader.close()
        self._session.close()
        if self._owned_aeron is not None:
            self._owned_aeron.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
