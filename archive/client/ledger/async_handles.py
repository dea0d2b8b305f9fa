"""Ledgers for the asyncio client: a writer and a reader."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from aerotape.archive.client.executors.event_loop import AsyncClosing
from aerotape.archive.client.ledger.handles import ReaderProperties, WriterProperties
from aerotape.archive.client.ledger.reading import LedgerReading
from aerotape.archive.client.ledger.requests import LedgerInfo
from aerotape.archive.client.ledger.writing import LedgerWriting
from aerotape.codecs.entry import Data, Entry

if TYPE_CHECKING:
    from aerotape.archive.client.async_client import AsyncArchiveClient


class AsyncLedgerWriter(WriterProperties, AsyncClosing):
    """The writer of a ledger, as `LedgerWriter`, for one event loop."""

    def __init__(self, client: AsyncArchiveClient, writing: LedgerWriting) -> None:
        """Write to a ledger. Created by `AsyncArchiveClient.create_ledger`."""
        super().__init__(writing)
        self._client = client

    async def add(self, payload: Data) -> int:
        """Add an entry, wait until it is acknowledged and return its id.

        Any number of adds may be awaited at the same time; they are acknowledged together.
        """
        entry_id = await self.add_async(payload)
        await self._client._run(self._writing.acknowledged(self._writing.native.position))
        return entry_id

    async def add_many(self, payloads: Sequence[Data]) -> int:
        """Add entries in order, wait until all are acknowledged, return the id of the last one."""
        last = await self.add_async(*payloads)
        await self.flush()
        return last

    async def add_async(self, *payloads: Data) -> int:
        """Add entries, waiting only for room; return the id of the last one."""
        return await self._client._run(self._writing.push(payloads))

    async def flush(self) -> int:
        """Wait until all adds are acknowledged; return the id of the last entry."""
        return await self._client._run(self._writing.flush())

    async def sync(self) -> int:
        """Force entries to storage; return the last one that is, -1 for none."""
        return await self._client._run(self._writing.sync())

    async def detach(self) -> None:
        """Wait for acknowledgements and leave the ledger open, for another writer. Idempotent."""
        await self._client._run(self._writing.detach())

    async def close(self) -> None:
        """Wait for acknowledgements, sync, and close the ledger permanently. Idempotent."""
        await self._client._run(self._writing.close())


class AsyncLedgerReader(ReaderProperties, AsyncClosing):
    """Reads the entries of a ledger, as `LedgerReader`, in one event loop."""

    def __init__(self, client: AsyncArchiveClient, reading: LedgerReading) -> None:
        """Read a ledger. Created by `AsyncArchiveClient.open_ledger`."""
        super().__init__(reading)
        self._client = client

    async def refresh(self) -> LedgerInfo:
        """Request the state of the ledger, and return it."""
        return await self._client._run(self._reading.refresh())

    def read(self, first: int = 0, last: int | None = None) -> AsyncIterator[Entry]:
        """Iterate over entries that are on storage. Arguments and errors as of the blocking one."""
        return self._entries(first, last, unconfirmed=False)

    def read_unconfirmed(self, first: int = 0, last: int | None = None) -> AsyncIterator[Entry]:
        """As `read`, also of entries that are recorded and may be lost with the archive."""
        return self._entries(first, last, unconfirmed=True)

    async def _entries(
        self, first: int, last: int | None, unconfirmed: bool
    ) -> AsyncIterator[Entry]:
        reading = self._reading
        found = await self._client._run(reading.plan(first, last, unconfirmed=unconfirmed))
        if not found.ids:
            return
        async with self._client.replay(
            reading.info.recording_id, found.position, found.length, follow=False
        ) as messages:
            for entry_id in found.ids:
                yield reading.entry(entry_id, await anext(messages, None))

    async def close(self) -> None:
        """Do nothing: a reader holds nothing open."""
