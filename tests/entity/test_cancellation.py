"""Calls of the asyncio journal that are cancelled, and what they leave behind."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import ServedArchive
from support.daemon.daemon import AerotapeArchive
from support.daemon.stopped import stopped
from support.entity.memory_store import MemoryStore
from support.entity.topics import events, new_topic, numbers

import aerotape
from aerotape.codecs.entity import Event
from aerotape.context import Opening
from aerotape.counter_keys import CounterType
from aerotape.entity.following.following import Following
from aerotape.entity.records import Head, Pointer
from aerotape.errors import AeronTimeoutError


def connect(archive: ServedArchive | AerotapeArchive) -> Opening[aerotape.AsyncArchiveClient]:
    return aerotape.connect_async(
        aeron_dir=archive.aeron_dir, control_request_channel=archive.control_channel
    )


def test_an_archive_that_does_not_record(tmp_path: Path, aeron_dir: Path) -> None:
    """Cancelled appends end at once, with the loop; what they have sent is recorded later."""

    async def use(archive: AerotapeArchive) -> None:
        async with connect(archive) as client, client.entities("t") as journal:
            await journal.append("k", events(1))
            threads = threading.active_count()
            began = time.monotonic()
            with stopped(archive.process.pid):
                appends = [
                    asyncio.create_task(journal.append(f"k{number}", events(1)))
                    for number in range(200)
                ]
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(journal.append("k", events(2)), 0.1)
                assert threading.active_count() == threads
                for each in appends:
                    each.cancel()
                found = await asyncio.gather(*appends, return_exceptions=True)
                assert {type(each) for each in found} == {asyncio.CancelledError}
                assert time.monotonic() - began < 5
            assert await journal.pointer("k199") == 1
            assert [each.seq_nr async for each in journal.read("k")] == [1, 2]
            await journal.append("k", events(3), expect=2)

    with AerotapeArchive(tmp_path / "archive", aeron_dir).start() as archive:
        asyncio.run(use(archive))


def test_no_room(tmp_path: Path, aeron_dir: Path) -> None:
    """An append that is cancelled while it waits for room is not sent; others follow in time."""
    channel = "aeron:ipc?term-length=64k"

    async def use(archive: AerotapeArchive) -> None:
        async with (
            connect(archive) as client,
            client.entities("t", channel=channel, timeout_ns=20_000_000_000) as journal,
            client.entities("t", channel=channel, timeout_ns=100_000_000) as hasty,
        ):
            await journal.append("k", events(1))
            await hasty.append("k", events(2))
            filling = [
                (f"f{number}", [Event(1, bytes(4_000), "binary")]) for number in range(60)
            ]
            with stopped(archive.process.pid):
                full = [asyncio.create_task(journal.append(id, each)) for id, each in filling]
                await asyncio.sleep(0.2)
                with pytest.raises(AeronTimeoutError, match="do not keep up"):
                    await hasty.append("k", [Event(3, bytes(4_000), "binary")])
                with pytest.raises(TimeoutError):
                    large = [Event(4, bytes(4_000), "binary")]
                    await asyncio.wait_for(journal.append("k", large), 0.1)
            await asyncio.gather(*full)
            assert await journal.pointer("k") == 2

    with AerotapeArchive(tmp_path / "archive", aeron_dir).start() as archive:
        asyncio.run(use(archive))


def test_appends_that_are_cancelled_at_any_moment(archive: ServedArchive, seeds: range) -> None:
    """Each journal has what was acknowledged; opening the topic may be cancelled too."""

    async def use(chance: random.Random) -> None:
        async with connect(archive) as client, client.entities(new_topic(), 3) as journal:

            async def append(id: str) -> int:
                """Append until cancelled; return how much was acknowledged."""
                done = 0
                is_conditional = chance.random() < 0.5
                try:
                    while True:
                        expect = done if is_conditional else None
                        await journal.append(id, events(done + 1), expect=expect)
                        done += 1
                except asyncio.CancelledError:
                    return done

            ids = [f"id-{number}" for number in range(20)]
            tasks = [asyncio.create_task(append(id)) for id in ids]
            for each in chance.sample(tasks, len(tasks)):
                await asyncio.sleep(chance.choice([0, 0.0001, 0.001, 0.02]))
                each.cancel()
            acknowledged = await asyncio.gather(*tasks)
            for id, count in zip(ids, acknowledged, strict=True):
                last = await journal.pointer(id) or 0
                assert count <= last <= count + 1
                found = [each.seq_nr async for each in journal.read(id)]
                assert found == list(range(1, last + 1))
                await journal.append(id, events(last + 1), expect=last)

    for number in seeds:
        asyncio.run(use(random.Random(number)))


def test_no_threads(archive: ServedArchive) -> None:
    """Hundreds of operations at the same time need none, without a store."""

    async def use() -> None:
        async with connect(archive) as client, client.entities(new_topic(), 2) as journal:
            await asyncio.gather(*(journal.append(f"k{each}", events(1)) for each in range(10)))
            before = set(threading.enumerate())
            ids = [f"k{number}" for number in range(500)]
            await asyncio.gather(*(journal.append(id, events(2)) for id in ids))
            assert await asyncio.gather(*(journal.pointer(id) for id in ids[:40])) == [2] * 40
            assert set(threading.enumerate()) <= before

    asyncio.run(use())


def test_a_read_that_is_cancelled(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """Its replay is stopped."""
    channel = "aeron:ipc?term-length=64k"  # the rest of the log has no room in the replay's terms
    with client.entities(new_topic(), channel=channel) as journal:
        given = [("k", [Event(each, bytes(4_000), "binary")]) for each in range(1, 401)]
        journal.append_many(given)

        async def use() -> None:
            async with (
                connect(archive) as other,
                other.entities(journal.topic, buffer_length=0) as reader,
            ):
                records = reader.read("k")
                assert (await anext(records)).seq_nr == 1
                reading = asyncio.create_task(reader.pointer("other"))
                await asyncio.sleep(0.01)
                reading.cancel()
                await records.aclose()
                deadline = time.monotonic() + 30
                counters = other.aeron.counters()
                while [row for row in counters.rows(CounterType.REPLAY_SESSIONS) if row[-1] > 0]:
                    assert time.monotonic() < deadline
                    await asyncio.sleep(0.02)

        asyncio.run(use())
        assert numbers(journal.read("k"))[-1] == 400


class SlowStore(MemoryStore):
    """A store that does not respond until a test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = threading.Event()

    def view(self, topic: str, partition: int, id: str) -> tuple[Pointer | None, Head | None]:
        assert self.goes_on.wait(30)
        return super().view(topic, partition, id)


