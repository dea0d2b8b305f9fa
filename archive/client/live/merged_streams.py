"""The client's streams that continue from a recording into the live stream."""

from __future__ import annotations

from collections.abc import Callable

from aerotape.aeron import Aeron, Subscription
from aerotape.archive.client import channels
from aerotape.archive.client.connection import ConnectionSettings
from aerotape.archive.client.executors.blocking import BlockingRequests, blocking
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
from aerotape.archive.client.requests import queries
from aerotape.channel_uri import ChannelUri
from aerotape.errors import UnknownRecordingError


class MergedStreams(BlockingRequests):
    """Opens streams that continue from a recording into the live stream."""

    _aeron: Aeron
    _replay_channel: str
    _connecting: ConnectionSettings

    list_recording = blocking(queries.list_recording)

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
