"""Replays and recording signals, iterated in an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Generic, Protocol, Self, TypeVar

from aerotape.archive.client.asynchronous import (
    MAX_POLL_S,
    MIN_POLL_S,
    AsyncClosing,
    AsyncRequests,
)
from aerotape.archive.client.replay import ReplayFacts
from aerotape.archive.client.replay_stream import ReplayStream
from aerotape.archive.client.signals import RecordingSignalEvent, SignalFilter, SignalQueue
from aerotape.errors import AeronTimeoutError
from aerotape.message import Message


class AsyncReplay(ReplayFacts, AsyncClosing, AsyncIterator[Message]):
    """The messages of a replay, in order. Iterate it once, in one task.

    As `Replay`, with `async for` and `async with`. Cancelling whoever iterates loses no message:
    iterate again to go on.
    """

    def __init__(self, stream: ReplayStream, requests: AsyncRequests) -> None:
        """Read a stream that has begun. Made by `AsyncArchiveClient.replay`."""
        super().__init__(stream)
        self._requests = requests

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        backlog = self._stream.backlog
        if not backlog:
            await self._requests._run(self._stream.fetch())
            if not backlog:
                raise StopAsyncIteration
        return backlog.next_message()

    async def close(self) -> None:
        """Stop the replay if it has not ended, and close its subscription. Idempotent."""
        await self._requests._run(self._stream.stop())


class AsyncSignals(AsyncClosing, AsyncIterator[RecordingSignalEvent]):
    """The signals that come from the moment this is made, each once, oldest first.

    As `Signals`, with `async for` and `async with`.
    """

    def __init__(
        self, requests: AsyncRequests, wanted: SignalFilter, timeout_ns: int | None
    ) -> None:
        """Begin. Made by `AsyncArchiveClient.signals`."""
        self._requests = requests
        self._wanted = wanted
        self._timeout_ns = timeout_ns
        self._queue = SignalQueue(wanted)
        self._is_closed = False
        requests._session.add_signal_queue(self._queue)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RecordingSignalEvent:
        event = await next_signal(
            self._requests, self._queue, self._wanted, self._timeout_ns, lambda: self._is_closed
        )
        if event is None:
            await self.close()
            raise StopAsyncIteration
        return event

    async def close(self) -> None:
        """Take no more signals. Idempotent."""
        self._is_closed = True
        self._requests._session.remove_signal_queue(self._queue)
        self._requests._tell_news()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._wanted}{' closed' if self._is_closed else ''}>"


class SteppedStream(Protocol):
    """A stream read in steps, none of which waits: a replay merge, a persistent subscription."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come."""
        ...

    def poll(self) -> list[Message]:
        """Go on, and return the messages that have come."""
        ...

    def close(self) -> None: ...


S = TypeVar("S", bound=SteppedStream)


class AsyncMessages(AsyncClosing, AsyncIterator[Message], Generic[S]):
    """The messages of a stream that is read in steps, in an event loop.

    Attributes:
        stream: the stream; read how it stands there, and poll it only here.
    """

    def __init__(self, stream: S, requests: AsyncRequests) -> None:
        """Read a stream that has begun."""
        self.stream = stream
        self._requests = requests
        self._batch: Iterator[Message] = iter(())

    def __aiter__(self) -> Self:
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
        # It may have threads to wait for.
        await asyncio.shield(self._requests._loop.run_in_executor(None, self.stream.close))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.stream!r}>"


async def next_signal(
    requests: AsyncRequests,
    queue: SignalQueue,
    wanted: SignalFilter,
    timeout_ns: int | None,
    is_over: Callable[[], bool] = lambda: False,
) -> RecordingSignalEvent | None:
    """Wait for a signal that is wanted and take it; None once the client has been closed.

    Args:
        is_over: whether nobody waits for one any more: None is returned then too.

    Raises:
        AeronTimeoutError: there is none in time.
        ClosedError: the archive has gone away.
    """
    what = f"await {wanted}"
    session = requests._session
    deadline_ns = None if timeout_ns is None else time.monotonic_ns() + timeout_ns
    while not is_over():
        event = queue.take(wanted)
        if event is not None:
            return event
        if session.was_closed_here:
            break
        session.ensure_open(what)
        remaining_s = None
        if deadline_ns is not None and timeout_ns is not None:
            remaining_s = (deadline_ns - time.monotonic_ns()) / 1e9
            if remaining_s <= 0:
                raise AeronTimeoutError(f"cannot {what}: none within {timeout_ns / 1e9:g} s")
        await requests._await_news(remaining_s)
    return None
