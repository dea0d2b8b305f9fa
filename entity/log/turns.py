"""A limit of how many tasks run at the same time; others wait, first come first served."""

from __future__ import annotations

import threading
from collections import deque
from typing import TypeVar

from aerotape.waiting import Done, Task

T = TypeVar("T")


class Turns:
    """A number of turns. Thread-safe."""

    def __init__(self, count: int) -> None:
        """Let this number of tasks run at the same time."""
        self._free = count
        self._lock = threading.Lock()
        self._waiting: deque[Done[None]] = deque()

    def within(self, task: Task[T]) -> Task[T]:
        """Run a task when it is its turn."""
        turn = Done[None]()
        with self._lock:
            if self._free > 0:
                self._free -= 1
                turn.set(None)
            else:
                self._waiting.append(turn)
        try:
            if not turn.is_over():
                yield turn
            return (yield from task)
        finally:
            self._leave(turn)

    def _leave(self, turn: Done[None]) -> None:
        """Give a turn to the next one, unless it was cancelled while it was waited for."""
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif self._waiting:
                self._waiting.popleft().set(None)
            else:
                self._free += 1
