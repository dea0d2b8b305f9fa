"""The blocking client of an archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Unpack

from aerotape.aeron import DEFAULT_TIMEOUT_NS, Aeron, Subscription
from aerotape.archive.client import channels
from aerotape.archive.client.connection import (
    DEFAULT_KEEP_ALIVE_INTERVAL_NS,
    ConnectionSettings,
    prepare,
)
from aerotape.archive.client.credentials import Credentials, UserSecret
from aerotape.archive.client.executors.blocking import blocking, blocking_pages, describe_as
from aerotape.archive.client.ledger.client_methods import LedgerMethods
from aerotape.archive.client.live.persistent_subscription import PersistentSubscription
from aerotape.archive.client.live.persistent_types import (
    PersistentEvent,
    PersistentOptions,
    Start,
    start_position,
)
from aerotape.archive.client.live.replay_merge import (
    DEFAULT_PROGRESS_TIMEOUT_NS,
    ReplayMerge,
    ReplayMergeOptions,
)
from aerotape.archive.client.replay import opening
from aerotape.archive.client.replay.replay import Replay
from aerotape.archive.client.replay.signal_stream import Signals, await_signal
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
from aerotape.archive.client.session.control_session import ControlSession
from aerotape.archive.client.session.keep_alive import IdleReader
from aerotape.channel_uri import ChannelUri
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.context import Closing
from aerotape.errors import UnknownRecordingError

if TYPE_CHECKING:
    from aerotape.archive.entity.entities import Entities
    from aerotape.archive.entity.records import EntityOptions
    from aerotape.archive.entity.stores.store import Store

P = ParamSpec("P")


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


def _replaying(
    request: Callable[P, Steps[ReplayStream]],
) -> Callable[Concatenate[ArchiveClient, P], Replay]:
    """Return a method that opens a replay."""

    def method(self: ArchiveClient, /, *args: P.args, **kwargs: P.kwargs) -> Replay:
        kwargs["channel"] = kwargs.get("channel") or self._replay_channel
        return Replay(self._run(request(*args, **kwargs)), self)

    describe_as(method, request, returns="Replay")
    return method


class ArchiveClient(LedgerMethods, ClientProperties, Closing):
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

    def __init__(self, connecting: ConnectionSettings, session: ControlSession) -> None:
        """Create a client of an open session. Use `connect`."""
        super().__init__(session)
        self._aeron = connecting.aeron
        self._connecting = connecting
        self._replay_channel = connecting.replay_channel
        interval_ns = connecting.keep_alive_interval_ns
        self._reader = IdleReader(session, interval_ns) if interval_ns > 0 else None

    # -- recordings ----------------------------------------------------------------------------

    start_recording = blocking(recordings.start_recording)
    extend_recording = blocking(recordings.extend_recording)
    stop_recording = blocking(recordings.stop_recording)
    try_stop_recording = blocking(recordings.try_stop_recording)
    stop_recording_session = blocking(recordings.stop_recording_session)
    stop_recording_subscription = blocking(recordings.stop_recording_subscription)
    try_stop_recording_subscription = blocking(recordings.try_stop_recording_subscription)
    stop_recording_by_identity = blocking(recordings.stop_recording_by_identity)
    truncate_recording = blocking(recordings.truncate_recording)
    purge_recording = blocking(recordings.purge_recording)
    update_channel = blocking(recordings.update_channel)
    add_recorded_publication = blocking(recordings.add_recorded_publication)
    add_recorded_exclusive_publication = blocking(recordings.add_recorded_exclusive_publication)

    # -- segments and replication --------------------------------------------------------------

    detach_segments = blocking(segments.detach_segments)
    delete_detached_segments = blocking(segments.delete_detached_segments)
    purge_segments = blocking(segments.purge_segments)
    attach_segments = blocking(segments.attach_segments)
    migrate_segments = blocking(segments.migrate_segments)

    replicate = blocking(replication.replicate)
    stop_replication = blocking(replication.stop_replication)
    try_stop_replication = blocking(replication.try_stop_replication)

    # -- queries -------------------------------------------------------------------------------

    list_recordings = blocking_pages(queries.list_recordings)
    list_recordings_for_uri = blocking_pages(queries.list_recordings_for_uri)
    list_recording = blocking(queries.list_recording)
    list_recording_subscriptions = blocking_pages(queries.list_recording_subscriptions)
    find_last_matching_recording = blocking(queries.find_last_matching_recording)
    start_position = blocking(queries.start_position)
    stop_position = blocking(queries.stop_position)
    recording_position = blocking(queries.recording_position)
    max_recorded_position = blocking(queries.max_recorded_position)
    get_archive_id = blocking(queries.get_archive_id)
    scopes = blocking(scopes.scopes)

    # -- replays -------------------------------------------------------------------------------

    start_replay = blocking(replays.start_replay)
    start_bounded_replay = blocking(replays.start_bounded_replay)
    stop_replay = blocking(replays.stop_replay)
    stop_all_replays = blocking(replays.stop_all_replays)

    replay = _replaying(opening.replay)

    # -- from a recording into the live stream --------------------------------------------------

    def replay_merge(
        self,
        recording_id: int,
        live_destination: str,
        position: int | None = None,
        *,
        subscription: Subscription | None = None,
        replay_channel: str | None = None,
        replay_destination: str | None = None,
        progress_timeout_ns: int = DEFAULT_PROGRESS_TIMEOUT_NS,
    ) -> ReplayMerge:
        """Replay a live recording and merge into the live stream, without a gap.

        >>> live = "aeron:udp?endpoint=localhost:0|control=localhost:24326"
        >>> with client.replay_merge(recording_id, live) as messages:
        ...     for message in messages:
        ...         print(messages.is_merged, message.position)

        For UDP streams whose publisher sends to several receivers: by ``control-mode=dynamic`` or
        multicast. When the live stream drops later, the iteration ends; a
        `persistent_subscription` returns to the recording instead.

        Args:
            live_destination: the channel of a subscription to the live stream.
            position: from where, bytes: the beginning of a frame. None: from the start.
            subscription: one with ``control-mode=manual`` and the live stream's stream id. It is
                left open, with the live destination. Default: a new one.
            replay_channel: the channel of the replay, with the session id of the live stream.
                The endpoint is filled in. Default: UDP, with the session id of
                the recording.
            replay_destination: where to receive the replay, with an address of this host that
                the archive can reach; port 0 lets the driver choose. Default: that of the
                control responses, if it is UDP, else ``localhost``.
            progress_timeout_ns: how long there may be no progress; reading is progress.

        Raises:
            UnknownRecordingError: there is no such recording.
            ConfigurationError: a channel that cannot be merged, like one for IPC.
        """
        descriptor = self.list_recording(recording_id)
        if descriptor is None:
            raise UnknownRecordingError(
                f"cannot merge a replay of recording {recording_id}: there is no such recording",
                recording_id,
            )
        session_id = descriptor.session_id
        if replay_destination is None:
            replay_destination = self._replay_channel
            if ChannelUri.parse(replay_destination).is_ipc:
                replay_destination = "aeron:udp?endpoint=localhost:0"
        options = ReplayMergeOptions(
            recording_id,
            descriptor.start_position if position is None else position,
            replay_channel or f"aeron:udp?session-id={session_id}",
            replay_destination,
            live_destination,
            progress_timeout_ns,
        )
        owned = None
        if subscription is None:
            channel = f"aeron:udp?control-mode=manual|session-id={session_id}"
            options.check(channel)
            subscription = owned = self._aeron.add_subscription(
                channel, descriptor.stream_id, self._session.timeout_ns
            )
        return ReplayMerge(self._session, options, subscription, owned is not None)

    def persistent_subscription(
        self,
        recording_id: int,
        live_channel: str,
        live_stream_id: int | None = None,
        *,
        start: Start = "live",
        replay_channel: str | None = None,
        replay_stream_id: int = channels.DEFAULT_REPLAY_STREAM_ID,
        on_event: Callable[[PersistentEvent], None] | None = None,
    ) -> PersistentSubscription:
        """Read a recorded stream continuously: the recording, then live, and back on a live drop.

        >>> with client.persistent_subscription(
        ...     recording_id, "aeron:udp?control=localhost:24326", start="start"
        ... ) as messages:
        ...     for message in messages:
        ...         print(messages.is_live, message.end_position)

        It has a separate connection to the archive, with the options of this client's, and
        continues when this client is closed, unless the Aeron client is closed with it.

        Args:
            recording_id: the recording of the live stream.
            live_channel: the channel of a subscription to the live stream, UDP or IPC.
            live_stream_id: stream on that channel. Default: that of the recording.
            start: where to begin: at a position in the recording, bytes (the beginning of a
                frame, like the `end_position` of the last message that you are done with); with
                the ``"start"`` of the recording; or with the ``"live"`` stream as it is now.
            replay_channel: where the archive replays to: ``aeron:ipc``, an endpoint of this
                host, with port 0 at best, or a response channel. Default: as the control
                responses.
            replay_stream_id: stream on that channel.
            on_event: called, while polling, when the live stream was joined or left and for
                errors that are retried.

        Raises:
            ConfigurationError: an argument is invalid. Other errors are raised while polling.
        """
        options = PersistentOptions(
            recording_id,
            start_position(start),
            live_channel,
            live_stream_id,
            replay_channel or self._replay_channel,
            replay_stream_id,
        )
        return PersistentSubscription(self._connecting, options, on_event)

    # -- journals of entities ------------------------------------------------------------------

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

    # -- asynchronous messages -----------------------------------------------------------------

    poll_for_errors = blocking(messages.poll_for_errors)
    poll_for_recording_signals = blocking(messages.poll_for_recording_signals)

    def signals(
        self,
        *signals: RecordingSignal,
        recording_id: int | None = None,
        correlation_id: int | None = None,
        timeout_ns: int | None = None,
    ) -> Signals:
        """Return an iterator over the signals that arrive from now on.

        >>> with client.signals(RecordingSignal.START) as started:
        ...     for signal in started:
        ...         print(signal.recording_id, signal.position)

        Args:
            signals: only these; default: all.
            recording_id: only of this recording.
            correlation_id: only of this request, for example a replication's id.
            timeout_ns: how long to wait for the next one. Default: no limit.
        """
        return Signals(self, signal_filter(signals, recording_id, correlation_id), timeout_ns)

    await_signal = blocking(await_signal)

    # -- the session ---------------------------------------------------------------------------

    ping = blocking(queries.ping)
    keep_alive = blocking(messages.keep_alive)

    def close(self) -> None:
        """End the session. Idempotent."""
        if self._reader is not None:
            self._reader.close()
        self._session.close()
        if self._connecting.owned_aeron is not None:
            self._connecting.owned_aeron.close()
