"""Every request of an archive's control protocol, as a typed method.

Positions and lengths are bytes, timestamps milliseconds since the epoch; -1 stands, as everywhere
in Aeron, for a position or id that there is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from aerotape.aeron import DEFAULT_TIMEOUT_NS, Aeron, Publication
from aerotape.archive.channel_uri import ChannelUri
from aerotape.archive.client import channels
from aerotape.archive.client.handshake import open_session, resolve_endpoint
from aerotape.archive.client.replay import Replay, ReplayOrder
from aerotape.archive.client.session import ControlSession, IdleReader, Request
from aerotape.archive.protocol import (
    NULL_POSITION,
    NULL_VALUE,
    REPLAY_ALL_AND_FOLLOW,
    ErrorCode,
)
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.codecs import archive as codecs
from aerotape.errors import ArchiveError, ConfigurationError

SourceLocationName = Literal["local", "remote"]

DEFAULT_KEEP_ALIVE_INTERVAL_NS: Final = 1_000_000_000

# A driver shows that it lives about once a second.
_MIN_DRIVER_TIMEOUT_NS: Final = 3_000_000_000
_PAGE: Final = 100
_MAX_COUNT: Final = (1 << 31) - 1


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
    credentials: bytes = b"",
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
        credentials: for an archive that wants any.
        on_challenge: answers the archive's challenge with further credentials.
        client_name: what the archive shows for this client.

    Raises:
        AeronError: there is no media driver, or it refuses a channel.
        AeronTimeoutError: there is no archive, or it does not answer.
        ArchiveError: it refuses: protocol version, credentials.
        ConfigurationError: the response channel must be given.
    """
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
            credentials=credentials,
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


