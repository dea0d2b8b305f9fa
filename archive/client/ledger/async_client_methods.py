"""The methods of the asyncio client for ledgers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from aerotape.archive.client.executors.event_loop import (
    AsyncRequests,
    Opening,
    asynchronous,
    asynchronous_pages,
)
from aerotape.archive.client.ledger import opening, requests
from aerotape.archive.client.ledger.async_handles import AsyncLedgerReader, AsyncLedgerWriter
from aerotape.archive.client.ledger.requests import AnyLedger, LedgerInfo, LedgerTypeName
from aerotape.archive.client.ledger.writing import LedgerWriting
from aerotape.archive.client.requests.request import Steps
from aerotape.codecs.entry import DigestType

if TYPE_CHECKING:
    from aerotape.archive.client.async_client import AsyncArchiveClient


class AsyncLedgerMethods(AsyncRequests):
    """Those of `LedgerMethods`, with the same arguments and errors.

    What opens a writer or a reader is awaited, or entered with `async with`.
    """

    declare_ledger = asynchronous(opening.declare_ledger)
    ledger_info = asynchronous(requests.ledger_info)
    list_ledgers = asynchronous_pages(requests.list_ledgers)
    delete_ledger = asynchronous(requests.delete_ledger)
    replace_mirror = asynchronous(requests.replace_mirror)

    def create_ledger(
        self,
        type: LedgerTypeName = "PD_JOURNAL",
        qualified_id: AnyLedger | None = None,
        *,
        digest_type: DigestType = "CRC32C",
        password: bytes = b"",
        channel: str | None = None,
        write_quorum: int = 1,
        ack_quorum: int = 1,
        mirrors: Sequence[str] = (),
    ) -> Opening[AsyncLedgerWriter]:
        """Create a ledger and return its writer; see `LedgerMethods.create_ledger`."""
        return self._writer(
            opening.created(
                type,
                qualified_id,
                digest_type,
                password,
                channel,
                write_quorum,
                ack_quorum,
                mirrors,
            )
        )

    def open_ledger_writer(
        self, ledger: AnyLedger, password: bytes = b"", *, channel: str | None = None
    ) -> Opening[AsyncLedgerWriter]:
        """Return a writer that continues an open ledger; see the blocking method."""
        return self._writer(opening.opened_writer(ledger, password, channel))

    def open_ledger(self, ledger: AnyLedger, password: bytes = b"") -> Opening[AsyncLedgerReader]:
        """Recover and close a ledger, and return a reader; see the blocking method."""
        return self._reader_of(opening.recovered(ledger, password), password)

    def open_ledger_read_only(
        self, ledger: AnyLedger, password: bytes = b""
    ) -> Opening[AsyncLedgerReader]:
        """Return a reader of a ledger that may have a writer; see the blocking method."""
        return self._reader_of(opening.opened_read_only(ledger, password), password)

    async def sync_ledger(self, ledger: AnyLedger) -> int:
        """Force what is recorded of a ledger to storage; return its last add confirmed."""
        found = requests.qualified_id(ledger)
        await self._perform(requests.sync_ledger(found))
        last = (await self.ledger_info(found)).last_add_confirmed
        return -1 if last is None else last

    def _writer(self, steps: Steps[LedgerWriting]) -> Opening[AsyncLedgerWriter]:
        async def open_it() -> AsyncLedgerWriter:
            return AsyncLedgerWriter(cast("AsyncArchiveClient", self), await self._run(steps))

        return Opening(open_it)

    def _reader_of(self, steps: Steps[LedgerInfo], password: bytes) -> Opening[AsyncLedgerReader]:
        async def open_it() -> AsyncLedgerReader:
            info = await self._run(steps)
            return AsyncLedgerReader(cast("AsyncArchiveClient", self), info, password)

        return Opening(open_it)
