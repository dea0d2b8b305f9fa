"""The journal of a topic for asyncio: the blocking one, called in threads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Collection, Generator, Iterable, Sequence
from itertools import islice
from typing import Any, Final

from aerotape.codecs.entity.actions import Event, EventPayloadType
from aerotape.context import AsyncClosing
from aerotape.entity.entities import Entities
from aerotape.entity.following.changes import TopicChange
from aerotape.entity.following.subscription import POLL_S, From
from aerotape.entity.log.tail import LogStatistics
from aerotape.entity.log.writer import RecordPosition
from aerotape.entity.records import EventRecord, SnapshotRecord

# Events that a thread takes from a journal at a time.
_BATCH: Final = 256


class AsyncEntities(AsyncClosing):
    """As `Entities`, with coroutines. Created by `AsyncArchiveClient.entities`."""

    def __init__(self, entities: Entities) -> None:
        """Wrap an open topic."""
        self._entities = entities

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self._entities.topic

    @property
    def partitions(self) -> int:
        """The number of the topic's partitions."""
        return self._entities.partitions

    @property
    def statistics(self) -> LogStatistics:
        """Counters of what reads of this topic read from its log."""
        return self._entities.statistics

    async def append(
        self,
        id: str,
        events: Sequence[Event],
        *,
        expect: int | None = None,
        expire_after_ns: int | None = None,
        metadata: Any = None,
        payload_metadata: Any = None,
    ) -> RecordPosition:
        """As `Entities.append`. When it is cancelled, the events may be recorded or not."""
        return await asyncio.to_thread(
            self._entities.append,
            id,
            events,
            expect=expect,
            expire_after_ns=expire_after_ns,
            metadata=metadata,
            payload_metadata=payload_metadata,
        )

    async def append_many(
        self, appends: Iterable[tuple[str, Sequence[Event]]]
    ) -> list[RecordPosition]:
        """As `Entities.append_many`."""
        return await asyncio.to_thread(self._entities.append_many, appends)

    async def save_snapshot(
        self,
        id: str,
        seq_nr: int,
        payload: bytes | None,
        payload_type: EventPayloadType = "binary",
        *,
        metadata: Any = None,
    ) -> RecordPosition:
        """As `Entities.save_snapshot`."""
        return await asyncio.to_thread(
            self._entities.save_snapshot, id, seq_nr, payload, payload_type, metadata=metadata
        )

    async def delete(self, id: str, to_seq_nr: int) -> RecordPosition | None:
        """As `Entities.delete`."""
        return await asyncio.to_thread(self._entities.delete, id, to_seq_nr)

    async def purge(self, id: str) -> RecordPosition:
        """As `Entities.purge`."""
        return await asyncio.to_thread(self._entities.purge, id)

    async def pointer(self, id: str) -> int | None:
        """As `Entities.pointer`."""
        return await asyncio.to_thread(self._entities.pointer, id)

    async def snapshot(self, id: str) -> SnapshotRecord | None:
        """As `Entities.snapshot`."""
        return await asyncio.to_thread(self._entities.snapshot, id)

    async def recover(
        self, id: str
    ) -> tuple[SnapshotRecord | None, AsyncGenerator[EventRecord, None]]:
        """As `Entities.recover`."""
        snapshot, records = await asyncio.to_thread(self._entities.recover, id)
        return snapshot, _events(records)

    async def read(self, id: str, from_seq_nr: int = 1) -> AsyncGenerator[EventRecord, None]:
        """As `Entities.read`; it begins with the first event that is awaited."""
        records = await asyncio.to_thread(self._entities.read, id, from_seq_nr)
        async with contextlib.aclosing(_events(records)) as events:
            async for record in events:
                yield record

    async def subscribe(
        self,
        from_: From = "beginning",
        tags: Collection[str] = (),
        *,
        until_caught_up: bool = False,
    ) -> AsyncGenerator[TopicChange, None]:
        """As `Entities.subscribe`; it begins with the first change that is awaited."""
        subscription = await asyncio.to_thread(
            self._entities.subscribe, from_, tags, until_caught_up=until_caught_up
        )
        try:
            while not subscription.is_over:
                changes = await asyncio.to_thread(subscription.take, _BATCH)
                for change in changes:
                    yield change
                if not changes:
                    await asyncio.sleep(POLL_S)
        finally:
            # A cancelled call may still run in its thread.
            with contextlib.suppress(ValueError):
                await asyncio.to_thread(subscription.close)

    async def close(self) -> None:
        """As `Entities.close`."""
        await asyncio.to_thread(self._entities.close)


async def _events(records: Generator[EventRecord, None, None]) -> AsyncGenerator[EventRecord, None]:
    """Iterate over events that a thread reads, a batch at a time."""
    try:
        while batch := await asyncio.to_thread(lambda: list(islice(records, _BATCH))):
            for record in batch:
                yield record
    finally:
        # A cancelled read may still run in its thread, which then ends the generator.
        with contextlib.suppress(ValueError):
            await asyncio.to_thread(records.close)
