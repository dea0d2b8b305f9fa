"""Waiting for recording signals, and the iterator over them of the blocking client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Self

from aerotape.archive.client.executors.blocking import BlockingRequests
from aerotape.archive.client.replay.signals import (
    RecordingSignalEvent,
    SignalFilter,
    SignalQueue,
    signal_filter,
)
from aerotape.archive.client.requests.request import CurrentSession, Listen, Steps
from aerotape.archive.client.session.control_session import ControlSession
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.context import Closing
from aerotape.errors import AeronTimeoutError, ClosedError


class SignalReader:
    """A queue of the signals that arrive from its creation on, for either front end."""

    def __init__(
        self, session: ControlSession, wanted: SignalFilter, timeout_ns: int | None
    ) -> None:
        """Create the queue and add it to the session."""
        session.ensure_open("read recording signals")
        self._session = session
        self._timeout_ns = timeout_ns
        self._queue = SignalQueue(wanted)
        self._wanted = wanted
        self._is_closed = False
        session.add_signal_queue(self._queue)

    def _next(self) -> Steps[RecordingSignalEvent | None]:
        return next_signal(
            self._session, self._queue, self._wanted, self._timeout_ns, lambda: self._is_closed
        )

    def _end(self) -> None:
        self._is_closed = True
        self._session.remove_signal_queue(self._queue)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._wanted}{' closed' if self._is_closed else ''}>"


class Signals(SignalReader, Iterator[RecordingSignalEvent], Closing):
    """The signals that arrive from its creation on, each once, oldest first.

    Iterating blocks. It ends when the client is closed, and raises `AeronTimeoutError` when no
    signal arrives in time (iterate again to continue) and `ClosedError` when the archive goes
    away. Every iterator has its own copy of the signals.
    """

    def __init__(
        self, requests: BlockingRequests, wanted: SignalFilter, timeout_ns: int | None
    ) -> None:
        """Start. Created by `ArchiveClient.signals`."""
        super().__init__(requests._session, wanted, timeout_ns)
        self._requests = requests

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> RecordingSignalEvent:
        event = self._requests._run(self._next())
        if event is None:
            self.close()
            raise StopIteration
        return event

    def poll(self) -> list[RecordingSignalEvent]:
        """Return the received signals, without waiting.

        Raises:
            ClosedError: the archive went away.
        """
        self._session.service(what="poll for recording signals")
        return self._queue.take_all()

    def close(self) -> None:
        """Take no more signals. Idempotent."""
        self._end()


def next_signal(
    session: ControlSession,
    queue: SignalQueue,
    wanted: SignalFilter,
    timeout_ns: int | None,
    is_over: Callable[[], bool] = lambda: False,
) -> Steps[RecordingSignalEvent | None]:
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
            yield Listen(remaining_ns, lambda: queue.has(wanted), what)
        except ClosedError:
            if not session.was_closed_here:
                raise
    return None


def await_signal(
    *signals: RecordingSignal,
    recording_id: int | None = None,
    correlation_id: int | None = None,
    timeout_ns: int | None = None,
) -> Steps[RecordingSignalEvent]:
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
    session: ControlSession = yield CurrentSession()
    session.ensure_open(f"await {wanted}")
    timeout_ns = session.timeout_ns if timeout_ns is None else timeout_ns
    event = yield from next_signal(session, session.signals, wanted, timeout_ns)
    if event is None:
        raise ClosedError(f"cannot await {wanted}: the client is closed")
    return event
