"""Waiting for counters in an event loop: one look reads each counter once for all its waits."""

from __future__ import annotations

import asyncio
import time
from heapq import heappop, heappush
from itertools import count
from typing import Final

from aerotape.waiting import CounterValue

# The loop only sleeps for whole milliseconds, and what is awaited often takes less. So for this
# long after the last event it looks again and again, together with what else there is to do. When
# nothing has changed since the last look, a look takes a moment, in native code, in which the
# processor is free for those who move the counter.
_BUSY_NS: Final = 500_000
_MOMENT_NS: Final = 50_000
_MIN_DELAY_S: Final = 0.0005
_MAX_DELAY_S: Final = 0.004

_Goal = tuple[int, int, CounterValue, "asyncio.Future[None]"]


class CounterWaits:
    """The waits for counters of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # By counter, the goals by the least value.
        self._goals: dict[tuple[int, int], list[_Goal]] = {}
        self._numbers = count()
        self._next_look: asyncio.Handle | None = None
        self._busy_until_ns = 0
        self._is_quiet = False
        self._delay_s = _MIN_DELAY_S

    async def wait(self, wait: CounterValue) -> None:
        """Wait until one is over."""
        if wait.is_over():
            return
        ended: asyncio.Future[None] = self._loop.create_future()
        goal = wait.least, next(self._numbers), wait, ended
        heappush(self._goals.setdefault(wait.counter, []), goal)
        self._look_soon()
        timeout_s = max(wait.deadline_ns - time.monotonic_ns(), 0) / 1e9
        late = self._loop.call_later(timeout_s, _end, ended)
        try:
            await ended
        finally:
            late.cancel()
            ended.cancel()
        if wait.value is not None and wait.value < wait.least:
            wait.take(0)

    def _look_soon(self) -> None:
        self._note_event()
        if isinstance(self._next_look, asyncio.TimerHandle):
            self._next_look.cancel()
            self._next_look = None
        if self._next_look is None:
            self._next_look = self._loop.call_soon(self._look)

    def _note_event(self) -> None:
        self._busy_until_ns = time.monotonic_ns() + _BUSY_NS
        self._is_quiet = False
        self._delay_s = _MIN_DELAY_S

    def _look(self) -> None:
        self._next_look = None
        is_busy = time.monotonic_ns() < self._busy_until_ns
        timeout_ns = _MOMENT_NS if is_busy and self._is_quiet else 0
        self._is_quiet = True
        for counter, goals in list(self._goals.items()):
            if self._end_those(goals, timeout_ns):
                del self._goals[counter]
            timeout_ns = 0
        if not self._goals:
            return
        if is_busy:
            self._next_look = self._loop.call_soon(self._look)
        else:
            self._next_look = self._loop.call_later(self._delay_s, self._look)
            self._delay_s = min(2 * self._delay_s, _MAX_DELAY_S)

    def _end_those(self, goals: list[_Goal], timeout_ns: int) -> bool:
        """End the waits of one counter that are over; return whether these were all.

        Args:
            timeout_ns: how long to wait for the first of them.
        """
        value: int | None = None
        failure: Exception | None = None
        is_read = False
        while goals:
            least, _, wait, ended = goals[0]
            if not ended.done():
                if not is_read:
                    is_read = True
                    try:
                        wait.take(timeout_ns)
                    except Exception as error:
                        failure = error
                    value = wait.value
                if failure is not None:
                    ended.set_exception(failure)
                elif value is None or value >= least:
                    wait.value = value
                    ended.set_result(None)
                else:
                    return False
                self._note_event()
            heappop(goals)
        return True


def _end(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)