class ArchiveClient:
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
        self._aeron = aeron
        self._session = session
        self._archive_id = archive_id
        self._owned_aeron = owned_aeron
        self._replay_channel = replay_channel
        self._reader = (
            IdleReader(session, keep_alive_interval_ns) if keep_alive_interval_ns > 0 else None
        )

    # -- the connection ------------------------------------------------------------------------

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

    def _ask(self, message: Request, what: str) -> int:
        return self._session.request(message, what).relevant_id

    # -- recording -----------------------------------------------------------------------------

    def start_recording(
        self,
        channel: str,
        stream_id: int,
        source_location: codecs.SourceLocation | SourceLocationName = "local",
        *,
        auto_stop: bool = False,
    ) -> int:
        """Record each stream that is published on a channel and stream id, now or later.

        Args:
            channel: with a ``session-id`` parameter, only that session is recorded.
            source_location: "local" when the publications use the archive's media driver: they
                are recorded without a detour over the network. Else "remote".
            auto_stop: stop when the first stream ends.

        Returns:
            The id of the recording subscription, for `stop_recording_subscription`.

        Raises:
            ArchiveError: ACTIVE_SUBSCRIPTION when it is being recorded already, MAX_RECORDINGS.
        """
        request = codecs.StartRecordingRequest2(
            stream_id=stream_id,
            source_location=_source_location(source_location),
            auto_stop=codecs.BooleanType(auto_stop),
            channel=channel,
        )
        return self._ask(request, f"start recording {channel} stream {stream_id}")

    def add_recorded_publication(
        self, channel: str, stream_id: int, *, auto_stop: bool = False
    ) -> Publication:
        """Add a publication and record its session.

        Raises:
            ArchiveError: as `start_recording`; the publication is closed again.
        """
        publication = self._aeron.add_publication(channel, stream_id, self._session.timeout_ns)
        try:
            own = channels.with_session_id(channel, publication.session_id)
            self.start_recording(own, stream_id, "local", auto_stop=auto_stop)
        except BaseException:
            publication.close()
            raise
        return publication

    def stop_recording(self, channel: str, stream_id: int) -> None:
        """Stop what `start_recording` with this channel and stream id has started.

        Raises:
            ArchiveError: UNKNOWN_SUBSCRIPTION when nothing is.
        """
        request = codecs.StopRecordingRequest(stream_id=stream_id, channel=channel)
        self._ask(request, f"stop recording {channel} stream {stream_id}")

    def try_stop_recording(self, channel: str, stream_id: int) -> bool:
        """As `stop_recording`, but return False when there was nothing to stop."""
        return _unless_unknown_subscription(lambda: self.stop_recording(channel, stream_id))

    def stop_recording_subscription(self, subscription_id: int) -> None:
        """Stop the recording subscription with this id.

        Raises:
            ArchiveError: UNKNOWN_SUBSCRIPTION when there is none.
        """
        request = codecs.StopRecordingSubscriptionRequest(subscription_id=subscription_id)
        self._ask(request, f"stop recording subscription {subscription_id}")

    def try_stop_recording_subscription(self, subscription_id: int) -> bool:
        """As `stop_recording_subscription`, but return False when there is none."""
        return _unless_unknown_subscription(
            lambda: self.stop_recording_subscription(subscription_id)
        )

    def stop_recording_by_identity(self, recording_id: int) -> bool:
        """Stop a live recording by its id; return False when it was not live.

        Raises:
            ArchiveError: UNKNOWN_RECORDING.
        """
        request = codecs.StopRecordingByIdentityRequest(recording_id=recording_id)
        return self._ask(request, f"stop recording {recording_id}") != 0

    # -- queries -------------------------------------------------------------------------------

    def list_recordings(
        self, from_recording_id: int = 0, count: int | None = None
    ) -> Iterator[RecordingDescriptor]:
        """Iterate over the recordings in the order of their ids, asking page by page.

        Args:
            from_recording_id: the first id to be listed.
            count: at most so many; None: all.
        """

        def page(from_id: int, page_count: int) -> list[codecs.RecordingDescriptor]:
            request = codecs.ListRecordingsRequest(
                from_recording_id=from_id, record_count=page_count
            )
            return self._session.request_descriptors(request, page_count, "list recordings")

        return _pages(page, from_recording_id, count)

    def list_recordings_for_uri(
        self,
        channel_fragment: str,
        stream_id: int,
        from_recording_id: int = 0,
        count: int | None = None,
    ) -> Iterator[RecordingDescriptor]:
        """As `list_recordings`, of one stream id and with channels that hold a text.

        Args:
            channel_fragment: any part of the recording's channel without the parameters that
                do not identify the stream, for example ``endpoint=localhost:20121``.
        """

        def page(from_id: int, page_count: int) -> list[codecs.RecordingDescriptor]:
            request = codecs.ListRecordingsForUriRequest(
                from_recording_id=from_id,
                record_count=page_count,
                stream_id=stream_id,
                channel=channel_fragment,
            )
            what = f"list recordings of {channel_fragment!r} stream {stream_id}"
            return self._session.request_descriptors(request, page_count, what)

        return _pages(page, from_recording_id, count)

    def list_recording(self, recording_id: int) -> RecordingDescriptor | None:
        """Return a recording's descriptor, None when there is no such recording."""
        request = codecs.ListRecordingRequest(recording_id=recording_id)
        what = f"list recording {recording_id}"
        found = self._session.request_descriptors(request, 1, what)
        return _descriptor(found[0]) if found else None

    def find_last_matching_recording(
        self, min_recording_id: int, channel_fragment: str, stream_id: int, session_id: int
    ) -> int:
        """Return the id of the last recording of a session, -1 when there is none.

        Args:
            min_recording_id: the least id that counts.
            channel_fragment: as in `list_recordings_for_uri`.
        """
        request = codecs.FindLastMatchingRecordingRequest(
            min_recording_id=min_recording_id,
            session_id=session_id,
            stream_id=stream_id,
            channel=channel_fragment,
        )
        return self._ask(request, f"find a recording of {channel_fragment!r} stream {stream_id}")

    def start_position(self, recording_id: int) -> int:
        """Return where a recording starts, bytes."""
        request = codecs.StartPositionRequest(recording_id=recording_id)
        return self._ask(request, f"ask for the start position of recording {recording_id}")

    def stop_position(self, recording_id: int) -> int:
        """Return where a recording stopped, bytes; -1 while it is live."""
        request = codecs.StopPositionRequest(recording_id=recording_id)
        return self._ask(request, f"ask for the stop position of recording {recording_id}")

    def recording_position(self, recording_id: int) -> int:
        """Return how far a live recording has come, bytes; -1 when it is not live."""
        request = codecs.RecordingPositionRequest(recording_id=recording_id)
        return self._ask(request, f"ask for the position of recording {recording_id}")

    def max_recorded_position(self, recording_id: int) -> int:
        """Return where a recording stopped or, live, how far it has come, bytes."""
        request = codecs.MaxRecordedPositionRequest(recording_id=recording_id)
        return self._ask(request, f"ask for the last position of recording {recording_id}")

    # -- replay --------------------------------------------------------------------------------

    def start_replay(
        self,
        recording_id: int,
        channel: str,
        stream_id: int,
        *,
        position: int | None = None,
        length: int | None = None,
        limit_counter_id: int | None = None,
        file_io_max_length: int | None = None,
    ) -> int:
        """Let the archive replay into a channel and stream of the caller's.

        Args:
            position: from where, bytes: the beginning of a frame. None: from the start.
            length: how much, bytes. None, or more than there is: to the end, following a
                recording that is live until it stops.
            limit_counter_id: do not go beyond the value of this counter of the media driver.
            file_io_max_length: read at most so much at a time, bytes.

        Returns:
            The replay's id, for `stop_replay`. Its low 32 bits are the session id of the
            publication.

        Raises:
            ArchiveError: UNKNOWN_RECORDING, MAX_REPLAYS, INVALID_POSITION, …
            ConfigurationError: `channel` is not a channel URI.
        """
        ChannelUri.parse(channel)  # Aeron's own archive leaves a malformed one unanswered
        return self._start_replay(
            recording_id, channel, stream_id, position, length, limit_counter_id, file_io_max_length
        ).relevant_id

    def _start_replay(
        self,
        recording_id: int,
        channel: str,
        stream_id: int,
        position: int | None,
        length: int | None,
        limit_counter_id: int | None,
        file_io_max_length: int | None = None,
    ) -> codecs.ControlResponse:
        request = codecs.ReplayRequest(
            recording_id=recording_id,
            position=NULL_POSITION if position is None else position,
            length=REPLAY_ALL_AND_FOLLOW if length is None else length,
            replay_stream_id=stream_id,
            file_io_max_length=NULL_VALUE if file_io_max_length is None else file_io_max_length,
            replay_token=NULL_VALUE,
            replay_channel=channel,
        )
        what = f"replay recording {recording_id} to {channel} stream {stream_id}"
        if limit_counter_id is None:
            return self._session.request(request, what)
        bounded = codecs.BoundedReplayRequest(
            recording_id=recording_id,
            position=request.position,
            length=request.length,
            limit_counter_id=limit_counter_id,
            replay_stream_id=stream_id,
            file_io_max_length=request.file_io_max_length,
            replay_token=NULL_VALUE,
            replay_channel=channel,
        )
        return self._session.request(bounded, what)

    def replay(
        self,
        recording_id: int,
        position: int | None = None,
        length: int | None = None,
        *,
        channel: str | None = None,
        stream_id: int = channels.DEFAULT_REPLAY_STREAM_ID,
        follow: bool = True,
        limit_counter_id: int | None = None,
        file_io_max_length: int | None = None,
        timeout_ns: int | None = None,
    ) -> Replay:
        """Replay a recording and return its messages.

        >>> with client.replay(recording_id) as messages:
        ...     for message in messages:
        ...         print(message.position, len(message.payload))

        Args:
            position: from where, bytes: the beginning of a frame. None: from the start.
            length: how much, bytes. None, or more than there is: to the end.
            channel: where the archive shall replay to. Default: as the control responses.
            stream_id: stream on that channel.
            follow: whether a live recording is followed until it stops (or to `length`); else
                the replay ends where the recording is now.
            limit_counter_id: do not go beyond the value of this counter of the media driver;
                the replay then ends at `length` or when the counter is closed.
            file_io_max_length: the archive reads at most so much at a time, bytes.
            timeout_ns: how long to wait for the next message. Default: the client's timeout
                when it must come, for ever when following.

        Raises:
            ArchiveError: UNKNOWN_RECORDING, MAX_REPLAYS, INVALID_POSITION, …
            ConfigurationError: the channel cannot be used.
        """
        start = self.start_position(recording_id) if position is None else position
        stop = self.stop_position(recording_id)
        is_live = stop == NULL_POSITION
        if is_live and not follow:
            stop, is_live = self.max_recorded_position(recording_id), False
        end = None if length is None else start + length
        if not is_live:
            end = stop if end is None else min(end, stop)
            if start == end:
                # The reference's replay of nothing never ends; there is no need to ask for it.
                return Replay.empty(recording_id, start)
        if timeout_ns is None and not is_live and limit_counter_id is None:
            timeout_ns = self._session.timeout_ns
        return self._open_replay(
            recording_id,
            start,
            end,
            channel=channel or self._replay_channel,
            stream_id=stream_id,
            limit_counter_id=limit_counter_id,
            file_io_max_length=file_io_max_length,
            timeout_ns=timeout_ns,
        )

    def _open_replay(
        self,
        recording_id: int,
        start: int,
        end: int | None,
        *,
        channel: str,
        stream_id: int,
        limit_counter_id: int | None,
        file_io_max_length: int | None,
        timeout_ns: int | None,
    ) -> Replay:
        if "control-mode=response" in channel:
            raise ConfigurationError(
                f"cannot replay to {channel}: response channels are not supported for replays",
                "channel",
            )
        native = self._aeron.native
        session = self._session
        subscription = None
        archive_channel = channel
        if channels.has_wildcard_port(channel):
            # The port must be known before the archive can be told, and is ours alone.
            subscription = native.add_subscription(
                channel, stream_id, timeout_ns=session.timeout_ns
            )
            deadline_ns = time.monotonic_ns() + session.timeout_ns
            endpoint = resolve_endpoint(subscription, deadline_ns)
            archive_channel = channels.with_endpoint(channel, endpoint)
        try:
            length = None if end is None else end - start
            answer = self._start_replay(
                recording_id,
                archive_channel,
                stream_id,
                start,
                length,
                limit_counter_id,
                file_io_max_length,
            )
            session_id = channels.to_int32(answer.relevant_id)
            if subscription is None:
                own = channels.with_session_id(channel, session_id)
                subscription = native.add_subscription(
                    own, stream_id, timeout_ns=session.timeout_ns
                )
        except BaseException:
            if subscription is not None:
                subscription.close()
            raise
        order = ReplayOrder(
            recording_id=recording_id,
            start_position=start,
            end_position=end,
            is_bounded=limit_counter_id is not None,
            correlation_id=answer.correlation_id,
            replay_session_id=answer.relevant_id,
            session_id=session_id,
        )
        return Replay(
            order,
            session,
            subscription,
            stop_replay=self.stop_replay,
            stop_position=self.stop_position,
            timeout_ns=timeout_ns,
        )

    def stop_replay(self, replay_session_id: int) -> None:
        """Stop a replay; one that has ended already is no error."""
        request = codecs.StopReplayRequest(replay_session_id=replay_session_id)
        self._ask(request, f"stop replay {replay_session_id}")

    def stop_all_replays(self, recording_id: int | None = None) -> None:
        """Stop all replays of a recording, or of all recordings, whoever started them."""
        request = codecs.StopAllReplaysRequest(
            recording_id=NULL_VALUE if recording_id is None else recording_id
        )
        self._ask(request, "stop all replays")


