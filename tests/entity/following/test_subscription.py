"""Subscriptions to topics: where they begin and end, live topics, and what is refused."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import KINDS, ServedArchive, serve
from support.entity.followed import Follower
from support.entity.memory_store import MemoryStore
from support.entity.topics import events, new_topic, tagged_events

import aerotape
from aerotape.codecs.entity import Event
from aerotape.entity.following.changes import (
    TopicAppend,
    TopicChange,
    TopicDelete,
    TopicPurge,
)
from aerotape.entity.log.recording import PartitionRecording
from aerotape.entity.records import Pointer
from aerotape.entity.topic import partition_of, recordings_of
from aerotape.errors import (
    AeronTimeoutError,
    ConfigurationError,
    EntityError,
    EntityStoreError,
)
from aerotape.waiting import run

# Ids of partitions 0 and 1 of two.
IDS = [next(id for id in "abcdefgh" if partition_of(id, 2) == index) for index in range(2)]
TIMEOUT_NS = 30_000_000_000


@pytest.fixture(scope="module", params=KINDS)
def archive(request: pytest.FixtureRequest) -> Iterator[ServedArchive]:
    """Our archive, and the Java one."""
    with serve(request.param) as served:
        yield served


def shown(change: TopicChange) -> tuple[Any, ...]:
    """Return a change in short form."""
    if isinstance(change, TopicAppend):
        return change.id, *(each.seq_nr for each in change.events)
    return (change.id, f"to {change.to_seq_nr}" if isinstance(change, TopicDelete) else "purge")


def test_kinds_of_changes(client: aerotape.ArchiveClient) -> None:
    """Appends as far as they count, deletes, and purges of a journal that exists."""
    with client.entities(new_topic()) as journal:
        journal.append("a", events(1, 2, 3))
        journal.append("a", events(2, 3, 4, 6))
        journal.append("a", events(5))  # left out
        with pytest.raises(aerotape.errors.SequenceConflictError):
            journal.append("a", events(2), expect=1)
        journal.pointer("a")  # a mark
        deleted = journal.delete("a", 2)
        purged = journal.purge("a")
        journal.purge("a")
        journal.append("a", events(1), metadata={"m": 1})
        with journal.subscribe(until_caught_up=True) as subscription:
            changes = list(subscription)
            assert list(subscription) == []
        assert [shown(each) for each in changes] == [
            ("a", 1, 2, 3),
            ("a", 4, 6),
            ("a", "to 2"),
            ("a", "purge"),
            ("a", 1),
        ]
        assert deleted is not None
        assert (changes[2].offset, changes[2].positions[0]) == deleted[1:]
        assert isinstance(changes[3], TopicPurge)
        assert (changes[3].offset, changes[3].positions[0]) == purged[1:]
        assert abs(changes[3].timestamp_ms - time.time() * 1000) < 60_000
        assert isinstance(changes[4], TopicAppend)
        assert changes[4].events == tuple(journal.read("a"))


def test_now_and_partitions_that_appear_later(client: aerotape.ArchiveClient) -> None:
    """From now: nothing recorded earlier, all that is later, of a new partition from its start."""
    with client.entities(new_topic(), 2) as journal:
        journal.append(IDS[0], events(1, 2))
        with journal.subscribe("now", timeout_ns=TIMEOUT_NS) as subscription:
            journal.append(IDS[0], events(2, 3))
            assert shown(next(subscription)) == (IDS[0], 3)
            assert subscription.take(5) == []
            journal.append(IDS[1], events(1))
            assert shown(next(subscription)) == (IDS[1], 1)
            at = subscription.positions
        journal.append(IDS[0], events(4))
        with journal.subscribe(at, until_caught_up=True) as subscription:
            assert [shown(each) for each in subscription] == [(IDS[0], 4)]


def test_topic_without_a_recording(client: aerotape.ArchiveClient) -> None:
    """It is waited for; catching up ends at once, and following times out and continues."""
    with client.entities(new_topic()) as journal:
        assert list(journal.subscribe(until_caught_up=True)) == []
        with journal.subscribe(timeout_ns=200_000_000) as subscription:
            with pytest.raises(AeronTimeoutError, match=f"no change of topic {journal.topic}"):
                next(subscription)
            journal.append("a", events(1))
            deadline = time.monotonic() + 30
            while not (found := subscription.take(1)):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert shown(found[0]) == ("a", 1)
            subscription.close()
            assert subscription.is_over
            assert list(subscription) == []


def test_recording_that_is_extended(client: aerotape.ArchiveClient) -> None:
    """A subscription continues with the writers that come later."""
    topic = new_topic()
    with client.entities(topic) as reader, reader.subscribe(timeout_ns=TIMEOUT_NS) as subscription:
        for number in range(1, 4):
            with client.entities(topic) as writer:
                writer.append("a", events(number))
            assert shown(next(subscription)) == ("a", number)


def test_long_records(client: aerotape.ArchiveClient) -> None:
    """Records of many frames, from each of which a subscription resumes."""
    with client.entities(new_topic()) as journal:
        for number in range(1, 12):
            journal.append("a", [Event(number, bytes([number]) * 8000, "binary")])
        store = MemoryStore()
        store.replicate(client, journal.topic, 7)
        with client.entities(journal.topic, 1, store) as reader:
            changes = list(reader.subscribe(until_caught_up=True))
            assert [shown(each)[1] for each in changes] == list(range(1, 12))
            for number, change in enumerate(changes, 1):
                rest = list(reader.subscribe(change.positions, until_caught_up=True))
                assert [shown(each)[1] for each in rest] == list(range(number + 1, 12))


@pytest.mark.parametrize("stored", [False, True])
def test_live_writers(client: aerotape.ArchiveClient, stored: bool) -> None:
    """Two threads append while a subscription follows: it has all events once, in order."""
    topic, count, ids = new_topic(), 150, [*IDS, "x", "y"]
    store = MemoryStore() if stored else None

    def write(mine: list[str]) -> None:
        with client.entities(topic, 2) as journal:
            for number in range(1, count + 1):
                journal.append_many((id, events(number)) for id in mine)

    threads = [threading.Thread(target=write, args=(ids[n::2],)) for n in range(2)]
    follower, found = Follower(), 0
    with (
        client.entities(topic, 2, store) as reader,
        reader.subscribe(timeout_ns=TIMEOUT_NS) as subscription,
    ):
        for thread in threads:
            thread.start()
        while found < count * len(ids):
            follower.apply([next(subscription)])
            found += 1
            if store is not None and found % 40 == 0:
                store.replicate(client, topic, 25)
        assert subscription.take(1) == []
    for thread in threads:
        thread.join()
    assert {id: list(each) for id, each in follower.journals.items()} == {
        id: list(range(1, count + 1)) for id in ids
    }


def test_many_partitions(client: aerotape.ArchiveClient) -> None:
    """More partitions than an archive has replays; following writes nothing."""
    topic, ids = new_topic(), [f"id-{number}" for number in range(400)]
    for first in range(0, 40, 10):  # it does not have so many live recordings
        with client.entities(topic, 40) as writer:
            some = [id for id in ids if first <= partition_of(id, 40) < first + 10]
            writer.append_many((id, events(1)) for id in some)

    def recorded() -> list[int]:
        found = recordings_of(topic, client.list_recordings()).values()
        return [client.max_recorded_position(each.recording_id) for each in found]

    before = recorded()
    assert len(before) == 40
    with (
        client.entities(topic) as reader,
        reader.subscribe(timeout_ns=TIMEOUT_NS) as subscription,
    ):
        assert {next(subscription).id for _ in ids} == set(ids)
        assert subscription.take(1) == []
    assert recorded() == before


def test_persistent_topic(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """Of a topic of type PD_JOURNAL only what is on storage is returned."""
    if archive.kind != "aerotape":
        pytest.skip("the Java archive does not have them")
    with client.entities(new_topic(), type="PD_JOURNAL") as journal:
        places = [journal.append("a", events(number)) for number in range(1, 5)]
        assert run(journal._log.writer("a")).recording.counter is not None
        with pytest.MonkeyPatch.context() as patch:  # a sync that is under way
            confirmed = places[1].next_position
            patch.setattr(PartitionRecording, "counted", lambda _: confirmed)
            with journal.subscribe() as subscription, journal.subscribe("now") as later:
                assert [shown(each)[1] for each in subscription.take(9)] == [1, 2]
                patch.undo()
                assert [shown(each)[1] for each in subscription.take(9)] == [3, 4]
                assert [shown(each)[1] for each in later.take(9)] == [3, 4]
    with client.entities(journal.topic) as stopped:
        changes = list(stopped.subscribe(until_caught_up=True))
        assert [shown(each)[1] for each in changes] == [1, 2, 3, 4]


def test_another_media_driver(
    archive: ServedArchive, client: aerotape.ArchiveClient, aeron_dir: Path
) -> None:
    """A client on another driver follows; of a live PD_JOURNAL it cannot see what is on storage."""
    with (
        aerotape.MediaDriver.launch(aeron_dir),
        archive.connect(aeron_dir=aeron_dir) as remote,
        client.entities(new_topic()) as journal,
        remote.entities(journal.topic) as reader,
        reader.subscribe(timeout_ns=TIMEOUT_NS) as subscription,
    ):
        for number in range(1, 5):
            journal.append("a", events(number))
            assert shown(next(subscription)) == ("a", number)
        if archive.kind != "aerotape":
            return
        with (
            client.entities(new_topic(), type="PD_JOURNAL") as durable,
            remote.entities(durable.topic) as other,
            other.subscribe() as changes,
        ):
            durable.append("a", events(1))
            with pytest.raises(EntityError, match="need an aerotape archive on this media driver"):
                changes.take(1)


@pytest.mark.parametrize("replicated", [0, 4, None])
def test_tags(client: aerotape.ArchiveClient, replicated: int | None) -> None:
    """Only events with one of the tags, once; deletes and purges of all journals."""
    store = MemoryStore()
    with client.entities(new_topic(), store=store) as journal:
        journal.append("a", tagged_events(1, 2, 3))
        journal.append("a", tagged_events(4, 6))
        journal.append("b", tagged_events(2, 4))
        journal.append("c", tagged_events(5, 8))
        if replicated != 0:
            store.replicate(client, journal.topic, replicated)
        with journal.subscribe(tags=("third", "odd"), until_caught_up=True) as subscription:
            changes = list(subscription)
            assert [shown(each) for each in changes] == [("a", 1, 3), ("a", 6), ("c", 5)]
        journal.delete("b", 2)
        with journal.subscribe(subscription.positions, ("odd",), until_caught_up=True) as rest:
            assert [shown(each) for each in rest] == [("b", "to 2")]


def test_purged_log(client: aerotape.ArchiveClient) -> None:
    """A log without its beginning is followed with the store, and refused without or too late."""
    store = MemoryStore()
    with client.entities(new_topic(), store=store) as journal:
        for number in range(1, 101):
            journal.append("a", [Event(number, bytes(4000), "binary")])
        changes = list(journal.subscribe(until_caught_up=True))
        store.replicate(client, journal.topic)
        with journal.subscribe() as paused:
            assert len(paused.take(3)) == 3
            paused.take(200)
            journal.append("a", events(101))
            (recording,) = recordings_of(journal.topic, client.list_recordings()).values()
            start = 3 * recording.segment_file_length
            client.purge_segments(recording.recording_id, start)
            assert [shown(each) for each in paused.take(5)] == [("a", 101)]
        again = list(journal.subscribe(until_caught_up=True))
        assert [shown(each) for each in again] == [("a", n) for n in range(1, 102)]
        with journal.subscribe(changes[5].positions) as early:
            for _ in range(2):
                with pytest.raises(EntityError, match=f"its log begins at {start}"):
                    next(early)
        late = next(each for each in changes if each.positions[0] > start)
        rest = list(journal.subscribe(late.positions, until_caught_up=True))
        assert [shown(each)[1] for each in rest] == list(range(shown(late)[1] + 1, 102))
        with (
            client.entities(journal.topic) as alone,
            alone.subscribe("now") as subscription,
            pytest.raises(EntityError, match="no store is given"),
        ):
            subscription.take(1)


def test_log_that_is_purged_meanwhile(client: aerotape.ArchiveClient) -> None:
    """A subscription that is slower than retention is refused with what to do."""
    store = MemoryStore()
    with client.entities(new_topic(), store=store) as journal:
        journal.append("a", events(1))
        with journal.subscribe() as subscription:
            assert len(subscription.take(5)) == 1
            for number in range(2, 101):
                journal.append("a", [Event(number, bytes(4000), "binary")])
            store.replicate(client, journal.topic)
            (recording,) = recordings_of(journal.topic, client.list_recordings()).values()
            client.purge_segments(recording.recording_id, 2 * recording.segment_file_length)
            for _ in range(2):
                with pytest.raises(EntityError, match="follow from the beginning"):
                    subscription.take(1)


def test_positions_and_stores_of_another_log(client: aerotape.ArchiveClient) -> None:
    """Positions and pointers past the end of the recording are refused."""
    store = MemoryStore()
    with client.entities(new_topic(), store=store) as journal:
        journal.append("a", events(1))
        with pytest.raises(EntityError, match=r"from 4096, .* the position is that of another log"):
            next(journal.subscribe({0: 4096}))
        store.pointers[0] = Pointer(1 << 20, (1 << 20) + 64)
        with pytest.raises(EntityError, match="the store is that of another log"):
            next(journal.subscribe())


def test_damaged_record(client: aerotape.ArchiveClient) -> None:
    """A record that is no action is an error with its position, after the changes before it."""
    with client.entities(new_topic()) as journal:
        place = journal.append("a", events(1))
        publication = run(journal._log.writer("a"))._publication
        publication.offer(b"no action, or one of a later version of aerotape")
        with journal.subscribe(timeout_ns=TIMEOUT_NS) as subscription:
            assert shown(next(subscription)) == ("a", 1)
            text = f"has an invalid record at {place.next_position}"
            deadline = time.monotonic() + 30
            with pytest.raises(EntityError, match=text):
                while time.monotonic() < deadline:
                    assert subscription.take(10) == []


@pytest.mark.parametrize(
    ("from_", "tags", "text"),
    [
        ("yesterday", (), "from_='yesterday': expected 'beginning', 'now', or positions"),
        ({2: 0}, (), "partition 2: topic .* has the partitions 0 to 1"),
        ({"0": 0}, (), "partition '0'"),
        ({1: -1}, (), "position -1 of partition 1: expected bytes"),
        ({1: 1.5}, (), r"position 1\.5 of partition 1"),
        ("now", "tag", "tags='tag': expected a tuple of texts"),
        ("now", [1], r"tags=\[1\]: expected a tuple of texts"),
    ],
)
def test_invalid_arguments(
    client: aerotape.ArchiveClient, from_: Any, tags: Any, text: str
) -> None:
    """They are refused at once, with what was expected."""
    with (
        client.entities(new_topic(), 2) as journal,
        pytest.raises(ConfigurationError, match=text),
    ):
        journal.subscribe(from_, tags)


def test_store_without_an_order(client: aerotape.ArchiveClient) -> None:
    """A store that cannot return events in the order of the log is refused at once."""

    class Unordered(MemoryStore):
        def events_between(self, *args: Any, **options: Any) -> Iterator[Any]:
            raise EntityStoreError("no order", "memory")

    with (
        client.entities(new_topic(), store=Unordered()) as journal,
        pytest.raises(EntityStoreError, match="no order"),
    ):
        journal.subscribe("now")


def test_asyncio(archive: ServedArchive) -> None:
    """A task follows while another appends; breaking off ends it, and positions continue."""
    if archive.kind != "aerotape":
        pytest.skip("the client is the same")

    async def use() -> None:
        async with (
            aerotape.connect_async(
                aeron_dir=archive.aeron_dir, control_request_channel=archive.control_channel
            ) as client,
            client.entities(new_topic()) as journal,
        ):

            async def first(count: int) -> list[TopicChange]:
                async with journal.subscribe() as changes:
                    return [await anext(changes) for _ in range(count)]

            following = asyncio.create_task(first(300))
            await journal.append_many(("a", events(number)) for number in range(1, 301))
            found = await asyncio.wait_for(following, 30)
            assert [shown(each) for each in found] == [("a", n) for n in range(1, 301)]
            rest = await journal.subscribe(found[297].positions, until_caught_up=True)
            assert [shown(each) async for each in rest] == [("a", 299), ("a", 300)]
            async with journal.subscribe("now") as later:
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(anext(later), 0.2)
                await journal.append("a", events(301))
                assert shown(await asyncio.wait_for(anext(later), 30)) == ("a", 301)
            tagged = await journal.subscribe(tags=("none",), until_caught_up=True)
            assert [each async for each in tagged] == []

    asyncio.run(use())


@pytest.mark.parametrize("is_replicated", [False, True])
def test_a_position_within_a_record_is_refused(
    client: aerotape.ArchiveClient, is_replicated: bool
) -> None:
    """The error names the record's begin and end, from each of which the topic can be followed."""
    store = MemoryStore()
    with client.entities(new_topic(), store=store if is_replicated else None) as journal:
        first = journal.append("a", events(1))
        second = journal.append("a", [Event(2, bytes(3_000), "binary")])
        third = journal.append("b", events(1))
        if is_replicated:
            store.replicate(client, journal.topic)

        def follow(position: int) -> list[tuple[Any, ...]]:
            with journal.subscribe({0: position}, until_caught_up=True) as changes:
                return [shown(each) for each in changes]

        for record in (first, second, third):
            begin, end = record.offset, record.next_position
            for position in (begin + 8, begin + 31, begin + 33, end - 8, end - 1):
                with pytest.raises(
                    EntityError,
                    match=f"cannot be followed from {position}, within the record from {begin} to "
                    f"{end}: follow from {begin}, or from {end}",
                ):
                    follow(position)
        assert follow(first.offset) == [("a", 1), ("a", 2), ("b", 1)]
        assert follow(second.offset) == [("a", 2), ("b", 1)]
        assert follow(second.next_position) == [("b", 1)]
        assert follow(third.next_position) == []