def test_a_slow_store(archive: ServedArchive) -> None:
    """It does not hold up the event loop, nor a read that is cancelled."""

    async def use() -> None:
        store = SlowStore()
        async with connect(archive) as client, client.entities(new_topic(), 1, store) as journal:
            await journal.append("k", events(1))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(journal.pointer("k"), 0.1)
            await journal.append("k", events(2))
            store.goes_on.set()
            assert await journal.pointer("k") == 2

    asyncio.run(use())


def test_a_subscription_loses_no_change(archive: ServedArchive, seeds: range) -> None:
    """Whenever waiting for the next one is cancelled; its positions are of what was returned."""

    async def use(chance: random.Random) -> None:
        topic = new_topic()
        async with connect(archive) as client, client.entities(topic, 2) as journal:
            ids = [f"k{number}" for number in range(10)]
            writing = asyncio.create_task(
                journal.append_many((id, events(number)) for number in range(1, 101) for id in ids)
            )
            found: dict[str, list[int]] = {id: [] for id in ids}
            async with journal.subscribe() as changes:
                while sum(map(len, found.values())) < 1000:
                    limit = chance.choice([0, 1, 7])
                    taking: Any = changes.take(limit) if limit else anext(changes)
                    try:
                        delay = chance.choice([0, 0.0005, 0.005])
                        taken = await asyncio.wait_for(taking, delay)
                    except TimeoutError:
                        continue
                    for each in taken if limit else [taken]:
                        found[each.id] += numbers(each.events)
                        assert each.positions[each.partition] >= each.offset
                        last = each
                    if limit == 0:
                        assert changes.positions == last.positions
            await writing
            assert found == {id: list(range(1, 101)) for id in ids}

    for number in seeds:
        asyncio.run(asyncio.wait_for(use(random.Random(number)), 120))


def test_closed_subscriptions_end() -> None:
    """Also without an archive."""
    log: Any = None
    following = Following(log, {0: 0}, (), False, None)
    following.close()
    assert following.is_over


@pytest.mark.parametrize("folder", ["log", "following", "asynchronous", "blocking", "."])
def test_no_polls(folder: str) -> None:
    """Everything waits as a task does; only stores, which are called in a thread, sleep."""
    package = Path(aerotape.__file__).parent / "entity" / folder
    for path in package.glob("*.py"):
        assert ".sleep(" not in path.read_text(), path
