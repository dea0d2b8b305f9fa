"""The asyncio executor: performs requests without blocking the event loop.

A thread of the client reads the response stream while a response is awaited, and passes it to the
loop. Requests are sent, and replays read, in the loop, which never blocks.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from functools import partial
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar

from aerotape.archive.client.executors.blocking import describe_as
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
from aerotape.archive.client.session.control_session import ControlSession
from aerotape.archive.client.session.keep_alive import IdleReader
from aerotape.archive.client.session.pending_request import PendingRequest

P = ParamSpec("P")
T = TypeVar("T")

_RETRY_S: Final = 0.001
# The shortest and the longest delay between polls of an idle stream.
MIN_POLL_S: Final = 0.0001
MAX_POLL_S: Final = 0.004


class AsyncRequests:
    """Performs requests in the event loop in which it was created. Not thread-safe."""

    def __init__(self, session: ControlSession, idle_interval_ns: int) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        # An archive refuses a second listing of a session while one is active.
        self._listing_lock = asyncio.Lock()
        self._news: set[asyncio.Future[None]] = set()
        session.on_news = partial(self._in_loop, self._notify_news)
        news = self._news
        # Not a method: the thread must not keep an unreferenced client alive.
        self._reader = IdleReader(
            session, idle_interval_ns, lambda session: session.has_pending or bool(news)
        )

    # -- called by the reading thread ------------------------------------------------------------

    def _in_loop(self, call: Callable[..., None], *args: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(call, *args)

    def _notify_news(self) -> None:
        for future in self._news:
            _set_done(future)

    # -- requests --------------------------------------------------------------------------------

    async def _perform(self, request: Call[T] | Steps[T]) -> T:
        if not isinstance(request, Call):
            return await self._run(request)
        return result_of(request, await self._request(request))

    async def _list(self, listing: Listing) -> list[Item]:
        async with self._listing_lock:
            await self._finish_listing()
            return items_of(await self._request(listing))

    async def _finish_listing(self) -> None:
        """Wait for the end of a cancelled listing, which the archive continues to send."""
        unfinished = self._session.unfinished_listing
        if unfinished is not None:
            deadline_ns = time.monotonic_ns() + self._session.timeout_ns
            while not unfinished.is_done and time.monotonic_ns() < deadline_ns:
                self._reader.wake()
                await asyncio.sleep(_RETRY_S)
            self._session.forget(unfinished)
            self._session.unfinished_listing = None

    async def _request(self, request: Call[Any] | Listing) -> PendingRequest:
        session = self._session
        done: asyncio.Future[None] = self._loop.create_future()
        pending, data = session.begin(request, partial(self._in_loop, _set_done, done))
        is_sent = False
        try:
            await self._send(data, request.what)
            is_sent = True
            self._reader.wake()
            seen = -1
            # Each listed item restarts the timeout.
            while not done.done() and len(pending.items) > seen:
                seen = len(pending.items)
                await asyncio.wait((done,), timeout=session.timeout_ns / 1e9)
            if not done.done():
                raise session.no_answer(pending)
        except BaseException:
            session.abandon(pending, request, is_sent)
            raise
        return pending

    async def _send(self, data: bytes, what: str) -> None:
        deadline_ns = time.monotonic_ns() + self._session.timeout_ns
        while not self._session.offer(data, what):
            if time.monotonic_ns() >= deadline_ns:
                raise self._session.back_pressure(what)
            await asyncio.sleep(_RETRY_S)

    async def _run(self, steps: Steps[T]) -> T:
        """Perform steps one after the other and return what they return."""
        runner = StepRunner(steps)
        for step in runner:
            with runner:
                runner.value = await self._do(step)
        return runner.result

    async def _do(self, step: Step) -> Any:
        if isinstance(step, Call):
            return await self._perform(step)
        if isinstance(step, Listing):
            return await self._list(step)
        if isinstance(step, Poll):
            return await _poll(step)
        if isinstance(step, AwaitCounter):
            return await _await_counter(step)
        if isinstance(step, CurrentSession):
            return self._session
        if isinstance(step, Listen):
            return await self._listen(step)
        return await self._pause(step)

    async def _pause(self, pause: Pause) -> None:
        self._session.ensure_open(pause.what)
        self._reader.wake()
        await asyncio.sleep(pause.duration_ns / 1e9)

    async def _listen(self, step: Listen) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        self._news.add(future)
        self._reader.wake()
        try:
            timeout_s = None if step.timeout_ns is None else step.timeout_ns / 1e9
            await asyncio.wait((future,), timeout=timeout_s)
        finally:
            self._news.discard(future)


def _set_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _await_counter(step: AwaitCounter) -> int | None:
    deadline_ns = time.monotonic_ns() + step.timeout_ns
    delay_s = MIN_POLL_S
    while True:
        value = step.value(0)
        if value is None or value >= step.least or time.monotonic_ns() >= deadline_ns:
            return value
        await asyncio.sleep(delay_s)
        delay_s = min(2 * delay_s, MAX_POLL_S)


async def _poll(step: Poll) -> None:
    deadline_ns = time.monotonic_ns() + step.timeout_ns
    delay_s = 0.0
    while True:
        # Before the poll: other tasks run, and a cancellation loses no polled message.
        await asyncio.sleep(delay_s)
        step.backlog.take(step.subscription.poll, step.fragment_limit, 0, step.recorded_as)
        if step.backlog or time.monotonic_ns() >= deadline_ns:
            return
        delay_s = min(max(2 * delay_s, MIN_POLL_S), MAX_POLL_S)


def asynchronous(
    request: Callable[P, Call[T] | Steps[T]],
) -> Callable[Concatenate[AsyncRequests, P], Awaitable[T]]:
    """As `blocking`, but return a coroutine method."""

    async def method(self: AsyncRequests, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._perform(request(*args, **kwargs))

    describe_as(method, request)
    return method


def asynchronous_pages(
    request: Callable[P, Pages[T]],
) -> Callable[Concatenate[AsyncRequests, P], AsyncIterator[T]]:
    """Return a method that iterates asynchronously over a listing."""

    def method(self: AsyncRequests, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return _each(self, request(*args, **kwargs))

    describe_as(method, request, returns="AsyncIterator[{}]")
    return method


async def _each(requests: AsyncRequests, pages: Pages[T]) -> AsyncIterator[T]:
    while page := await requests._run(pages.next()):
        for item in page:
            yield item


class AsyncClosing:
    """Lets a class with an asynchronous `close` be used in an `async with` statement."""

    async def close(self) -> None:
        """Release the resources. Idempotent."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


C = TypeVar("C", bound=AsyncClosing)


class Opening(Generic[C]):
    """A resource that is being opened: await it, or enter it with `async with`, once."""

    def __init__(self, open_it: Callable[[], Awaitable[C]]) -> None:
        self._open_it = open_it
        self._opened: C | None = None

    def __await__(self) -> Generator[Any, None, C]:
        return self._open_it().__await__()

    async def __aenter__(self) -> C:
        self._opened = await self._open_it()
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.close()
