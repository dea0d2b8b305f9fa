"""Ledgers in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from support.daemon.archives import ServedArchive

import aerotape
from aerotape import aio
from aerotape.errors import (
    LedgerClosedError,
    LedgerInUseError,
    UnconfirmedEntryError,
    UnknownLedgerError,
)

T = TypeVar("T")


def in_loop(
    archive: ServedArchive, test: Callable[[aerotape.AsyncArchiveClient], Awaitable[T]]
) -> T:
    """Run a test with a client over UDP."""

    async def run() -> T:
        async with aio.connect(
            aeron_dir=archive.aeron_dir, control_request_channel=archive.control_channel
        ) as client:
            return await asyncio.wait_for(asyncio.ensure_future(test(client)), 60)

    return asyncio.run(run())


def test_the_life_of_a_ledger(archive: ServedArchive) -> None:
    """Adds of many tasks are acknowledged; reads, syncs and the close are as with the blocking
    client."""

    async def test(client: aerotape.AsyncArchiveClient) -> None:
        async with client.create_ledger("VD_JOURNAL") as writer:
            ids = await asyncio.gather(*(writer.add(b"%d" % index) for index in range(100)))
            assert sorted(ids) == list(range(100))
            assert writer.last_add_confirmed == -1
            reader = await client.open_ledger_read_only(writer.qualified_id)
            found = [entry.payload async for entry in reader.read_unconfirmed(90, 99)]
            assert sorted(found) == sorted(b"%d" % index for index in range(90, 100))
            with pytest.raises(UnconfirmedEntryError):
                [entry async for entry in reader.read(0, 99)]
            assert await writer.sync() == writer.last_add_confirmed == 99
            assert len([entry async for entry in reader.read()]) == 100
            assert await writer.add_many([b"a", b"b"]) == range(100, 102)
            with pytest.raises(LedgerInUseError):
                await client.open_ledger_writer(writer.qualified_id)
            await writer.add_async(b"last")
        assert (await reader.refresh()).last_add_confirmed == 102
        assert reader.is_closed
        listed = [info.id async for info in client.list_ledgers(writer.scope_id)]
        assert listed == [writer.qualified_id]
        everywhere = [info.id async for info in client.list_ledgers(None)]
        assert writer.qualified_id in everywhere
        await client.delete_ledger(writer.qualified_id)
        with pytest.raises(UnknownLedgerError):
            await client.ledger_info(writer.qualified_id)

    in_loop(archive, test)


def test_recovery(archive: ServedArchive) -> None:
    """Opening a ledger fences its writer; a detached one continues."""

    async def test(client: aerotape.AsyncArchiveClient) -> None:
        ledger = await client.declare_ledger()
        writer = await client.open_ledger_writer(ledger)
        await writer.add(b"one")
        await writer.detach()
        writer = await client.open_ledger_writer(ledger)
        assert await writer.add(b"two") == 1
        assert await client.sync_ledger(ledger) == 1
        async with client.open_ledger(ledger) as reader:
            assert [entry.payload async for entry in reader.read()] == [b"one", b"two"]
        with pytest.raises(LedgerClosedError):
            await writer.add(b"late")
        await writer.close()

    in_loop(archive, test)
