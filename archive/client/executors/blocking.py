"""The blocking executor: performs requests in the caller's thread."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from aerotape.archive.client.executors.step_runner import StepRunner
from aerotape.archive.client.requests.queries import Pages
from aerotape.archive.client.requests.request import (
    AwaitCounter,
    Call,
    CurrentSession,
    Item,
    Listen,
    Listing,
    Pause,
    Poll,
    Step,
    Steps,
)
from aerotape.archive.client.requests.response_errors import items_of, result_of
from aerotape.archive.client.session.control_session import POLL_SLICE_NS, ControlSession
from aerotape.archive.client.session.pending_request import PendingRequest
from aerotape.errors import AeronTimeoutError

P = ParamSpec("P")
T = TypeVar("T")

_REQUEST_TYPE: Final = re.compile(r"(Call|Steps|Pages)\[(.*)\]")


class BlockingRequests:
    """Performs requests and waits for their responses. Thread-safe."""

    def __init__(self, session: ControlSession) -> None:
        self._session = session
        # An archive refuses a second listing of a session while one is active.
        self._listing_lock = threading.Lock()

    def _perform(self, request: Call[T] | Steps[T]) -> T:
        if not isinstance(request, Call):
            return self._run(request)
        return result_of(request, await_request(self._session, request))

    def _list(self, listing: Listing) -> list[Item]:
        with self._listing_lock:
            self._finish_listing()
            return items_of(await_request(self._session, listing))

    def _finish_listing(self) -> None:
        """Wait for the end of an interrupted listing, which the archive continues to send."""
        unfinished = self._session.unfinished_listing
        if unfinished is not None:
            with contextlib.suppress(AeronTimeoutError):
                await_pending(self._session, unfinished)
            self._session.forget(unfinished)
            self._session.unfinished_listing = None

    def _run(self, steps: Steps[T]) -> T:
        """Perform steps one after the other and return what they return."""
        runner = StepRunner(steps)
        for step in runner:
            with runner:
                runner.value = self._do(step)
        return runner.result

    def _do(self, step: Step) -> Any:
        if isinstance(step, Call):
            return self._perform(step)
        if isinstance(step, Listing):
            return self._list(step)
        if isinstance(step, Poll):
            poll = step.subscription.poll
            return step.backlog.take(poll, step.fragment_limit, step.timeout_ns, step.recorded_as)
        if isinstance(step, AwaitCounter):
            return step.value(step.timeout_ns)
        if isinstance(step, CurrentSession):
            return self._session
        if isinstance(step, Listen):
            wait_ns = POLL_SLICE_NS if step.timeout_ns is None else step.timeout_ns
            return self._session.read(min(wait_ns, POLL_SLICE_NS), step.is_enough, step.what)
        return self._pause(step)

    def _pause(self, pause: Pause) -> None:
        if self._session.is_closed:
            time.sleep(pause.duration_ns / 1e9)
        else:
            self._session.read(pause.duration_ns, what=pause.what)


def blocking(
    request: Callable[P, Call[T] | Steps[T]],
) -> Callable[Concatenate[BlockingRequests, P], T]:
    """Return a method that performs a request, of one or several steps, and returns its result."""

    def method(self: BlockingRequests, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._perform(request(*args, **kwargs))

    describe_as(method, request)
    return method


def blocking_pages(
    request: Callable[P, Pages[T]],
) -> Callable[Concatenate[BlockingRequests, P], Iterator[T]]:
    """Return a method that iterates over a listing."""

    def method(self: BlockingRequests, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return _each(self, request(*args, **kwargs))

    describe_as(method, request, returns="Iterator[{}]")
    return method


def _each(requests: BlockingRequests, pages: Pages[T]) -> Iterator[T]:
    while page := requests._run(pages.next()):
        yield from page


def describe_as(
    method: Callable[..., Any], request: Callable[..., Any], returns: str = "{}"
) -> None:
    """Set the name, documentation and signature of a method to those of the request it performs.

    Args:
        returns: the annotation of what it returns, with `{}` for the request's result.
    """
    functools.update_wrapper(method, request)
    del method.__wrapped__  # type: ignore[attr-defined]  # it lacks `self`
    signature = inspect.signature(request)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[own, *signature.parameters.values()],
        # The request is annotated "Call[int]"; its result is the int.
        return_annotation=returns.format(
            _REQUEST_TYPE.sub(r"\2", str(signature.return_annotation))
        ),
    )


def run_pauses(steps: Steps[T]) -> T:
    """Run steps that only pause, as those of `open_session` do, and return what they return."""
    runner = StepRunner(steps)
    for step in runner:
        assert isinstance(step, Pause), "requests need a session"
        with runner:
            time.sleep(step.duration_ns / 1e9)
    return runner.result


def await_request(session: ControlSession, request: Call[Any] | Listing) -> PendingRequest:
    """Send a request and wait until it is done. Each listed item restarts the timeout."""
    pending, data = session.begin(request)
    results: list[int] = []
    try:
        session.send(data, request.what, results)
        await_pending(session, pending)
    except BaseException:
        session.abandon(pending, request, any(result > 0 for result in results))
        raise
    return pending


def await_pending(session: ControlSession, pending: PendingRequest) -> None:
    """Wait until a request is done, reading the response stream."""
    seen, deadline_ns = -1, 0
    while not pending.is_done:
        if len(pending.items) > seen:
            seen, deadline_ns = len(pending.items), time.monotonic_ns() + session.timeout_ns
        slice_ns = min(deadline_ns - time.monotonic_ns(), POLL_SLICE_NS)
        if slice_ns <= 0:
            raise session.no_answer(pending)
        session.read(slice_ns, lambda: pending.is_done, pending.what)
