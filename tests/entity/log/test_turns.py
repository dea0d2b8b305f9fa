"""Tasks that wait for their turn."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import pytest

from aerotape.entity.log.turns import Turns
from aerotape.waiting import Pause, Running, Task, run


def test_order_and_cancellation() -> None:
    """First come, first served; one that is cancelled, before or in its turn, leaves no gap."""
    turns, done = Turns(2), list[int]()

    def work(number: int) -> Task[None]:
        yield Pause()
        done.append(number)

    def failing() -> Task[None]:
        yield Pause()
        raise ValueError("failed")

    first = Running(turns.within(failing()))
    others = [Running(turns.within(work(number))) for number in range(6)]
    for each in (first, *others):
        each.advance()
    others[1].close()
    others[0].close()
    with pytest.raises(ValueError, match="failed"):
        first.advance()
    left = deque(others[2:])
    while left:
        left[-1].advance()  # those that came first are served first, whoever is continued
        for each in list(left):
            each.advance()
            if each.is_done:
                left.remove(each)
    assert sorted(done) == [2, 3, 4, 5]
    assert turns._free == 2
    assert not turns._waiting


def test_threads() -> None:
    """Never more at the same time."""
    turns, lock, now, most = Turns(3), threading.Lock(), 0, 0

    def work() -> Task[None]:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        yield Pause(1_000_000)
        with lock:
            now -= 1

    with ThreadPoolExecutor(20) as threads:
        for each in [threads.submit(run, turns.within(work())) for _ in range(100)]:
            each.result(60)
    assert most == 3
