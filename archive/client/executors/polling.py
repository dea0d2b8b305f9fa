"""The face that never waits: performs steps a little at each turn of a caller's loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from aerotape.archive.client.requests.request import Call, Listing, Pause, Poll, Steps
from aerotape.archive.client.requests.response_errors import items_of, result_of
from aerotape.archive.client.session.control_session import ControlSession
from aerotape.archive.client.session.pending_request import Pending
from aerotape.archive.client.session.response_channel import sent_back

T = TypeVar("T")


class Stepper(Generic[T]):
    """Performs the requests of one sequence of steps over a session. For one thread.

    Attributes:
        is_done: whether the steps have come to their end.
    """

    def __init__(self, session: ControlSession, steps: Steps[T]) -> None:
        self.is_done = False
        self._session = session
        # Steps within steps: the last are those under way.
        self._stack: list[Steps[Any]] = [steps]
        self._result: T | None = None
        self._step: Call[Any] | Listing | Pause | None = None
        self._pending: Pending | None = None
        self._unsent: bytes | None = None
        self._deadline_ns = 0
        self._has_begun = False

    @property
    def result(self) -> T:
        """What the steps have returned, once they are done."""
        assert self.is_done, "asked for once it is done"
        return cast(T, self._result)

    def advance(self) -> bool:
        """Do what can be done now; return whether it was anything.

        Raises:
            AeronTimeoutError: an answer did not come in time.
            ArchiveError: the archive refused.
            ClosedError: the session is over.
            Exception: whatever the steps raise. They are done then.
        """
        if self.is_done:
            return False
        if not self._has_begun:
            self._has_begun = True
            self._resume(None)
            return True
        outcome: Any = None
        try:
            if isinstance(self._step, Pause):
                self._session.service(what=self._step.what)
                if time.monotonic_ns() < self._deadline_ns:
                    return False
            else:
                if not self._is_answered():
                    return False
                outcome = self._outcome()
        except Exception as error:  # for the steps to handle
            self._throw(error)
        else:
            self._resume(outcome)
        return True

    def close(self) -> None:
        """Give up: what was asked for is taken back where that can be. Idempotent."""
        if self._pending is not None and isinstance(self._step, Call | Listing):
            self._session.abandon(self._pending, self._step, self._unsent is None)
            self._pending = None
        self.is_done = True
        while self._stack:
            self._stack.pop().close()

    def _is_answered(self) -> bool:
        assert isinstance(self._step, Call | Listing)
        what = self._step.what
        if self._pending is None:
            count = self._step.count if isinstance(self._step, Listing) else 0
            self._pending, self._unsent = self._session.begin(self._step.message, what, count)
        if self._unsent is not None and self._session.offer(self._unsent, what):
            self._unsent = None
        self._session.service(what=what)
        if self._pending.is_done:
            return True
        if time.monotonic_ns() < self._deadline_ns:
            return False
        if self._unsent is not None:
            self._session.forget(self._pending)
            raise self._session.back_pressure(what)
        self._session.abandon(self._pending, self._step)
        raise self._session.no_answer(self._pending)

    def _outcome(self) -> Any:
        assert self._pending is not None
        if isinstance(self._step, Listing):
            return items_of(self._pending)
        assert isinstance(self._step, Call)
        return result_of(self._step, self._pending)

    def _resume(self, outcome: Any) -> None:
        self._go_on(_sending(outcome))

    def _throw(self, error: Exception) -> None:
        self._go_on(_throwing(error))

    def _go_on(self, resume: Callable[[Steps[Any]], Any]) -> None:
        """Let the innermost steps go on until the next thing to wait for."""
        self._step = self._pending = self._unsent = None
        while True:
            try:
                step = resume(self._stack[-1])
            except StopIteration as end:
                self._stack.pop()
                if not self._stack:
                    self.is_done = True
                    self._result = end.value
                    return
                resume = _sending(end.value)
            except Exception as error:
                self._stack.pop()
                if not self._stack:
                    self.is_done = True
                    raise
                resume = _throwing(error)
            else:
                if not isinstance(step, Call) or step.reply_to is None:
                    break
                self._stack.append(sent_back(self._session, step, step.reply_to))
                resume = _sending(None)
        assert not isinstance(step, Poll), "streams are polled by the steps themselves"
        self._step = step
        wait_ns = step.duration_ns if isinstance(step, Pause) else self._session.timeout_ns
        self._deadline_ns = time.monotonic_ns() + wait_ns


def _sending(value: Any) -> Callable[[Steps[Any]], Any]:
    return lambda steps: steps.send(value)


def _throwing(error: Exception) -> Callable[[Steps[Any]], Any]:
    return lambda steps: steps.throw(error)
