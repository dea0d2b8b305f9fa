"""Reading a ledger while it is written, and reading a part of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import Empty, Queue

import pytest
from support.daemon.archives import ServedArchive
from support.daemon.mirrored import running

import aerotape
from aerotape import ConfigurationError, aio
from aerotape.client.ledger.reading import LedgerReading, ReadPlan
from aerotape.client.replay.stream import ReplayStream
from aerotape.codecs.entry import Entry
from aerotape.errors import UnconfirmedEntryError
from aerotape.waiting import Task

TYPES = ("PD_JOURNAL", "VD_JOURNAL")


class Tail:
    """The payloads that a thread reads by `follow`, until the ledger is closed."""

    def __init__(self, reader: aerotape.LedgerReader, first: int = 0, **limits: int) -> None:
        self.arrived: Queue[bytes] = Queue()
        entries = reader.read(first, follow=True, **limits)
        self._thread = threading.Thread(target=self._read, args=(entries,), daemon=True)
        self._thread.start()

    def _read(self, entries: Iterator[Entry]) -> None:
        for entry in entries:
            self.arrived.put(entry.payload)

    def take(self, count: int) -> list[bytes]:
        """The next payloads, as they arrive."""
        return [self.arrived.get(timeout=30) for _ in range(count)]

    def has_ended(self) -> bool:
        """Whether the iteration ends, with nothing left."""
        self._thread.join(30)
        return not self._thread.is_alive() and self.arrived.empty()


def payloads(begin: int, end: int) -> list[bytes]:
    return [b"%d" % number * (number % 60) for number in range(begin, end)]


@pytest.mark.parametrize("kind", TYPES)
def test_following_several_writers(
    client: aerotape.ArchiveClient, other: aerotape.ArchiveClient, kind: str
) -> None:
    """From before the first writer until the ledger is closed, each entry is read once confirmed;
    also by a reader that begins at a later entry."""
    ledger = client.declare_ledger(kind)  # type: ignore[arg-type]
    with other.open_ledger_read_only(ledger) as reader:
        tail, late = Tail(reader), Tail(reader, 150)
        for begin in (0, 100, 200):
            writer = client.open_ledger_writer(ledger)
            writer.add_many(payloads(begin, begin + 50))
            if kind == "VD_JOURNAL":
                with pytest.raises(Empty):
                    tail.arrived.get(timeout=0.2)
                writer.sync()
            assert tail.take(50) == payloads(begin, begin + 50)
            for payload in payloads(begin + 50, begin + 100):
                writer.add(payload)
            writer.detach()
            assert tail.take(50) == payloads(begin + 50, begin + 100)
        assert late.take(150) == payloads(150, 300)
        client.open_ledger_writer(ledger).close()
        assert tail.has_ended()
        assert late.has_ended()
        assert [entry.payload for entry in reader.read(299, follow=True)] == payloads(299, 300)


def test_following_entries_of_many_frames(
    client: aerotape.ArchiveClient, other: aerotape.ArchiveClient
) -> None:
    """A reader that begins while such an entry is written gets it whole."""
    sent = [bytes([number]) * 7_000 for number in range(120)]
    with client.create_ledger() as writer, ThreadPoolExecutor(1) as threads:
        adding = threads.submit(lambda: [writer.add(payload) for payload in sent])
        readers = [other.open_ledger_read_only(writer.qualified_id) for _ in range(4)]
        for first, reader in enumerate(readers):
            found = reader.read(30 * first, 30 * first + 29, follow=True)
            assert [entry.payload for entry in found] == sent[30 * first : 30 * first + 30]
        adding.result(30)


def test_following_in_an_event_loop(archive: ServedArchive) -> None:
    """As with the blocking client."""

    async def test() -> None:
        connect = partial(
            aio.connect,
            aeron_dir=archive.aeron_dir,
            control_request_channel=archive.control_channel,
        )
        async with connect() as client, connect() as other:
            writer = await client.create_ledger("VD_JOURNAL")
            reader = await other.open_ledger_read_only(writer.qualified_id)

            async def read() -> list[bytes]:
                return [entry.payload async for entry in reader.read(follow=True)]

            reading = asyncio.ensure_future(read())
            for number in range(20):
                await writer.add(b"%d" % number)
                await asyncio.sleep(0.005)
            await writer.close()
            assert await reading == [b"%d" % number for number in range(20)]

    asyncio.run(asyncio.wait_for(test(), 60))


def test_following_a_ledger_with_mirrors() -> None:
    """What no quorum has is not read; what one has is, until the ledger is closed."""
    with running() as three, three.client(timeout_s=30) as client, three.client() as other:
        writer = three.create(client, "PD_JOURNAL")
        tail = Tail(other.open_ledger_read_only(writer.qualified_id))
        writer.add_many(payloads(0, 50))
        assert tail.take(50) == payloads(0, 50)
        with three.stopped(1), three.stopped(2):
            writer.add_async(b"not confirmed")
            with pytest.raises(Empty):
                tail.arrived.get(timeout=0.5)
        assert tail.take(1) == [b"not confirmed"]
        writer.add_many(payloads(51, 60))
        writer.close()
        assert tail.take(9) == payloads(51, 60)
        assert tail.has_ended()


def test_a_writer_that_ends_before_the_replay_begins(
    client: aerotape.ArchiveClient, other: aerotape.ArchiveClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counter that would bound the replay is gone: what is there is read nevertheless."""
    writer = client.create_ledger()
    writer.add_many([b"one", b"two"])
    replay, bounded = LedgerReading.replay, []

    def replay_late(self: LedgerReading, plan: ReadPlan, channel: str) -> Task[ReplayStream]:
        bounded.append(plan.counter_id is not None)
        writer.close()
        return replay(self, plan, channel)

    with other.open_ledger_read_only(writer.qualified_id) as reader:
        monkeypatch.setattr(LedgerReading, "replay", replay_late)
        assert [entry.payload for entry in reader.read(follow=True)] == [b"one", b"two"]
    assert bounded == [True, False]


