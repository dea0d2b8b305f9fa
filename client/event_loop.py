"""The runner of tasks in an event loop, and the base of the asyncio client.

A thread of the client reads the response stream while a response is awaited, and notifies the
loop. Requests are sent, and replays read, in the loop, which never blocks.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar, assert_never, cast

from aerotape.client.counter_waits import CounterWaits
from aerotape.client.queries import Pages
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.exchange import exchange
from aerotape.client.session.keep_alive import IdleReader
from aerotape.client.session.request import Call
from aerotape.context import AsyncClosing, Opening
from aerotape.message import Message
from aerotape.waiting import (
    Attempt,
    Blocking,
    CounterValue,
    Done,
    Fragments,
    Pause,
    Responses,
    Task,
    Until,
    Wait,
)

T = TypeVar("T")
C = TypeVar("C", bound=AsyncClosing)
D = TypeVar("D")

# The shortest and the longest delay between polls of what cannot notify the loop.
MIN_POLL_S: Final = 0.0001
MAX_POLL_S: Final = 0.004


class AsyncRequests:
    """Performs requests in the event loop in which it was created. Not thread-safe."""

    def __init__(self, session: ClientSession, idle_interval_ns: int) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._counter_waits = CounterWaits(self._loop)
        self._waiting: dict[asyncio.Future[None], Responses] = {}
        waiting = self._waiting
        # Not methods: neither the session nor the thread may keep an unreferenced client alive.
        session.on_news = partial(_notify_in_loop, self._loop, session, waiting)
        self._reader = IdleReader(
            session, idle_interval_ns, lambda session: session.has_pending or bool(waiting)
        )

    async def _run(self, task: Call[T] | Task[T]) -> T:
        """Run a task, or perform a request, and return the result."""
        if isinstance(task, Call):
            task = exchange(self._session, task)
        try:
            wait = next(task)
            while True:
                try:
                    await self._await(wait)
                except Exception as error:
                    wait = task.throw(error)
                else:
                    wait = next(task)
        except StopIteration as end:
            return cast(T, end.value)
        finally:
            task.close()

    async def _await(self, wait: Wait) -> None:
        match wait:
            case Responses():
                await self._await_responses(wait)
            case Pause():
                await asyncio.sleep(max(wait.deadline_ns - time.monotonic_ns(), 0) / 1e9)
            case Fragments():
                # Before the poll: other tasks run, and a cancellation loses no polled message.
                await asyncio.sleep(0)
                await _poll(wait)
            case CounterValue():
                await self._counter_waits.wait(wait)
            case Blocking():
                await asyncio.to_thread(wait.take)
            case Done():
                await self._await_done(wait)
            case Until() | Attempt():
                await _poll(wait)
            case _:
                assert_never(wait)

    async def _await_responses(self, wait: Responses) -> None:
        if wait.is_enough():
            return
        wait.session.ensure_open(wait.what)
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting[future] = wait
        self._reader.wake()
        late = None
        if wait.deadline_ns is not None:
            timeout_s = max(wait.deadline_ns - time.monotonic_ns(), 0) / 1e9
            late = self._loop.call_later(timeout_s, _set_done, future)
        try:
            await future
        finally:
            del self._waiting[future]
            if late is not None:
                late.cancel()
        if not wait.is_enough():
            wait.session.ensure_open(wait.what)

    async def _await_done(self, wait: Done[Any]) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        wait.on_over = partial(_set_done_in_loop, self._loop, future)
        if not wait.is_over():
            await future
            wait.is_over()

    def _notify(self) -> None:
        _notify(self._session, self._waiting)

    async def _each(self, pages: Pages[T]) -> AsyncIterator[T]:
        while page := await self._run(pages.next()):
            for item in page:
                yield item

    async def _iterate(
        self, task: Task[T], iterate: Callable[[T], AsyncIterator[D]]
    ) -> AsyncGenerator[D, None]:
        """Run a task, and iterate over what a function makes of its result."""
        async with contextlib.aclosing(iterate(await self._run(task))) as found:  # type: ignore[type-var]
            async for each in found:
                yield each

    def _open(self, begin: Callable[[], Task[T]], wrap: Callable[[T], C]) -> Opening[C]:
        """Open a resource by a task, once it is awaited or entered."""

        async def open_it() -> C:
            return wrap(await self._run(begin()))

        return Opening(open_it)

    def _open_stream(self, begin: Callable[[], Task[S]]) -> Opening[AsyncMessages[S]]:
        """Open a stream that is polled, once it is awaited or entered."""
        return self._open(begin, lambda stream: AsyncMessages(stream, self))


async def _poll(wait: Wait) -> None:
    delay_s = MIN_POLL_S
    while not wait.is_over():
        await asyncio.sleep(delay_s)
        delay_s = min(2 * delay_s, MAX_POLL_S)


def _set_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _set_done_in_loop(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(_set_done, future)


_Waiting = dict["asyncio.Future[None]", Responses]


def _notify_in_loop(
    loop: asyncio.AbstractEventLoop, session: ClientSession, waiting: _Waiting
) -> None:
    """Have the loop look at what its tasks wait for. Called by the thread that has read."""
    if waiting:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(_notify, session, waiting)


def _notify(session: ClientSession, waiting: _Waiting) -> None:
    for future, wait in waiting.items():
        if not future.done() and (session.is_closed or wait.is_enough()):
            future.set_result(None)


class PolledStream(Protocol):
    """A replay merge or a persistent subscription."""

    @property
    def has_ended(self) -> bool: ...
    def poll(self) -> list[Message]: ...
    def close(self) -> None: ...


S = TypeVar("S", bound=PolledStream)


class AsyncMessages(AsyncClosing, AsyncIterator[Message], Generic[S]):
    """The messages of a stream that is polled, in an event loop.

    Attributes:
        stream: the stream, for its properties; only this object polls it.
    """

    def __init__(self, stream: S, requests: AsyncRequests) -> None:
        """Read an open stream."""
        self.stream: S = stream
        self._requests = requests
        self._batch: Iterator[Message] = iter(())

    def __aiter__(self) -> AsyncMessages[S]:
        return self

    async def __anext__(self) -> Message:
        message = next(self._batch, None)
        delay_s = 0.0
        while message is None:
            await asyncio.sleep(delay_s)
            batch = self.stream.poll()
            if not batch and self.stream.has_ended:
                raise StopAsyncIteration
            self._batch = iter(batch)
            message = next(self._batch, None)
            self._requests._reader.wake()
            delay_s = min(max(2 * delay_s, MIN_POLL_S), MAX_POLL_S)
        return message

    async def close(self) -> None:
        """Close the stream. Idempotent."""
        # Closing may wait for threads.
        await asyncio.shield(self._requests._loop.run_in_executor(None, self.stream.close))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.stream!r}>"
