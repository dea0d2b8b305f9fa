"""Threads that run one at a time, in an order that is random and can be repeated."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence


class Baton:
    """Passes between threads wherever these call `switch`."""

    def __init__(self, chance: random.Random) -> None:
        """Create a baton; `chance` chooses the thread that runs next."""
        self._chance = chance
        self._waiting: list[threading.Semaphore] = []
        self._caller = threading.Semaphore(0)
        self._own = threading.local()
        self._errors: list[BaseException] = []

    def run(self, functions: Sequence[Callable[[], None]]) -> None:
        """Run each function in a thread, to its end; raise the first error of one."""
        threads = []
        for function in functions:
            turn = threading.Semaphore(0)
            self._waiting.append(turn)
            threads.append(threading.Thread(target=self._run, args=(function, turn), daemon=True))
            threads[-1].start()
        self._chance.choice(self._waiting).release()
        self._caller.acquire()
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _run(self, function: Callable[[], None], turn: threading.Semaphore) -> None:
        turn.acquire()
        self._own.turn = turn
        try:
            function()
        except BaseException as error:
            self._errors.append(error)
        self._waiting.remove(turn)
        (self._chance.choice(self._waiting) if self._waiting else self._caller).release()

    def switch(self) -> None:
        """Let a random thread continue, perhaps this one; without others do nothing."""
        turn: threading.Semaphore | None = getattr(self._own, "turn", None)
        if turn is None:
            return
        chosen = self._chance.choice(self._waiting)
        if chosen is not turn:
            chosen.release()
            turn.acquire()
