"""Persistent subscriptions: all of a recorded stream, from the archive as long as need be, live
where that can be, and back again when the live stream drops.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Final, Unpack

from aerotape import _native
from aerotape.aeron import Aeron
from aerotape.archive.client import channels
from aerotape.archive.client.archive_link import ArchiveLink
from aerotape.archive.client.connecting import Connecting, ConnectOptions, prepare
from aerotape.archive.client.persistent_life import PersistentLife
from aerotape.archive.client.persistent_terms import (
    PersistentEvent,
    PersistentOrder,
    PersistentState,
    Start,
)
from aerotape.closing import Closing
from aerotape.errors import AerotapeError, ClosedError
from aerotape.message import Message
from aerotape.text import shown

_FRAGMENT_LIMIT: Final = 256
_TURN_NS: Final = 50_000_000
_ITERATION_NS: Final = 1_000_000_000
_REPLAYING: Final = (PersistentState.REPLAY, PersistentState.ATTEMPT_SWITCH)

# AeronCounters of the reference: type ids and beginnings of labels.
_STATE_COUNTER: Final = (114, "Persistent Subscription State")
_JOIN_DIFFERENCE_COUNTER: Final = (115, "Persistent Subscription Join Difference")
_LIVE_LEFT_COUNTER: Final = (116, "Persistent Subscription Live Left Count")
_LIVE_JOINED_COUNTER: Final = (117, "Persistent Subscription Live Joined Count")
_NO_DIFFERENCE: Final = -(1 << 63)
_MAX_LABEL_LENGTH: Final = 380


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
    """As `ArchiveClient.persistent_subscription`, of an archive that need not be there yet.

    >>> with aerotape.persistent_subscription(
    ...     recording_id, "aeron:udp?endpoint=239.1.1.1:24326", start=position
    ... ) as messages:
    ...     for message in messages:
    ...         print(message.end_position)

    Args:
        recording_id: like all others but `options`, as there.
        options: those of `connect`.

    Raises:
        AeronError: there is no media driver.
        ConfigurationError: an argument cannot be used. All else comes while polling.
    """
    connecting = prepare(options)
    try:
        order = PersistentOrder.checked(
            recording_id,
            start,
            live_channel,
            live_stream_id,
            replay_channel or connecting.replay_channel,
            replay_stream_id,
        )
        return PersistentSubscription(connecting, order, on_event, connecting.owned_aeron)
    except BaseException:
        if connecting.owned_aeron is not None:
            connecting.owned_aeron.close()
        raise


class PersistentSubscription(Closing):
    """All messages of a stream that is recorded while it is published, in order, without a gap.

    Iterate it, or call `poll` in a loop of your own. It is made at once and connects to the
    archive by and by, again when the connection is lost; while messages come from the publisher,
    the archive may be away. Its errors are told as events, and tried again; those that nothing
    can mend are raised, too, and end it. For one thread.

    Messages of a replay carry its stream and session id, live ones those of the publisher.
    Positions are the same in both.

    The driver shows its state in counters with the type ids 114 to 117, as Aeron's own does.
    """

    def __init__(
        self,
        connecting: Connecting,
        order: PersistentOrder,
        on_event: Callable[[PersistentEvent], None] | None,
        owned_aeron: Aeron | None = None,
    ) -> None:
        """Begin. Made by `persistent_subscription` and `ArchiveClient.persistent_subscription`."""
        self._aeron = connecting.aeron
        self._owned_aeron = owned_aeron
        self._on_event = on_event
        self._events: list[PersistentEvent] = []
        self._failure: Exception | None = None
        self._is_closed = False
        self._counters = self._add_counters(order)
        self._link = ArchiveLink(
            lambda: connecting.open()[0], lambda error: self._life.report(error)
        )
        self._order = order
        self._life = PersistentLife(
            connecting.aeron.native,
            self._link,
            order,
            connecting.timeout_ns,
            self._show,
            self._take_event,
        )
        self._turns = self._life.turns()
        self._show()

    # -- what is known -------------------------------------------------------------------------

    @property
    def state(self) -> PersistentState:
        """How far it has come."""
        return self._life.state

    @property
    def is_live(self) -> bool:
        """Whether messages come from the publisher."""
        return self.state is PersistentState.LIVE

    @property
    def is_replaying(self) -> bool:
        """Whether messages come from the recording."""
        return self.state in _REPLAYING

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come: only once it is closed."""
        return self._is_closed

    @property
    def failure(self) -> Exception | None:
        """Why it cannot go on, None as long as it can."""
        return self._failure

    @property
    def position(self) -> int | None:
        """How far the stream has been read, bytes; None when that is not known yet.

        To begin there again later, take the `end_position` of the last message you are done
        with: a part of the next message may have been read already.
        """
        return self._life.position if self._life.position >= 0 else None

    @property
    def join_difference(self) -> int | None:
        """How far ahead of the replay the live stream was when it was found, bytes."""
        return self._life.join_difference

    # -- reading -------------------------------------------------------------------------------

    def poll(self, fragment_limit: int = _FRAGMENT_LIMIT, timeout_ns: int = 0) -> list[Message]:
        """Go on, and return the messages that have come.

        Args:
            fragment_limit: take at most so many fragments.
            timeout_ns: how long to wait for the first message. Default: not at all.

        Raises:
            PersistentSubscriptionError: it cannot go on: no such recording, another stream id, a
                position that the recording does not have or no longer has.
            ArchiveError: the archive refuses the replay, or to tell of the recording.
            AeronError: the media driver refuses a channel.
            ConfigurationError: the archive cannot be connected to with what was given.
            ClosedError: the Aeron client was closed.
        """
        self._fetch(fragment_limit, timeout_ns)
        return [] if self._is_closed else self._life.backlog.messages()

    def __iter__(self) -> Iterator[Message]:
        # What is in there when an iteration is left comes first in the next.
        backlog = self._life.backlog
        while not self._is_closed:
            self._fetch(_FRAGMENT_LIMIT, _ITERATION_NS)
            yield from backlog.drain()

    def _fetch(self, fragment_limit: int, timeout_ns: int) -> None:
        """Go on until there are messages in the backlog, or the time is up."""
        deadline_ns = time.monotonic_ns() + timeout_ns
        self._life.fragment_limit = fragment_limit
        while not self._is_closed:
            remaining_ns = max(deadline_ns - time.monotonic_ns(), 0)
            if not self._life.backlog:
                if self._failure is not None:
                    raise self._failure
                self._life.slice_ns = min(remaining_ns, _TURN_NS)
                self._turn()
            self._tell_events()
            if self._life.backlog or (remaining_ns == 0 and self._failure is None):
                return

    def _turn(self) -> None:
        try:
            self._link.service()
            next(self._turns)
        except AerotapeError as error:
            self._failure = error
            self._turns.close()
            self._life.fail(error)
            self._link.close()
        except BaseException:
            # Of a signal's handler: whoever raised it may want to go on.
            self._turns.close()
            self._turns = self._life.turns_after_interrupt()
            raise

    def _tell_events(self) -> None:
        # A callback that raises must not cost messages.
        while self._events:
            event = self._events.pop(0)
            if self._on_event is not None:
                self._on_event(event)

    def _take_event(self, event: PersistentEvent) -> None:
        self._events.append(event)
        if event.kind == "live-joined":
            self._counters[_LIVE_JOINED_COUNTER].add(1)
        elif event.kind == "live-left":
            self._counters[_LIVE_LEFT_COUNTER].add(1)

    # -- counters ------------------------------------------------------------------------------

    def _add_counters(self, order: PersistentOrder) -> dict[tuple[int, str], _native.Counter]:
        what = (
            f"{order.replay_stream_id} {order.replay_channel} "
            f"{order.live_stream_id or ''} {order.live_channel}"
        )
        counters: dict[tuple[int, str], _native.Counter] = {}
        for kind in (
            _STATE_COUNTER,
            _JOIN_DIFFERENCE_COUNTER,
            _LIVE_LEFT_COUNTER,
            _LIVE_JOINED_COUNTER,
        ):
            type_id, name = kind
            label = f"{name}: {what}"[:_MAX_LABEL_LENGTH]
            counters[kind] = self._aeron.native.add_counter(type_id, b"", label)
        return counters

    def _show(self) -> None:
        difference = self._life.join_difference
        with contextlib.suppress(ClosedError):  # with the driver all is over anyway
            self._counters[_STATE_COUNTER].set(self._life.state)
            self._counters[_JOIN_DIFFERENCE_COUNTER].set(
                _NO_DIFFERENCE if difference is None else difference
            )

    def close(self) -> None:
        """Stop the replay if there is one, leave the stream and the archive. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        self._turns.close()
        self._link.close()
        for counter in self._counters.values():
            counter.close()
        if self._owned_aeron is not None:
            self._owned_aeron.close()

    def __repr__(self) -> str:
        return shown(self, "_order.recording_id", "_order.live_channel", "state", "position")
