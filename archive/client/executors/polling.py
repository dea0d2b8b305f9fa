"""The non-blocking executor: performs steps a little in each duty cycle of its caller."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, Generic, TypeVar, cast

from aerotape.archive.client.executors.step_runner import StepRunner
from aerotape.archive.client.requests.request import Call, Listing, Pause, Step, Steps
from aerotape.archive.client.requests.response_errors import items_of, result_of
from aerotape.archive.client.session.control_session import ControlSession

T = TypeVar("T")


class PollingExecutor(Generic[T]):
    """Performs one sequence of steps without ever blocking. For one thread.

    The caller advances it once a duty cycle. It polls the session's response stream while it has
    steps to perform. In between the caller does, by `ControlSession.service`.

    Attributes:
        is_done: whether the steps have ended, by returning or by raising.
    """

    def __init__(self, steps: Steps[T], session: ControlSession | None = None) -> None:
        """Create an executor of `Pause` steps; with a session, also of `Call` and `Listing`."""
        self.is_done = False
        self._result: T | None = None
        self._step: Step | None = None
        self._duty_cycles = _duty_cycles(steps, session)

    @property
    def result(self) -> T:
        """The return value of the steps, once they are done."""
        assert self.is_done, "the result is available once the steps are done"
        return cast(T, self._result)

    def advance(self) -> bool:
        """Do the work that is possible now; return whether there was any. Raises as the steps."""
        if self.is_done:
            return False
        try:
            before, self._step = self._step, next(self._duty_cycles)
        except StopIteration as end:
            self.is_done, self._result = True, end.value
            return True
        except BaseException:
            self.is_done = True
            raise
        return self._step is not before

    def close(self) -> None:
        """Cancel: a request that the archive may have granted is undone. Idempotent."""
        self.is_done = True
        self._duty_cycles.close()


def _duty_cycles(steps: Steps[T], session: ControlSession | None) -> Generator[Step, None, T]:
    """Perform steps; each yield ends a duty cycle, with the step that is not done yet."""
    runner = StepRunner(steps)
    for step in runner:
        with runner:
            if isinstance(step, Pause):
                deadline_ns = time.monotonic_ns() + step.duration_ns
                is_over = False
                while not is_over:
                    yield step
                    if session is not None:
                        session.service(what=step.what)
                    is_over = time.monotonic_ns() >= deadline_ns
            else:
                assert session is not None, "steps without a session only pause"
                assert isinstance(step, Call | Listing), "streams are polled by the caller"
                runner.value = yield from _exchanged(session, step)
    return runner.result


def _exchanged(session: ControlSession, request: Call[Any] | Listing) -> Generator[Step, None, Any]:
    pending, data = session.begin(request)
    deadline_ns = time.monotonic_ns() + session.timeout_ns
    is_sent = False
    try:
        while True:
            is_sent = is_sent or session.offer(data, request.what)
            session.service(what=request.what)
            if pending.is_done:
                break
            if time.monotonic_ns() >= deadline_ns:
                if is_sent:
                    raise session.no_answer(pending)
                raise session.back_pressure(request.what)
            yield request
    except BaseException:
        session.abandon(pending, request, is_sent)
        raise
    return result_of(request, pending) if isinstance(request, Call) else items_of(pending)
