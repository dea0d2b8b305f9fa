"""Streams of the asyncio client: signals, replay merges, persistent subscriptions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Self

from aerotape.aeron import Aeron, Subscription
from aerotape.client import channels
from aerotape.client.connection import ConnectionSettings
from aerotape.client.event_loop import AsyncMessages, AsyncRequests
from aerotape.client.live.persistent_subscription import (
    PersistentSubscription,
    open_persistent_subscription,
)
from aerotape.client.live.persistent_types import (
    PersistentEvent,
    PersistentOptions,
    Start,
    start_position,
)
from aerotape.client.live.replay_merge import (
    DEFAULT_PROGRESS_TIMEOUT_NS,
    ReplayMerge,
    default_destination,
    open_replay_merge,
)
from aerotape.client.session.exchange import poll
from aerotape.client.session.signals import (
    RecordingSignalEvent,
    SignalFilter,
    SignalQueue,
    await_signal,
    next_signal,
    signal_filter,
)
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.context import AsyncClosing, Opening


class AsyncSignals(AsyncIterator[RecordingSignalEvent], AsyncClosing):
    """The signals that arrive from its creation on, each once, oldest first.

    Iterating waits for a signal. It ends when the client is closed, and raises `AeronTimeoutError`
    when no signal arrives in time (iterate again to continue) and `ClosedError` when the archive
    goes away. Every iterator has its own copy of the signals.
    """

    def __init__(
        self, requests: AsyncRequests, wanted: SignalFilter, timeout_ns: int | None
    ) -> None:
        """Start. Created by `AsyncArchiveClient.signals`."""
        self._session = requests._session
        self._session.ensure_open("read recording signals")
        self._requests = requests
        self._wanted = wanted
        self._timeout_ns = timeout_ns
        self._queue = SignalQueue(wanted)
        self._is_closed = False
        self._session.add_signal_queue(self._queue)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RecordingSignalEvent:
        awaited = next_signal(
            self._session, self._queue, self._wanted, self._timeout_ns, lambda: self._is_closed
        )
        event = await self._requests._run(awaited)
        if event is None:
            await self.close()
            raise StopAsyncIteration
        return event

    async def poll(self) -> list[RecordingSignalEvent]:
        """Return the received signals, without waiting.

        Raises:
            ClosedError: the archive went away.
        """
        if not self._session.is_closed:
            await self._requests._run(poll(self._session, "poll for recording signals"))
        return self._queue.take_all()

    async def close(self) -> None:
        """Take no more signals. Idempotent."""
        self._is_closed = True
        self._session.remove_signal_queue(self._queue)
        self._requests._notify()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._wanted}{' closed' if self._is_closed else ''}>"


class AsyncStreamMethods(AsyncRequests):
    """Signals, and recordings that continue as live streams."""

    _aeron: Aeron
    _connecting: ConnectionSettings
    _replay_channel: str

    async def poll_for_recording_signals(self) -> list[RecordingSignalEvent]:
        """Return the signals (start, stop, …) received since the last call, oldest first.

        The last 4096 are stored.

        Raises:
            ClosedError: the archive went away.
        """
        await self._run(poll(self._session, "poll for recording signals"))
        return self._session.signals.take_all()

    def signals(
        self,
        *signals: RecordingSignal,
        recording_id: int | None = None,
        correlation_id: int | None = None,
        timeout_ns: int | None = None,
    ) -> AsyncSignals:
        """Return an iterator over the signals that arrive from now on.

        >>> async with client.signals(RecordingSignal.START) as started:
        ...     async for signal in started:
        ...         print(signal.recording_id, signal.position)

        Args:
            signals: only these; default: all.
            recording_id: only of this recording.
            correlation_id: only of this request, for example a replication's id.
            timeout_ns: how long to wait for the next one. Default: no limit.
        """
        wanted = signal_filter(signals, recording_id, correlation_id)
        return AsyncSignals(self, wanted, timeout_ns)

    async def await_signal(
        self,
        *signals: RecordingSignal,
        recording_id: int | None = None,
        correlation_id: int | None = None,
        timeout_ns: int | None = None,
    ) -> RecordingSignalEvent:
        """Return and remove a signal that has arrived or arrives in time; others are stored.

        Args:
            signals: one of these; default: any.
            recording_id: only of this recording.
            correlation_id: only of this request, for example a replication's id.
            timeout_ns: how long to wait. Default: the client's timeout.

        Raises:
            AeronTimeoutError: there is none in time.
            ClosedError: the archive went away, or the client was closed.
        """
        wanted = signal_filter(signals, recording_id, correlation_id)
        return await self._run(await_signal(self._session, wanted, timeout_ns))

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
    ) -> Opening[AsyncMessages[ReplayMerge]]:
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
        begin = partial(
            open_replay_merge,
            self._session,
            self._aeron,
            recording_id,
            live_destination,
            position,
            subscription=subscription,
            replay_channel=replay_channel,
            replay_destination=replay_destination or default_destination(self._replay_channel),
            progress_timeout_ns=progress_timeout_ns,
        )
        return self._open_stream(begin)

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
    ) -> Opening[AsyncMessages[PersistentSubscription]]:
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
        return self._open_stream(
            lambda: open_persistent_subscription(self._connecting, options, on_event)
        )
