"""Persistent subscriptions: a recorded stream, replayed until it can be read live.

The archive replays it again when the live stream drops.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Unpack

from aerotape import _native
from aerotape.aeron import Aeron
from aerotape.client import channels
from aerotape.client.connection import (
    ConnectionSettings,
    ConnectOptions,
    prepare,
    takes_connect_options,
)
from aerotape.client.live.persistent_state_machine import (
    BUSY_SLICE_NS,
    PersistentStateMachine,
)
from aerotape.client.live.persistent_types import (
    PersistentEvent,
    PersistentOptions,
    PersistentState,
    Start,
    start_position,
)
from aerotape.client.session.reconnecting_session import ReconnectingSession
from aerotape.cnc import MAX_LABEL_LENGTH
from aerotape.context import Closing
from aerotape.driver_tasks import add
from aerotape.errors import AerotapeError, ClosedError
from aerotape.formatting import shown
from aerotape.message import Message
from aerotape.waiting import Running, Task, run

_FRAGMENT_LIMIT: Final = 256
_SLICE_NS: Final = 50_000_000
_ITERATION_NS: Final = 1_000_000_000

# AeronCounters of the reference: the ends of the labels' prefixes of the types from 114.
_COUNTERS: Final = ("State", "Join Difference", "Live Left Count", "Live Joined Count")
_NO_DIFFERENCE: Final = -(1 << 63)


@takes_connect_options
def persistent_subscription(
    recording_id: int,
    live_channel: str,
    live_stream_id: int | None = None,
    *,
    start: Start = "live",
    replay_channel: str | None = None,
    replay_stream_id: int = channels.DEFAULT_REPLAY_STREAM_ID,
    on_event: Callable[[PersistentEvent], None] | None = None,
    **options: Unpack[ConnectOptions],
) -> PersistentSubscription:
    """As `ArchiveClient.persistent_subscription`, for an archive that may not be running yet.

    >>> with aerotape.persistent_subscription(
    ...     recording_id, "aeron:udp?endpoint=239.1.1.1:24326", start=position
    ... ) as messages:
    ...     for message in messages:
    ...         print(message.end_position)

    Args:
        recording_id: this and the others except `options` as in that method.
        options: those of `connect`.

    Raises:
        AeronError: there is no media driver.
        ConfigurationError: an argument is invalid. Other errors are raised while polling.
    """
    connecting = prepare(**options)
    try:
        subscription = PersistentOptions(
            recording_id,
            start_position(start),
            live_channel,
            live_stream_id,
            replay_channel or connecting.replay_channel,
            replay_stream_id,
        )
        opening = open_persistent_subscription(
            connecting, subscription, on_event, connecting.owned_aeron
        )
        return run(opening)
    except BaseException:
        if connecting.owned_aeron is not None:
            connecting.owned_aeron.close()
        raise


def open_persistent_subscription(
    connecting: ConnectionSettings,
    options: PersistentOptions,
    on_event: Callable[[PersistentEvent], None] | None,
    owned_aeron: Aeron | None = None,
) -> Task[PersistentSubscription]:
    """Add the counters of a persistent subscription, and start it."""
    what = (
        f"{options.replay_stream_id} {options.replay_channel} "
        f"{options.live_stream_id or ''} {options.live_channel}"
    )
    counters: dict[str, _native.Counter] = {}
    try:
        for type_id, name in enumerate(_COUNTERS, 114):
            label = f"Persistent Subscription {name}: {what}"[:MAX_LABEL_LENGTH]
            begin = partial(connecting.aeron.native.async_add_counter, type_id, b"", label)
            counters[name] = yield from add(begin, f"counter {label!r}", connecting.timeout_ns)
        return PersistentSubscription(connecting, options, on_event, counters, owned_aeron)
    except BaseException:
        for counter in counters.values():
            counter.close()
        raise


class PersistentSubscription(Closing):
    """All messages of a stream that is recorded while it is published, in order, without a gap.

    Iterate it, or call `poll` in your own loop. It connects to the archive in the background and
    reconnects when the connection is lost; while messages come from the publisher, the archive
    may be down. Temporary errors are reported as events, and retried; permanent errors are also
    raised, and end it. For one thread.

    Messages of a replay have the ids of the recording, live ones those of the publisher.
    Positions are the same in both.

    Its state is published in counters with the type ids 114 to 117, as Aeron's client does.
    """

    def __init__(
        self,
        connecting: ConnectionSettings,
        options: PersistentOptions,
        on_event: Callable[[PersistentEvent], None] | None,
        counters: dict[str, _native.Counter],
        owned_aeron: Aeron | None = None,
    ) -> None:
        """Start. Created by the function and the `ArchiveClient` method of its name."""
        self._owned_aeron = owned_aeron
        self._on_event = on_event
        self._events: list[PersistentEvent] = []
        self._failure: Exception | None = None
        self._is_closed = False
        self._counters = counters
        self._connection = ReconnectingSession(
            connecting.open,
            lambda error: self._machine.report(error),
            connecting.keep_alive_interval_ns,
        )
        self._options = options
        self._machine = PersistentStateMachine(
            connecting.aeron.native,
            self._connection,
            options,
            connecting.timeout_ns,
            self._show,
            self._take_event,
        )
        self._cycles = Running(self._machine.duty_cycles())
        self._show()

    # -- state ---------------------------------------------------------------------------------

    @property
    def state(self) -> PersistentState:
        """The step of the subscription: from the replay to the live stream."""
        return self._machine.state

    @property
    def is_live(self) -> bool:
        """Whether messages come from the publisher."""
        return self.state is PersistentState.LIVE

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def has_ended(self) -> bool:
        """Whether there will be no further message: only once it is closed."""
        return self._is_closed

    @property
    def failure(self) -> Exception | None:
        """The permanent error that ended it, or None."""
        return self._failure

    @property
    def position(self) -> int | None:
        """The position read so far, bytes; None while unknown.

        To resume later, use the `end_position` of the last message that you have processed: a
        part of the next message may have been read already.
        """
        return self._machine.position if self._machine.position >= 0 else None

    @property
    def join_difference(self) -> int | None:
        """The distance of the live stream from the replay when it was found, bytes."""
        return self._machine.join_difference

    # -- reading -------------------------------------------------------------------------------

    def poll(self, fragment_limit: int = _FRAGMENT_LIMIT, timeout_ns: int = 0) -> list[Message]:
        """Do one duty cycle, and return the messages read.

        Args:
            fragment_limit: the most fragments to read.
            timeout_ns: how long to wait for the first message. Default: do not wait.

        Raises:
            PersistentSubscriptionError: a permanent error: no such recording, another stream id,
                a position outside the recording.
            ArchiveError: the archive refuses the replay or the lookup of the recording.
            AeronError: the media driver refuses a channel.
            ConfigurationError: the options for connecting are invalid.
            ClosedError: the Aeron client was closed.
        """
        self._fetch(fragment_limit, timeout_ns)
        return [] if self._is_closed else self._machine.backlog.messages()

    def __iter__(self) -> Iterator[Message]:
        # Messages left in it by an earlier iteration come first.
        backlog = self._machine.backlog
        while not self._is_closed:
            self._fetch(_FRAGMENT_LIMIT, _ITERATION_NS)
            yield from backlog.drain()

    def _fetch(self, fragment_limit: int, timeout_ns: int) -> None:
        """Do duty cycles until there are messages in the backlog, or the time is up."""
        deadline_ns = time.monotonic_ns() + timeout_ns
        self._machine.fragment_limit = fragment_limit
        while not self._is_closed:
            remaining_ns = max(deadline_ns - time.monotonic_ns(), 0)
            if not self._machine.backlog:
                if self._failure is not None:
                    raise self._failure
                self._machine.slice_ns = min(remaining_ns, _SLICE_NS)
                self._do_work()
            self._deliver_events()
            if self._machine.backlog or (remaining_ns == 0 and self._failure is None):
                return

    def _do_work(self) -> None:
        try:
            self._connection.service()
            slice_ns = min(self._machine.slice_ns, BUSY_SLICE_NS)
            if not self._cycles.advance() and slice_ns > 0:
                time.sleep(slice_ns / 1e9)
        except AerotapeError as error:
            self._failure = error
            self._cycles.close()
            self._machine.fail(error)
            self._connection.close()
        except BaseException:
            # Raised by a signal handler: the caller may continue.
            self._cycles.close()
            self._cycles = Running(self._machine.duty_cycles_after_interrupt())
            raise

    def _deliver_events(self) -> None:
        # A callback that raises must not lose messages.
        while self._events:
            event = self._events.pop(0)
            if self._on_event is not None:
                self._on_event(event)

    def _take_event(self, event: PersistentEvent) -> None:
        self._events.append(event)
        if event.kind != "error":
            name = "Live Joined Count" if event.kind == "live-joined" else "Live Left Count"
            self._counters[name].add(1)

    # -- counters ------------------------------------------------------------------------------

    def _show(self) -> None:
        difference = self._machine.join_difference
        with contextlib.suppress(ClosedError):  # the driver is gone
            self._counters["State"].set(self._machine.state)
            self._counters["Join Difference"].set(
                _NO_DIFFERENCE if difference is None else difference
            )

    def close(self) -> None:
        """Stop the replay, and close the stream and the connection. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        self._cycles.close()
        self._connection.close()
        for counter in self._counters.values():
            counter.close()
        if self._owned_aeron is not None:
            self._owned_aeron.close()

    def __repr__(self) -> str:
        return shown(self, "_options.recording_id", "_options.live_channel", "state", "position")
