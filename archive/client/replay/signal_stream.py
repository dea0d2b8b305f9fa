"""Waiting for recording signals."""

from __future__ import annotations

import time
from collections.abc import Callable

from aerotape.archive.client.session.client_session import ClientSession
from aerotape.archive.client.session.signals import (
    RecordingSignalEvent,
    SignalFilter,
    SignalQueue,
)
from aerotape.archive.waiting import Responses, Task
from aerotape.errors import AeronTimeoutError, ClosedError


class SignalReader:
    """A queue of the signals that arrive from its creation on, for either front end."""

    def __init__(
        self, session: ClientSession, wanted: SignalFilter, timeout_ns: int | None
    ) -> None:
        """Create the queue and add it to the session."""
        session.ensure_open("read recording signals")
        self._session = session
        self._timeout_ns = timeout_ns
        self._queue = SignalQueue(wanted)
        self._wanted = wanted
        self._is_closed = False
        session.add_signal_queue(self._queue)

    def _next(self) -> Task[RecordingSignalEvent | None]:
        return next_signal(
            self._session, self._queue, self._wanted, self._timeout_ns, lambda: self._is_closed
        )

    def _poll(self) -> Task[list[RecordingSignalEvent]]:
        if not self._session.is_closed:
            yield Responses(self._session, "poll for recording signals")
        return self._queue.take_all()

    def _end(self) -> None:
        self._is_closed = True
        self._session.remove_signal_queue(self._queue)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._wanted}{' closed' if self._is_closed else ''}>"


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
