"""The client's streams that come from a recording first and from the publisher then."""

from __future__ import annotations

from aerotape.aeron import Aeron, Subscription
from aerotape.archive.channel_uri import ChannelUri
from aerotape.archive.client import query_requests
from aerotape.archive.client.blocking import BlockingRequests, blocking_steps
from aerotape.archive.client.replay_merge import (
    DEFAULT_PROGRESS_TIMEOUT_NS,
    MergeOrder,
    ReplayMerge,
)
from aerotape.errors import UnknownRecordingError


class MergedStreams(BlockingRequests):
    """Reading on from a recording into the live stream."""

    _aeron: Aeron
    _replay_channel: str

    list_recording = blocking_steps(query_requests.list_recording)

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
        """Replay a recording that is live, and go on with the live stream itself, without a gap.

        >>> live = "aeron:udp?endpoint=localhost:0|control=localhost:24326"
        >>> with client.replay_merge(recording_id, live) as messages:
        ...     for message in messages:
        ...         print(messages.is_merged, message.position)

        For UDP streams whose publisher sends to several receivers: by ``control-mode=dynamic`` or
        multicast. When the live stream drops later, the iteration ends; a
        `persistent_subscription` goes back to the recording instead.

        Args:
            live_destination: what a subscription to the live stream would have as its channel.
            position: from where, bytes: the beginning of a frame. None: from the start.
            subscription: one with ``control-mode=manual`` and the live stream's stream id. It is
                left open, with the live destination. Default: one of the merge's own.
            replay_channel: how the archive shall replay; it must give the replay the session id
                of the live stream. The endpoint is put in. Default: UDP, with the session id of
                the recording.
            replay_destination: where to receive the replay, with an address of this host that
                the archive can reach; port 0 lets the driver choose. Default: where the archive
                answers, if that is UDP, else ``localhost``.
            progress_timeout_ns: how long nothing may go forward, your reading included.

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
        order = MergeOrder(
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
            order.check(channel)
            subscription = owned = self._aeron.add_subscription(
                channel, descriptor.stream_id, self._session.timeout_ns
            )
        return ReplayMerge(self._session, order, subscription, owned is not None)
