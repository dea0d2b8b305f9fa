"""Ledgers for the asyncio client: a writer and a reader."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from aerotape.archive.client.executors.event_loop import AsyncClosing
from aerotape.archive.client.ledger.handles import LedgerProperties, WriterProperties
from aerotape.archive.client.ledger.reading import plan
from aerotape.archive.client.ledger.requests import LedgerInfo, described, info_of
from aerotape.archive.client.ledger.writing import LedgerWriting
from aerotape.codecs.entry import Data, Entry

if TYPE_CHECKING:
    from aerotape.archive.client.async_client import AsyncArchiveClient


class AsyncLedgerWriter(WriterProperties, AsyncClosing):
    """The writer of a ledger, as `LedgerWriter`, for one event loop."""

    def __init__(self, client: AsyncArchiveClient, writing: LedgerWriting) -> None:
        """Write to a ledger. Created by `AsyncArchiveClient.create_ledger`."""
        self._client = client
        self._writing = writing
        self._info = writing.info

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


class AsyncLedgerReader(LedgerProperties, AsyncClosing):
    """Reads the entries of a ledger, as `LedgerReader`, in one event loop."""

    def __init__(self, client: AsyncArchiveClient, info: LedgerInfo, password: bytes) -> None:
        """Read a ledger. Created by `AsyncArchiveClient.open_ledger`."""
        self._client = client
        self._info = info
        self._password = password

    @property
    def is_closed(self) -> bool:
        """Whether the ledger is closed: then nothing is added any more."""
        return self._info.is_closed

    @property
    def last_add_confirmed(self) -> int:
        """The last entry on storage when the archive was last asked, -1 for none."""
        last = self._info.last_add_confirmed
        return -1 if last is None else last

    async def refresh(self) -> LedgerInfo:
        """Request the state of the ledger, and return it."""
        if not self._info.is_closed:
            self._info = info_of(await self._client._run(described(self._info.id)))
        return self._info

    def read(self, first: int = 0, last: int | None = None) -> AsyncIterator[Entry]:
        """Iterate over entries that are on storage. Arguments and errors as of the blocking one."""
        return self._entries(first, last, False)

    def read_unconfirmed(self, first: int = 0, last: int | None = None) -> AsyncIterator[Entry]:
        """As `read`, also of entries that are recorded and may be lost with the archive."""
        return self._entries(first, last, True)

    async def _entries(
        self, first: int, last: int | None, unconfirmed: bool
    ) -> AsyncIterator[Entry]:
        found = await self._client._run(plan(self._info, first, last, unconfirmed=unconfirmed))
        self._info = found.info
        if found.count == 0:
            return
        index = 0
        async with self._client.replay(
            found.info.recording_id, found.position, found.length, follow=False
        ) as messages:
            async for message in messages:
                yield found.entry(index, message.payload, self._password)
                index += 1
                if index == found.count:
                    return
        raise found.missing(index)

    async def close(self) -> None:
        """Do nothing: a reader holds nothing open."""
