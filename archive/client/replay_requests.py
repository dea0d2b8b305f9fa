"""Requests that start and stop replays, and the opening of a replay for a reader."""

from __future__ import annotations

import time

from aerotape.aeron import Aeron
from aerotape.archive.channel_uri import ChannelUri
from aerotape.archive.client import channels
from aerotape.archive.client.handshake import resolve_endpoint
from aerotape.archive.client.query_requests import QueryRequests
from aerotape.archive.client.replay import Replay, ReplayOrder
from aerotape.archive.client.session import ControlSession
from aerotape.archive.protocol import (
    NULL_POSITION,
    NULL_VALUE,
    REPLAY_ALL_AND_FOLLOW,
    REPLAY_ALL_AND_STOP,
)
from aerotape.codecs import archive as codecs
from aerotape.errors import ConfigurationError


class ReplayRequests(QueryRequests):
    """Starting and stopping replays. A replay has to ask for positions too."""

    def __init__(self, aeron: Aeron, session: ControlSession, replay_channel: str) -> None:
        super().__init__(aeron, session)
        self._replay_channel = replay_channel

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
            length: how much, bytes. None (or Aeron's -1), or more than there is: to the end.
                Aeron's -2 is -1 with `follow` off.
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
        position = None if position == NULL_POSITION else position
        if length in (REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP):
            follow = follow and length == REPLAY_ALL_AND_FOLLOW
            length = None
        if length is not None and length < 0:
            raise ConfigurationError(f"a replay cannot have a length of {length} bytes", "length")
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
