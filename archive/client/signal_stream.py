"""Recording signals as they come, in the caller's thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Self

from aerotape.archive.client.session import (
    POLL_SLICE_NS,
    ControlSession,
    remaining_slice_ns,
)
from aerotape.archive.client.signals import RecordingSignalEvent, SignalFilter, SignalQueue
from aerotape.closing import Closing
from aerotape.errors import AeronTimeoutError, ClosedError


class Signals(Iterator[RecordingSignalEvent], Closing):
    """The signals that come from the moment this is made, each once, oldest first.

    Iterating waits. It ends when the client is closed, and raises `AeronTimeoutError` when
    nothing comes for the timeout (iterate again to wait on) and `ClosedError` when the archive
    goes away. What is taken here is not taken from others: every iterator has its own copy.
    """

    def __init__(
        self, session: ControlSession, wanted: SignalFilter, timeout_ns: int | None
    ) -> None:
        """Begin. Made by `ArchiveClient.signals`."""
        self._session = session
        self._timeout_ns = timeout_ns
        self._queue = SignalQueue(wanted)
        self._wanted = wanted
        self._is_closed = False
        session.add_signal_queue(self._queue)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> RecordingSignalEvent:
        event = next_signal(
            self._session, self._queue, self._wanted, self._timeout_ns, lambda: self._is_closed
        )
        if event is None:
            self.close()
            raise StopIteration
        return event

    def poll(self) -> list[RecordingSignalEvent]:
        """Return what has come, without waiting.

        Raises:
            ClosedError: the archive has gone away.
        """
        self._session.service(what="poll for recording signals")
        return self._queue.take_all()

    def close(self) -> None:
        """Take no more signals. Idempotent."""
        self._is_closed = True
        self._session.remove_signal_queue(self._queue)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._wanted}{' closed' if self._is_closed else ''}>"


def next_signal(
    session: ControlSession,
    queue: SignalQueue,
    wanted: SignalFilter,
    timeout_ns: int | None,
    is_over: Callable[[], bool] = lambda: False,
) -> RecordingSignalEvent | None:
    """Wait for a signal that is wanted and take it; None once the client has been closed.

    Args:
        is_over: whether nobody waits for one any more: None is returned then too.

    Raises:
        AeronTimeoutError: there is none in time.
        ClosedError: the archive has gone away.
    """
    what = f"await {wanted}"
    deadline_ns = None if timeout_ns is None else time.monotonic_ns() + timeout_ns
    while not is_over():
        event = queue.take(wanted)
        if event is not None:
            return event
        if session.was_closed_here:
            break
        session.ensure_open(what)
        slice_ns = POLL_SLICE_NS if deadline_ns is None else remaining_slice_ns(deadline_ns)
        if slice_ns <= 0:
            assert timeout_ns is not None
            raise AeronTimeoutError(f"cannot {what}: none within {timeout_ns / 1e9:g} s")
        try:
            session.read(slice_ns, lambda: queue.has(wanted), what)
        except ClosedError:
            if not session.was_closed_here:
                raise
    return None
