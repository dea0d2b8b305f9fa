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
