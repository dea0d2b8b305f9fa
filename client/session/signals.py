"""Recording signals: events of the recordings that a client's requests concern, and waiting."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.errors import AeronTimeoutError, ClosedError, ConfigurationError
from aerotape.waiting import Responses, Task

if TYPE_CHECKING:
    from aerotape.client.session.client_session import ClientSession

_KEPT: Final = 4096


@dataclass(frozen=True, slots=True)
class RecordingSignalEvent:
    """An event of a recording (RecordingSignalEvent, message id 24).

    Attributes:
        signal: START, STOP, EXTEND, REPLICATE, MERGE, SYNC, DELETE or REPLICATE_END.
        recording_id: the recording; -1 for none.
        subscription_id: the recording subscription; -1 for none.
        position: of the recording at that moment, bytes; -1 for none.
        correlation_id: of the request that caused it; for a replication, its id; -1 if no
            client's request caused it.
    """

    signal: RecordingSignal
    recording_id: int
    subscription_id: int
    position: int
    correlation_id: int


def signal_of(message: codecs.RecordingSignalEvent) -> RecordingSignalEvent:
    """Return the event in a message."""
    return RecordingSignalEvent(
        message.signal,
        message.recording_id,
        message.subscription_id,
        message.position,
        message.correlation_id,
    )


@dataclass(frozen=True, slots=True)
class SignalFilter:
    """A selection of signals; None: any."""

    signals: frozenset[RecordingSignal] | None = None
    recording_id: int | None = None
    correlation_id: int | None = None

    def matches(self, event: RecordingSignalEvent) -> bool:
        """Whether this is one of them."""
        return (
            (self.signals is None or event.signal in self.signals)
            and self.recording_id in (None, event.recording_id)
            and self.correlation_id in (None, event.correlation_id)
        )

    def __str__(self) -> str:
        names = "any signal"
        if self.signals is not None:
            names = " or ".join(sorted(signal.name for signal in self.signals))
        of = "" if self.recording_id is None else f" of recording {self.recording_id}"
        by = "" if self.correlation_id is None else f" caused by request {self.correlation_id}"
        return names + of + by


def signal_filter(
    signals: tuple[RecordingSignal, ...], recording_id: int | None, correlation_id: int | None
) -> SignalFilter:
    """Return the filter for what a caller has given (ConfigurationError)."""
    for signal in signals:
        if not isinstance(signal, RecordingSignal):
            raise ConfigurationError(f"{signal!r} is not a RecordingSignal", "signals")
    return SignalFilter(frozenset(signals) or None, recording_id, correlation_id)


class SignalQueue:
    """Received signals that were not taken yet, the last 4096. Filled by the session.

    `put` and the takers may be different threads.
    """

    def __init__(self, wanted: SignalFilter | None = None) -> None:
        """Create an empty queue for the wanted signals; None: all."""
        self._wanted = SignalFilter() if wanted is None else wanted
        self._events: deque[RecordingSignalEvent] = deque(maxlen=_KEPT)
        self._lock = threading.Lock()

    def put(self, event: RecordingSignalEvent) -> None:
        """Add the newest, if it is wanted."""
        if not self._wanted.matches(event):
            return
        with self._lock:
            self._events.append(event)

    def take_all(self) -> list[RecordingSignalEvent]:
        """Return and remove all, oldest first."""
        with self._lock:
            taken = list(self._events)
            self._events.clear()
            return taken

    def has(self, wanted: SignalFilter) -> bool:
        """Whether there is one that is wanted."""
        with self._lock:
            return any(wanted.matches(event) for event in self._events)

    def take(self, wanted: SignalFilter) -> RecordingSignalEvent | None:
        """Return and remove the oldest that is wanted."""
        with self._lock:
            for index, event in enumerate(self._events):
                if wanted.matches(event):
                    del self._events[index]
                    return event
            return None


def next_signal(
    session: ClientSession,
    queue: SignalQueue,
    wanted: SignalFilter,
    timeout_ns: int | None,
    is_over: Callable[[], bool] = lambda: False,
) -> Task[RecordingSignalEvent | None]:
    """Wait for a signal that is wanted and take it; None once it `is_over` or the client closed."""
    what = f"await {wanted}"
    begin_ns = time.monotonic_ns()
    while not is_over():
        event = queue.take(wanted)
        if event is not None:
            return event
        if session.was_closed_here:
            break
        session.ensure_open(what)
        remaining_ns = None
        if timeout_ns is not None:
            remaining_ns = begin_ns + timeout_ns - time.monotonic_ns()
            if remaining_ns <= 0:
                raise AeronTimeoutError(f"cannot {what}: none within {timeout_ns / 1e9:g} s")
        try:
            yield Responses(session, what, remaining_ns, lambda: is_over() or queue.has(wanted))
        except ClosedError:
            if not session.was_closed_here:
                raise
    return None


def await_signal(
    session: ClientSession, wanted: SignalFilter, timeout_ns: int | None
) -> Task[RecordingSignalEvent]:
    """Return and remove a signal that has arrived or arrives in time; others are stored."""
    session.ensure_open(f"await {wanted}")
    timeout_ns = session.timeout_ns if timeout_ns is None else timeout_ns
    event = yield from next_signal(session, session.signals, wanted, timeout_ns)
    if event is None:
        raise ClosedError(f"cannot await {wanted}: the client is closed")
    return event
