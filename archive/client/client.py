"""A connection to an archive: making it, keeping it and ending it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, Final, ParamSpec

from aerotape.aeron import DEFAULT_TIMEOUT_NS, Aeron, ExclusivePublication, Publication
from aerotape.archive.client import (
    channels,
    query_requests,
    recording_requests,
    replay_opening,
    replay_requests,
    replication_requests,
    segment_requests,
)
from aerotape.archive.client.blocking import (
    blocking,
    blocking_pages,
    blocking_steps,
    describe_as,
)
from aerotape.archive.client.client_facts import ClientFacts
from aerotape.archive.client.connecting import Connecting, prepare
from aerotape.archive.client.credentials import Credentials
from aerotape.archive.client.idle_reader import IdleReader
from aerotape.archive.client.merged_streams import MergedStreams
from aerotape.archive.client.recorded_publication import (
    add_recorded_exclusive_publication,
    add_recorded_publication,
)
from aerotape.archive.client.replay import Replay
from aerotape.archive.client.replay_opening import ReplayWish, open_replay
from aerotape.archive.client.session import ControlSession
from aerotape.archive.client.signal_stream import Signals, next_signal
from aerotape.archive.client.signals import RecordingSignalEvent, signal_filter
from aerotape.archive.protocol import NULL_VALUE
from aerotape.closing import Closing
from aerotape.codecs import archive as codecs
from aerotape.codecs.archive import RecordingSignal
from aerotape.errors import ArchiveError, ClosedError

P = ParamSpec("P")

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
    start_timeout_ns: int | None = None,
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
        start_timeout_ns: how long to wait for a media driver; 0 fails at once. Default:
            `timeout_ns`.
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
            "credentials": credentials,
            "on_challenge": on_challenge,
            "client_name": client_name,
        }
    )
    try:
        session, archive_id = connecting.open()
    except BaseException:
        if connecting.owned_aeron is not None:
            connecting.owned_aeron.close()
        raise
    return ArchiveClient(connecting, session, archive_id, keep_alive_interval_ns)


def _replaying(
    wish: Callable[P, ReplayWish],
) -> Callable[Concatenate[ArchiveClient, P], Replay]:
    """Make a method that opens a replay."""

    def method(self: ArchiveClient, /, *args: P.args, **kwargs: P.kwargs) -> Replay:
        wished = wish(*args, **kwargs)
        steps = open_replay(self._aeron.native, self._session, wished, self._replay_channel)
        return Replay(self._run(steps), self._run)

    describe_as(method, wish, returns="Replay")
    return method


class ArchiveClient(MergedStreams, ClientFacts, Closing):
    """A connection to an archive. Made by `connect`; thread-safe.

    Every request raises `ConfigurationError` for arguments that no archive could take, before
    anything is sent; `ArchiveError` with the archive's error code, of a class of its own for
    most codes, when it is refused; `AeronTimeoutError` when there is no answer in time; and
    `ClosedError` when the archive has gone away or the client is closed. As the Java client
    does, it does not connect again by itself: what was under way is not known to be done, and
    only the caller can tell whether to ask once more. Make a new one with `connect`.

    Positions and lengths are bytes, timestamps milliseconds since the epoch; -1 stands, as
    everywhere in Aeron, for a position or id that there is not.
    """

    def __init__(
        self,
        connecting: Connecting,
        session: ControlSession,
        archive_id: int,
        keep_alive_interval_ns: int,
    ) -> None:
        """Take over a session. Use `connect`."""
        super().__init__(session)
        self._aeron = connecting.aeron
        self._connecting = connecting
        self._replay_channel = connecting.replay_channel
        self._archive_id = archive_id
        self._reader = (
            IdleReader(session, keep_alive_interval_ns) if keep_alive_interval_ns > 0 else None
        )

    # -- recordings ----------------------------------------------------------------------------

    start_recording = blocking(recording_requests.start_recording)
    extend_recording = blocking(recording_requests.extend_recording)
    stop_recording = blocking(recording_requests.stop_recording)
    try_stop_recording = blocking(recording_requests.try_stop_recording)
    stop_recording_session = blocking(recording_requests.stop_recording_session)
    stop_recording_subscription = blocking(recording_requests.stop_recording_subscription)
    try_stop_recording_subscription = blocking(recording_requests.try_stop_recording_subscription)
    stop_recording_by_identity = blocking(recording_requests.stop_recording_by_identity)
    truncate_recording = blocking(recording_requests.truncate_recording)
    purge_recording = blocking(recording_requests.purge_recording)
    update_channel = blocking(recording_requests.update_channel)

    def add_recorded_publication(
        self, channel: str, stream_id: int, *, auto_stop: bool = False
    ) -> Publication:
        """Add a publication and record its session.

        Raises:
            ArchiveError: as `start_recording`; the publication is closed again.
        """
        return self._run(
            add_recorded_publication(
                self._aeron.native, channel, stream_id, auto_stop, self._session.timeout_ns
            )
        )

    def add_recorded_exclusive_publication(
        self, channel: str, stream_id: int, *, auto_stop: bool = False
    ) -> ExclusivePublication:
        """As `add_recorded_publication`, with a session that nobody shares."""
        return self._run(
            add_recorded_exclusive_publication(
                self._aeron.native, channel, stream_id, auto_stop, self._session.timeout_ns
            )
        )

    # -- segments and replication --------------------------------------------------------------

    detach_segments = blocking(segment_requests.detach_segments)
    delete_detached_segments = blocking(segment_requests.delete_detached_segments)
    purge_segments = blocking(segment_requests.purge_segments)
    attach_segments = blocking(segment_requests.attach_segments)
    migrate_segments = blocking(segment_requests.migrate_segments)

    replicate = blocking(replication_requests.replicate)
    stop_replication = blocking(replication_requests.stop_replication)
    try_stop_replication = blocking(replication_requests.try_stop_replication)

    # -- questions -----------------------------------------------------------------------------

    list_recordings = blocking_pages(query_requests.list_recordings)
    list_recordings_for_uri = blocking_pages(query_requests.list_recordings_for_uri)
    list_recording = blocking_steps(query_requests.list_recording)
    list_recording_subscriptions = blocking_pages(query_requests.list_recording_subscriptions)
    find_last_matching_recording = blocking(query_requests.find_last_matching_recording)
    start_position = blocking(query_requests.start_position)
    stop_position = blocking(query_requests.stop_position)
    recording_position = blocking(query_requests.recording_position)
    max_recorded_position = blocking(query_requests.max_recorded_position)
    get_archive_id = blocking(query_requests.get_archive_id)

    # -- replays -------------------------------------------------------------------------------

    start_replay = blocking(replay_requests.start_replay)
    start_bounded_replay = blocking(replay_requests.start_bounded_replay)
    stop_replay = blocking(replay_requests.stop_replay)
    stop_all_replays = blocking(replay_requests.stop_all_replays)

    replay = _replaying(replay_opening.replay)

    # -- what comes unasked --------------------------------------------------------------------

    def poll_for_errors(self) -> list[ArchiveError]:
        """Return errors that the archive has sent for no pending request, oldest first.

        Raises:
            ClosedError: the archive has gone away.
        """
        self._session.ensure_connected("poll for errors")
        return self._session.take_errors()

    def poll_for_recording_signals(self) -> list[RecordingSignalEvent]:
        """Return the signals (start, stop, …) that have come since the last call, oldest first.

        The last 4096 are kept.

        Raises:
            ClosedError: the archive has gone away.
        """
        self._session.ensure_connected("poll for recording signals")
        return self._session.signals.take_all()

    def signals(
        self,
        *signals: RecordingSignal,
        recording_id: int | None = None,
        correlation_id: int | None = None,
        timeout_ns: int | None = None,
    ) -> Signals:
        """Return an iterator over the signals that come from now on.

        >>> with client.signals(RecordingSignal.START) as started:
        ...     for signal in started:
        ...         print(signal.recording_id, signal.position)

        Args:
            signals: only these; none given: all.
            recording_id: only of this recording.
            correlation_id: only of this request, for example a replication's id.
            timeout_ns: how long to wait for the next one. Default: for ever.
        """
        self._session.ensure_open("read recording signals")
        wanted = signal_filter(signals, recording_id, correlation_id)
        return Signals(self._session, wanted, timeout_ns)

    def await_signal(
        self,
        *signals: RecordingSignal,
        recording_id: int | None = None,
        correlation_id: int | None = None,
        timeout_ns: int | None = None,
    ) -> RecordingSignalEvent:
        """Return a signal, that has come before or comes now, and forget it; others are kept.

        Args:
            signals: one of these; none given: any.
            recording_id: only of this recording.
            correlation_id: only of this request, for example a replication's id.
            timeout_ns: how long to wait. Default: the client's timeout.

        Raises:
            AeronTimeoutError: there is none in time.
            ClosedError: the archive has gone away, or the client was closed meanwhile.
        """
        wanted = signal_filter(signals, recording_id, correlation_id)
        session = self._session
        session.ensure_open(f"await {wanted}")
        timeout_ns = session.timeout_ns if timeout_ns is None else timeout_ns
        event = next_signal(session, session.signals, wanted, timeout_ns)
        if event is None:
            raise ClosedError(f"cannot await {wanted}: the client is closed")
        return event

    # -- the session ---------------------------------------------------------------------------

    def ping(self) -> int:
        """Return how long the archive takes to answer, nanoseconds."""
        begin_ns = time.monotonic_ns()
        self.get_archive_id()
        return time.monotonic_ns() - begin_ns

    def keep_alive(self) -> None:
        """Tell the archive that this client is alive."""
        what = "keep the session alive"
        session = self._session
        session.ensure_connected(what)
        message = codecs.KeepAliveRequest(
            control_session_id=self.control_session_id, correlation_id=NULL_VALUE
        )
        session.send(message.encode(), what)

    def close(self) -> None:
        """End the session. Idempotent."""
        if self._reader is not None:
            self._reader.close()
        self._session.close()
        if self._connecting.owned_aeron is not None:
            self._connecting.owned_aeron.close()