def test_another_counter_with_the_id_bounds_no_replay(
    client: aerotape.ArchiveClient, other: aerotape.ArchiveClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A counter that is not the ledger's any more, when the replay has begun, confirms nothing."""
    with client.create_ledger("VD_JOURNAL") as writer:
        writer.add_many([b"one", b"two"])
        recorded = client.ledger_info(writer.qualified_id).recording_counter_id
        replay = LedgerReading.replay

        def replay_wrongly(self: LedgerReading, plan: ReadPlan, channel: str) -> Task[ReplayStream]:
            monkeypatch.setattr(LedgerReading, "replay", replay)
            wrong = ReadPlan(plan.ids, plan.position, plan.length, recorded)
            return replay(self, wrong, channel)

        with other.open_ledger_read_only(writer.qualified_id) as reader:
            monkeypatch.setattr(LedgerReading, "replay", replay_wrongly)
            tail = Tail(reader)
            with pytest.raises(Empty):
                tail.arrived.get(timeout=0.5)
            writer.sync()
            assert tail.take(2) == [b"one", b"two"]
            writer.close()
            assert tail.has_ended()


def test_reading_by_count_and_bytes(client: aerotape.ArchiveClient) -> None:
    """The first limit that is reached ends the iteration; an entry is read whatever its length."""
    with client.create_ledger("VD_JOURNAL") as writer:
        writer.add_many([b"x" * 10] * 20)
        with client.open_ledger_read_only(writer.qualified_id) as reader:

            def unconfirmed(first: int = 0, last: int | None = None, **limits: int) -> list[int]:
                return [each.entry_id for each in reader.read_unconfirmed(first, last, **limits)]

            assert unconfirmed(max_entries=5) == [0, 1, 2, 3, 4]
            assert unconfirmed(18, max_entries=5) == [18, 19]
            assert unconfirmed(3, 4, max_entries=5) == [3, 4]
            assert unconfirmed(3, max_entries=0) == []
            assert unconfirmed(max_bytes=39) == [0, 1, 2]
            assert unconfirmed(7, max_bytes=40) == [7, 8, 9, 10]
            assert unconfirmed(7, max_bytes=0) == [7]
            assert unconfirmed(7, max_bytes=40, max_entries=2) == [7, 8]
            with pytest.raises(UnconfirmedEntryError):
                reader.read(0, 3, max_entries=1)
            writer.sync()
            for follow in (False, True):
                found = reader.read(2, max_entries=3, follow=follow)
                assert [each.entry_id for each in found] == [2, 3, 4]
                found = reader.read(2, max_bytes=25, follow=follow)
                assert [each.entry_id for each in found] == [2, 3]
            for limit in ({"max_entries": -1}, {"max_bytes": -1}):
                with pytest.raises(ConfigurationError, match="max_"):
                    reader.read(**limit)  # type: ignore[arg-type]
            with pytest.raises(ConfigurationError, match="in ascending order"):
                reader.read(-1, follow=True)


def test_following_leaves_no_replay(
    client: aerotape.ArchiveClient, other: aerotape.ArchiveClient
) -> None:
    """An iteration that the caller ends stops its replay in the archive."""
    with client.create_ledger() as writer:
        writer.add_many([b"one", b"two"])
        with other.open_ledger_read_only(writer.qualified_id) as reader:
            for _ in range(30):  # more than the archive allows at a time
                entries = reader.read(follow=True)
                assert next(entries).payload == b"one"
                del entries
