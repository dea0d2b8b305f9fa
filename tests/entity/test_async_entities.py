"""The asyncio journal, with our archive."""

from __future__ import annotations

import asyncio

import pytest
from support.daemon.archives import ServedArchive
from support.entity.topics import events, new_topic

import aerotape
from aerotape.context import Opening
from aerotape.entity.asynchronous.entities import AsyncEntities
from aerotape.errors import EntityError


def connect(archive: ServedArchive) -> Opening[aerotape.AsyncArchiveClient]:
    return aerotape.connect_async(
        aeron_dir=archive.aeron_dir, control_request_channel=archive.control_channel
    )


async def read(journal: AsyncEntities, id: str, from_seq_nr: int = 1) -> list[int]:
    return [record.seq_nr async for record in journal.read(id, from_seq_nr)]


def test_all_operations(archive: ServedArchive) -> None:
    """The coroutines do what the blocking methods do, many at the same time."""

    async def use() -> None:
        async with connect(archive) as client, client.entities(new_topic(), 2) as journal:
            assert journal.partitions == 2
            ids = [f"id-{number}" for number in range(10)]
            await asyncio.gather(*(journal.append(id, events(1, 2, 3)) for id in ids))
            await journal.append_many((id, events(4)) for id in ids)
            assert await asyncio.gather(*(read(journal, id) for id in ids)) == [[1, 2, 3, 4]] * 10
            await asyncio.gather(*(journal.delete(id, 2) for id in ids))
            await journal.purge(ids[0])
            assert await read(journal, ids[0]) == []
            assert await read(journal, ids[1]) == [3, 4]
            assert await read(journal, ids[1], 4) == [4]
            pointers = await asyncio.gather(*(journal.pointer(id) for id in ids))
            assert pointers == [None] + [4] * 9
            with pytest.raises(EntityError):
                await journal.append("k", [])
            assert journal.statistics.passes > 0
            await journal.save_snapshot(ids[1], 3, b"state", metadata=1)
            found = await journal.snapshot(ids[1])
            assert found is not None and (found.payload, found.metadata) == (b"state", 1)
            snapshot, records = await journal.recover(ids[1])
            assert snapshot == found
            assert [record.seq_nr async for record in records] == [4]
        with pytest.raises(EntityError, match="closed"):
            await journal.append("k", events(1))

    asyncio.run(use())


def test_read_that_is_broken_off(archive: ServedArchive) -> None:
    """A read of a long journal can be broken off, and the journal is used further."""

    async def use() -> None:
        async with (
            connect(archive) as client,
            client.entities(new_topic(), buffer_length=0) as journal,
        ):
            await journal.append_many(("k", events(number)) for number in range(1, 2001))
            records = journal.read("k")
            assert (await anext(records)).seq_nr == 1
            await records.aclose()
            assert len(await read(journal, "k")) == 2000

    asyncio.run(use())
