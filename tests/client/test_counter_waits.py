"""Waits for counters in an event loop."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import pytest

from aerotape.client.counter_waits import CounterWaits
from aerotape.errors import ClosedError
from aerotape.waiting import CounterValue

COUNTER = (7, 8)
SECOND_NS = 1_000_000_000


class Counters:
    """Counters with values that a test sets; None: freed.

    Attributes:
        reads: how often one was read.
    """

    def __init__(self) -> None:
        self.values: dict[tuple[int, int], int | None] = {COUNTER: 0, (9, 9): 0}
        self.is_closed = False
        self.reads = 0

    def await_value(self, id: int, registration_id: int, least: int, timeout_ns: int) -> int | None:
        assert timeout_ns < SECOND_NS // 1000, "others wait for the loop"
        self.reads += 1
        if self.is_closed:
            raise ClosedError("the client is closed")
        return self.values[id, registration_id]


class Rig:
    """Waits of the running loop, for counters of a test."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.waits = CounterWaits(asyncio.get_running_loop())

    def begin(
        self, least: int, timeout_ns: int = 60 * SECOND_NS, counter: tuple[int, int] = COUNTER
    ) -> asyncio.Task[int | None]:
        """Begin a wait, which returns the value."""
        counters: Any = self.counters

        async def value() -> int | None:
            wait = CounterValue(counters, counter, least, timeout_ns)
            await self.waits.wait(wait)
            return wait.value

        return asyncio.create_task(value())


def test_waits_end_in_any_order() -> None:
    """Each ends once its value is reached, and not before."""

    async def main() -> None:
        rig = Rig()
        goals = list(range(1, 101))
        random.Random(1).shuffle(goals)
        waits = {each: rig.begin(each) for each in goals}
        waits_of_other = rig.begin(1, counter=(9, 9))
        for value in (1, 40, 41, 100):
            await asyncio.sleep(0.01)
            rig.counters.values[COUNTER] = value
            await asyncio.wait([waits[value]], timeout=10)
            assert {each for each in goals if waits[each].done()} == set(range(1, value + 1))
        assert not waits_of_other.done()
        rig.counters.values[9, 9] = 1
        assert await waits_of_other == 1

    asyncio.run(main())


def test_a_look_reads_each_counter_once() -> None:
    """Hundreds of waits for a counter cost what one does."""

    async def main() -> None:
        rig = Rig()
        waits = [rig.begin(1) for _ in range(500)]
        await asyncio.sleep(0)
        before = rig.counters.reads
        rig.waits._look()
        assert rig.counters.reads == before + 1
        rig.counters.values[COUNTER] = 1
        assert await asyncio.gather(*waits) == [1] * 500

    asyncio.run(main())


def test_a_time_that_passes() -> None:
    """The value is the one at the end."""

    async def main() -> None:
        rig = Rig()
        wait = rig.begin(10, SECOND_NS // 20)
        await asyncio.sleep(0.01)
        rig.counters.values[COUNTER] = 4
        began = time.monotonic()
        assert await wait == 4
        assert time.monotonic() - began < 5

    asyncio.run(main())


def test_a_cancelled_wait_ends_at_once() -> None:
    """Others continue."""

    async def main() -> None:
        rig = Rig()
        cancelled, other = rig.begin(1), rig.begin(2)
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        rig.counters.values[COUNTER] = 2
        assert await other == 2
        assert not rig.waits._goals

    asyncio.run(main())


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_counter_that_is_gone(is_closed: bool) -> None:
    """All its waits end: without a value, or with the error of the closed client."""

    async def main() -> None:
        rig = Rig()
        waits = [rig.begin(least) for least in (1, 2)]
        await asyncio.sleep(0.01)
        rig.counters.values[COUNTER] = None
        rig.counters.is_closed = is_closed
        found = await asyncio.gather(*waits, return_exceptions=True)
        assert [None if each is None else type(each) for each in found] == (
            [ClosedError] * 2 if is_closed else [None] * 2
        )

    asyncio.run(main())


def test_idle_waits_look_rarely() -> None:
    """A counter that does not move for long is not polled without pause."""

    async def main() -> None:
        rig = Rig()
        wait = rig.begin(1)
        await asyncio.sleep(0.1)
        before = rig.counters.reads
        await asyncio.sleep(0.2)
        assert rig.counters.reads - before < 100
        wait.cancel()

    asyncio.run(main())
