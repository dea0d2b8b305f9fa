"""Tasks and their runners: in the caller's thread, in duty cycles, in an event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from support.daemon.scripted_session import ScriptedStreams, ok, session_over

from aerotape.client.event_loop import AsyncRequests
from aerotape.client.session.exchange import exchange
from aerotape.client.session.request import Call, relevant_id
from aerotape.codecs.generated import archive as codecs
from aerotape.message import MessageBuffer
from aerotape.waiting import (
    Attempt,
    BackgroundTasks,
    Blocking,
    CounterValue,
    Done,
    Fragments,
    Pause,
    Responses,
    Running,
    Task,
    Until,
    run,
)

Runner = Callable[[Callable[[], Task[Any]]], Any]


def in_duty_cycles(begin: Callable[[], Task[Any]]) -> Any:
    """Continue a task until it ends."""
    running = Running(begin())
    while not running.is_done:
        running.advance()
    return running.result


def in_event_loop(begin: Callable[[], Task[Any]]) -> Any:
    """Await a task."""

    async def main() -> Any:
        requests = AsyncRequests(session_over(ScriptedStreams()), 1_000_000_000)
        try:
            async with asyncio.timeout(30):
                return await requests._run(begin())
        finally:
            requests._reader.close()

    return asyncio.run(main())


def in_thread(begin: Callable[[], Task[Any]]) -> Any:
    """Block this thread."""
    return run(begin())


RUNNERS = pytest.mark.parametrize("runner", [in_thread, in_duty_cycles, in_event_loop])


class Counters:
    """A counter that rises with each read."""

    def __init__(self) -> None:
        self.value = 0

    def await_value(self, *_: int) -> int:
        self.value += 1
        return self.value


class Stream:
    """A subscription that has a message at the third poll."""

    def __init__(self) -> None:
        self.polls = 0

    def poll(self, *_: object) -> list[tuple[object, ...]]:
        self.polls += 1
        return [(b"payload", 64, 1, 2, 3, 4, 5, 6, 0)] if self.polls == 3 else []


@RUNNERS
def test_every_kind_of_wait(runner: Runner) -> None:
    """Each runner ends each wait, and the task finds the outcome in it."""
    counters: Any = Counters()
    stream: Any = Stream()
    session = session_over(ScriptedStreams())

    def task() -> Task[list[object]]:
        found: list[object] = []
        yield Pause(1_000_000)
        while counters.value < 3:
            reaching = CounterValue(counters, (7, 8), 3, 10_000_000_000)
            yield reaching
        found.append(reaching.value)
        backlog = MessageBuffer()
        while not backlog:
            yield Fragments(stream, backlog, 10, 10_000_000_000, None)
        found.append(backlog.next_message().payload)
        answers = iter([None, False, "at last"])
        until = Until(lambda: next(answers), every_ns=1_000)
        yield until
        found.append(until.value)
        attempt = Attempt(lambda wait_ns: "attempted", 1_000_000)
        yield attempt
        found.append(attempt.value)
        blocking = Blocking(lambda: "called")
        yield blocking
        found.append(blocking.value)
        yield Responses(session, "wait", 1_000_000)
        done = Done[str]()
        threading.Timer(0.01, done.set, ("reported",)).start()
        yield done
        found.append(done.result)
        return found

    assert runner(task) == [3, b"payload", "at last", "attempted", "called", "reported"]


@RUNNERS
def test_an_error_of_a_wait_is_raised_in_the_task(runner: Runner) -> None:
    """The task may handle it and continue."""

    def failing() -> bool:
        raise ValueError("refused")

    def task() -> Task[str]:
        try:
            yield Until(failing)
        except ValueError as error:
            yield Pause()
            return f"handled: {error}"
        return "not raised"

    assert runner(task) == "handled: refused"


@RUNNERS
def test_a_failure_of_other_work_is_raised_in_the_task_that_waits(runner: Runner) -> None:
    """As an error of any wait."""
    done = Done[str]()
    done.fail(ValueError("failed"))

    def task() -> Task[str]:
        yield done
        return done.result

    with pytest.raises(ValueError, match="failed"):
        runner(task)


def test_a_task_that_waits_for_another_one_is_continued_soon() -> None:
    """The end of the other one does not wake the archive, so the owner wants a duty cycle."""
    done, tasks = Done[int](), BackgroundTasks()
    found: list[int] = []

    def task() -> Task[None]:
        yield done
        found.append(done.result)

    tasks.start(task())
    tasks.do_work()
    assert not found
    assert tasks.wants_within_ns is not None
    done.set(5)
    tasks.do_work()
    assert found == [5]
    assert tasks.wants_within_ns is None


@RUNNERS
def test_an_interrupt_closes_the_task(runner: Runner) -> None:
    """The task cleans up, and does not handle it as an error."""
    log: list[str] = []

    class Interrupt(BaseException):
        pass

    def interrupted() -> bool:
        raise Interrupt

    def task() -> Task[None]:
        try:
            yield Until(interrupted)
        except Exception:
            log.append("handled")
        finally:
            log.append("cleaned up")

    with pytest.raises(Interrupt):
        runner(task)
    assert log == ["cleaned up"]


def test_a_cancelled_task_cleans_up() -> None:
    """Closing it in a duty cycle, and cancelling it in an event loop."""
    log: list[str] = []

    def task() -> Task[None]:
        try:
            yield Pause(60_000_000_000)
        finally:
            log.append("cleaned up")

    running = Running(task())
    assert running.advance()
    assert not running.advance()
    running.close()
    assert running.is_done
    with pytest.raises(TimeoutError):

        async def main() -> None:
            requests = AsyncRequests(session_over(ScriptedStreams()), 1_000_000_000)
            try:
                async with asyncio.timeout(0.01):
                    await requests._run(task())
            finally:
                requests._reader.close()

        asyncio.run(main())
    assert log == ["cleaned up", "cleaned up"]


def test_a_condition_that_never_holds_is_late() -> None:
    """The task finds that there is no value."""

    def task() -> Task[object]:
        until: Until[object] = Until(lambda: None, time.monotonic_ns() + 1_000_000)
        yield until
        return until.value

    assert run(task()) is None


def test_several_requests_are_in_flight_on_one_session() -> None:
    """Responses in any order reach the task that sent the request."""
    streams = ScriptedStreams()
    session = session_over(streams, 20_000_000_000)
    first, second = (
        Running(exchange(session, Call(codecs.StopPositionRequest(), "ask", relevant_id)))
        for _ in range(2)
    )
    for running in (first, second):
        running.advance()
    streams.push(ok(streams.requests[1], 22))
    first.advance()
    second.advance()
    assert (first.is_done, second.is_done, second.result) == (False, True, 22)
    streams.push(ok(streams.requests[0], 11))
    first.advance()
    assert first.result == 11
