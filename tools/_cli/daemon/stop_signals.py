"""Signals that end a daemon cleanly."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from types import FrameType


class StoppedError(BaseException):
    """A stop signal has arrived during the start."""


class StopSignals:
    """SIGTERM, SIGINT and SIGHUP are waited for instead of ending the process.

    SIGHUP stays ignored where it is, as under nohup.
    """

    def __init__(self) -> None:
        # Its `put` is reentrant. An Event is not: a handler that sets it while the same thread is
        # within `wait` can block forever.
        self._received: SimpleQueue[int] = SimpleQueue()
        self._interrupts = False
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._received.put(number)
        if self._interrupts:
            self._interrupts = False
            raise StoppedError

    @contextlib.contextmanager
    def interrupting(self) -> Iterator[None]:
        """Let a signal end the block with StoppedError, also one that has arrived before."""
        self._interrupts = True
        try:
            if not self._received.empty():
                raise StoppedError
            yield
        finally:
            self._interrupts = False

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for a signal; return whether one came within the timeout."""
        try:
            self._received.get(timeout=timeout_s)
        except Empty:
            return False
        return True
