"""Replays and recording signals, iterated in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from aerotape.archive.client.executors.event_loop import (
    MAX_POLL_S,
    MIN_POLL_S,
    AsyncClosing,
    AsyncRequests,
)
from aerotape.archive.client.replay.replay import ReplayProperties
from aerotape.archive.client.replay.signal_stream import SignalReader
from aerotape.archive.client.replay.signals import RecordingSignalEvent, SignalFilter
from aerotape.archive.client.replay.stream import ReplayStream
from aerotape.message import Message

if TYPE_CHECKING:
    from aerotape.archive.client.live.persistent_subscription import PersistentSubscription
    from aerotape.archive.client.live.replay_merge import ReplayMerge


class AsyncReplay(ReplayProperties, AsyncClosing, AsyncIterator[Message]):
    """The messages of a replay, in order. Iterate it once, in one task.

    As `Replay`, with `async for` and `async with`. Cancelling the reader loses no message:
    iterate again to continue.
    """

    def __init__(self, stream: ReplayStream, requests: AsyncRequests) -> None:
        """Read an open stream. Created by `AsyncArchiveClient.replay`."""
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


class AsyncSignals(SignalReader, AsyncClosing, AsyncIterator[RecordingSignalEvent]):
    """The signals that arrive from its creation on, each once, oldest first.

    As `Signals`, with `async for` and `async with`.
    """

    def __init__(
        self, requests: AsyncRequests, wanted: SignalFilter, timeout_ns: int | None
    ) -> None:
        """Start. Created by `AsyncArchiveClient.signals`."""
        super().__init__(requests._session, wanted, timeout_ns)
        self._requests = requests

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RecordingSignalEvent:
        event = await self._requests._run(self._next())
        if event is None:
            await self.close()
            raise StopAsyncIteration
        return event

    async def close(self) -> None:
        """Take no more signals. Idempotent."""
        self._end()
        self._requests._notify_news()


S = TypeVar("S", "ReplayMerge", "PersistentSubscription")


class AsyncMessages(AsyncClosing, AsyncIterator[Message], Generic[S]):
    """The messages of a stream that is read in steps, in an event loop.

    Attributes:
        stream: the stream, for its properties; only this object polls it.
    """

    def __init__(self, stream: S, requests: AsyncRequests) -> None:
        """Read an open stream."""
        self.stream: S = stream
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
        # Closing may wait for threads.
        await asyncio.shield(self._requests._loop.run_in_executor(None, self.stream.close))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.stream!r}>"