def _source_location(
    location: codecs.SourceLocation | SourceLocationName,
) -> codecs.SourceLocation:
    if isinstance(location, codecs.SourceLocation):
        return location
    try:
        return codecs.SourceLocation[location.upper()]
    except KeyError:
        raise ConfigurationError(
            f'source location must be "local" or "remote", not {location!r}', "source_location"
        ) from None


def _unless_unknown_subscription(stop: Callable[[], None]) -> bool:
    try:
        stop()
    except ArchiveError as error:
        if error.error_code != ErrorCode.UNKNOWN_SUBSCRIPTION:
            raise
        return False
    return True


def _pages(
    page: Callable[[int, int], list[codecs.RecordingDescriptor]],
    from_recording_id: int,
    count: int | None,
) -> Iterator[RecordingDescriptor]:
    remaining = _MAX_COUNT if count is None else count
    while remaining > 0:
        page_count = min(_PAGE, remaining)
        found = page(from_recording_id, page_count)
        yield from map(_descriptor, found)
        if len(found) < page_count:
            return
        remaining -= len(found)
        from_recording_id = found[-1].recording_id + 1


def _descriptor(message: codecs.RecordingDescriptor) -> RecordingDescriptor:
    return RecordingDescriptor(
        recording_id=message.recording_id,
        start_timestamp_ms=message.start_timestamp,
        stop_timestamp_ms=message.stop_timestamp,
        start_position=message.start_position,
        stop_position=message.stop_position,
        initial_term_id=message.initial_term_id,
        segment_file_length=message.segment_file_length,
        term_buffer_length=message.term_buffer_length,
        mtu_length=message.mtu_length,
        session_id=message.session_id,
        stream_id=message.stream_id,
        stripped_channel=message.stripped_channel,
        original_channel=message.original_channel,
        source_identity=message.source_identity,
    )
