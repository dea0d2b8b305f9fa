"""The non-blocking executor: performs steps a little in each duty cycle of its caller."""

from __future__ import annotations

import time
from typing import Any, Generic, TypeVar

from aerotape.archive.client.executors.step_runner import StepRunner
from aerotape.archive.client.requests.request import Call, Listing, Pause, Step, Steps
from aerotape.archive.client.requests.response_errors import items_of, result_of
from aerotape.archive.client.session.control_session import ControlSession
from aerotape.archive.client.session.pending_request import PendingRequest

T = TypeVar("T")


class PollingExecutor(Generic[T]):
    """Performs one sequence of steps without ever blocking. For one thread.

    The caller advances it once a duty cycle, first to open a session, then for requests:

    >>> opening = PollingExecutor(open_session(aeron, request_channel=channel, ...))
    >>> while not opening.is_done:
    ...     opening.advance()
    >>> session, archive_id = opening.result
    >>> lookup = PollingExecutor(list_recording(7), session)
    >>> position = PollingExecutor(performed(max_recorded_position(7)), session)

    It polls the session's response stream while it has steps to perform. In between the caller
    polls it, by `ControlSession.service`, and takes errors and signals without a request from the
    session: `take_errors`, `signals`.

    Attributes:
        is_done: whether the steps have ended, by returning or by raising.
    """

    def __init__(self, steps: Steps[T], session: ControlSession | None = None) -> None:
        """Create an executor; the steps start with the first `advance`.

        Args:
            steps: the generator of steps, which may only pause and send requests.
            session: the session that the requests go to; None for steps that only pause, as
                those of `open_session`.
        """
        self.is_done = False
        self._session = session
        self._runner = StepRunner(steps)
        self._step: Step | None = None
        self._pending: PendingRequest | None = None
        self._unsent: bytes | None = None
        self._deadline_ns = 0

    @property
    def result(self) -> T:
        """The return value of the steps, once they are done."""
        assert self.is_done, "the result is available once the steps are done"
        return self._runner.result

    def advance(self) -> bool:
        """Do the work that is possible now; return whether there was any.

        Raises:
            AeronTimeoutError: no response in time.
            ArchiveError: the archive refused.
            ClosedError: the session has ended.
            Exception: any error that the steps raise, which ends them.
        """
        if self.is_done:
            return False
        if self._step is not None:
            try:
                if not self._perform(self._step):
                    return False
            except Exception as error:  # for the steps to handle
                self._runner.error = error
        self._begin_next_step()
        return True

    def close(self) -> None:
        """Cancel: a request that the archive may have granted is undone. Idempotent."""
        if self._pending is not None and isinstance(self._step, Call | Listing):
            self._connected.abandon(self._pending, self._step, self._unsent is None)
            self._pending = None
        self.is_done = True
        self._runner.close()

    @property
    def _connected(self) -> ControlSession:
        assert self._session is not None, "steps without a session only pause"
        return self._session

    def _begin_next_step(self) -> None:
        self._step = self._pending = self._unsent = None
        try:
            self._step = self._runner.next_step()
        except BaseException:
            self.is_done = True
            raise
        if self._step is None:
            self.is_done = True
            return
        step = self._step
        wait_ns = step.duration_ns if isinstance(step, Pause) else self._connected.timeout_ns
        self._deadline_ns = time.monotonic_ns() + wait_ns

    def _perform(self, step: Step) -> bool:
        """Return whether the step is done; the runner then has its result."""
        if isinstance(step, Pause):
            if self._session is not None:
                self._session.service(what=step.what)
            return time.monotonic_ns() >= self._deadline_ns
        assert isinstance(step, Call | Listing), "streams are polled by the caller"
        pending = self._completed(step)
        if pending is None:
            return False
        self._runner.value = (
            result_of(step, pending) if isinstance(step, Call) else items_of(pending)
        )
        return True

    def _completed(self, step: Call[Any] | Listing) -> PendingRequest | None:
        """Try to send the request; return it once its response has arrived."""
        session = self._connected
        if self._pending is None:
            count = step.count if isinstance(step, Listing) else 0
            self._pending, self._unsent = session.begin(step.message, step.what, count)
        if self._unsent is not None and session.offer(self._unsent, step.what):
            self._unsent = None
        session.service(what=step.what)
        if self._pending.is_done:
            return self._pending
        if time.monotonic_ns() < self._deadline_ns:
            return None
        if self._unsent is not None:
            session.forget(self._pending)
            raise session.back_pressure(step.what)
        session.abandon(self._pending, step)
        raise session.no_answer(self._pending)
