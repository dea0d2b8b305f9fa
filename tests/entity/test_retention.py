"""Retention of a topic's log: nothing is purged that a store does not have."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from support.daemon.archives import ServedArchive
from support.entity.logged import DAY_NS
from support.entity.topics import new_topic, numbers

import aerotape
from aerotape.codecs.entity import Event
from aerotape.entity.blocking.entities import Entities
from aerotape.entity.records import Pointer
from aerotape.entity.replicator import Replicator
from aerotape.entity.retention import PartitionPurge, retain
from aerotape.entity.stores.base import EntityStore
from aerotape.entity.stores.url import open_store
from aerotape.entity.topic import partition_of, recordings_of
from aerotape.errors import ArchiveError, ConfigurationError, EntityError, EntityStoreError

PARTITIONS = 4
# An id of each partition, in their order.
IDS = [
    next(id for id in map(str, range(1_000)) if partition_of(id, PARTITIONS) == index)
    for index in range(PARTITIONS)
]


def events(number: int) -> list[Event]:
    return [Event(number, b"x" * 4_000, "binary")]


def replicate(archive: ServedArchive, topic: str, url: str) -> None:
    """Replicate all that is recorded."""
    with Replicator(topic, archive.connect, lambda: open_store(url, writable=True)) as replicator:
        for _ in replicator.run(until_caught_up=True):
            pass


def starts(client: aerotape.ArchiveClient, topic: str) -> list[int]:
    """The start position of each partition."""
    found = recordings_of(topic, client.list_recordings()).values()
    return [recording.start_position for recording in found]


def fill(journal: Entities, ids: Sequence[str], first: int) -> None:
    """Append 60 events to each of these, about four segments of their partitions."""
    journal.append_many([(id, events(n)) for n in range(first, first + 60) for id in ids])


def next_positions(store: EntityStore, topic: str) -> list[int]:
    """How far each partition is replicated."""
    return [pointer.next_position for _, pointer in sorted(store.pointers(topic).items())]


def test_retention(archive: ServedArchive, client: aerotape.ArchiveClient, tmp_path: Path) -> None:
    """Old segments are purged, never past the pointer unless forced."""
    topic, url = new_topic(), f"sqlite:{tmp_path / 'entities.db'}"
    with open_store(url, writable=True) as store, client.entities(topic, 1, store) as journal:
        fill(journal, ["id"], 1)
        with pytest.raises(ConfigurationError, match="no store"):
            retain(client, topic, [], 1)
        (held,) = retain(client, topic, [store], 1)
        assert (held.segment_files, held.start_position) == (0, 0)
        assert held.held_files > 0
        replicate(archive, topic, url)
        (young,) = retain(client, topic, [store], DAY_NS)
        assert (young.segment_files, young.held_files) == (0, 0)
        (planned,) = retain(client, topic, [store], 1, dry_run=True)
        assert starts(client, topic) == [0]
        (purged,) = retain(client, topic, [store], 1)
        assert planned == purged
        assert purged.segment_files == held.held_files
        pointer = store.pointer(topic, 0)
        assert pointer is not None
        assert [purged.start_position] == starts(client, topic)
        assert 0 < purged.start_position <= pointer.next_position
        assert numbers(journal.read("id")) == list(range(1, 61))
        fill(journal, ["id"], 61)
        (kept,) = retain(client, topic, [store], 1)
        assert kept.start_position <= pointer.next_position
        assert numbers(journal.read("id")) == list(range(1, 121))
        (forced,) = retain(client, topic, [], 1, force=True)
        assert forced.start_position > pointer.next_position
        with pytest.raises(EntityError, match="purged before they were replicated"):
            replicate(archive, topic, url)


class Rig:
    """A topic of four partitions that two stores have, the first one less of it."""

    def __init__(
        self, archive: ServedArchive, client: aerotape.ArchiveClient, folder: Path, stack: ExitStack
    ) -> None:
        self.client, self.archive = client, archive
        self.topic = new_topic()
        self.paths = [folder / name for name in ("slow.db", "fast.db", "new.db")]
        self.urls = [f"sqlite:{path}" for path in self.paths]
        with client.entities(self.topic, PARTITIONS) as journal:
            for count, url in enumerate(self.urls[:2]):
                fill(journal, IDS, 1 + 60 * count)
                replicate(archive, self.topic, url)
        stores = [stack.enter_context(open_store(url, writable=True)) for url in self.urls]
        self.slow, self.fast, self.new = stores

    def retain(self, *stores: EntityStore, force: bool = False) -> list[PartitionPurge]:
        return retain(self.client, self.topic, stores, 1, force=force)

    def starts(self) -> list[int]:
        return starts(self.client, self.topic)

    def check_nothing_purged(self) -> None:
        assert self.starts() == [0] * PARTITIONS


@pytest.fixture
def rig(archive: ServedArchive, client: aerotape.ArchiveClient, tmp_path: Path) -> Iterator[Rig]:
    with ExitStack() as stack:
        yield Rig(archive, client, tmp_path, stack)


def test_the_slowest_store_counts(rig: Rig) -> None:
    """In either order, for each partition; its replicator and reads with it continue."""
    slow = next_positions(rig.slow, rig.topic)
    for stores in ((rig.fast, rig.slow), (rig.slow, rig.fast)):
        done = rig.retain(*stores)
        assert [each.replicated_to for each in done] == slow
        assert all(each.held_files for each in done)
        starts = rig.starts()
        assert starts == [each.start_position for each in done]
        for start, pointer in zip(starts, slow, strict=True):
            assert pointer - 65_536 < start <= pointer
    with rig.client.entities(rig.topic, store=rig.slow) as journal:
        for id in IDS:
            assert numbers(journal.read(id)) == list(range(1, 121))
    replicate(rig.archive, rig.topic, rig.urls[0])
    for id in IDS:
        assert numbers(rig.slow.events(rig.topic, id)) == list(range(1, 121))
    rig.retain(rig.fast)
    assert all(after > before for before, after in zip(starts, rig.starts(), strict=True))


def test_a_store_without_a_pointer_holds_everything(rig: Rig) -> None:
    """Of all partitions, or of the one that it has no pointer of."""
    for stores in ((rig.new,), (rig.fast, rig.new), (rig.new, rig.fast)):
        for each in rig.retain(*stores):
            assert (each.segment_files, each.replicated_to) == (0, None)
            assert each.held_files > 0
    rig.check_nothing_purged()
    with closing(sqlite3.connect(rig.paths[1])) as connection, connection:
        connection.execute("DELETE FROM journal_pointer2 WHERE partition = 2")
    assert [each.segment_files > 0 for each in rig.retain(rig.fast)] == [True, True, False, True]
    assert [start > 0 for start in rig.starts()] == [True, True, False, True]


@pytest.mark.parametrize("partition", [0, 2])
def test_a_store_of_another_log_is_refused(rig: Rig, partition: int) -> None:
    """Its pointer is past the end of a recording; no other partition is purged either."""
    with rig.slow.replicating():
        rig.slow.apply(rig.topic, partition, {}, Pointer((1 << 40) - 64, 1 << 40))
    for stores in ((rig.slow,), (rig.slow, rig.fast), (rig.fast, rig.slow)):
        with pytest.raises(
            EntityError,
            match=rf"partition {partition} of topic {rig.topic} is replicated up to {1 << 40} in"
            rf" namespace journal of {rig.urls[0]}, but recording \d+ ends at \d+: the store is",
        ):
            rig.retain(*stores)
    rig.check_nothing_purged()
    assert all(each.segment_files for each in rig.retain(rig.slow, force=True))


def test_a_topic_that_was_created_again_is_another_log(rig: Rig) -> None:
    """A store of the former recordings does not let go of the new ones."""
    for recording in recordings_of(rig.topic, rig.client.list_recordings()).values():
        rig.client.purge_recording(recording.recording_id)
    with rig.client.entities(rig.topic, PARTITIONS) as journal:
        fill(journal, IDS, 1)
    with pytest.raises(EntityError, match="the store is that of another log; check its URL"):
        rig.retain(rig.fast)
    rig.check_nothing_purged()


@contextmanager
def without_pointers(path: Path) -> Iterator[None]:
    """Take the table of the pointers away from a store."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE journal_pointer2 RENAME TO elsewhere")
        yield
        connection.execute("ALTER TABLE elsewhere RENAME TO journal_pointer2")


def test_a_store_that_cannot_be_read_refuses(rig: Rig) -> None:
    """The first or the last store: no partition is purged by what the other one says."""
    with without_pointers(rig.paths[0]):
        for stores in ((rig.slow, rig.fast), (rig.fast, rig.slow)):
            with pytest.raises(EntityStoreError, match="no such table"):
                rig.retain(*stores)
    rig.check_nothing_purged()


def test_a_partition_that_cannot_be_checked_refuses(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third of four partitions: the preceding ones are not purged either."""
    found = list(recordings_of(rig.topic, rig.client.list_recordings()).values())
    ended = rig.client.max_recorded_position

    def refuse(recording_id: int) -> int:
        if recording_id == found[2].recording_id:
            raise ArchiveError("refused")
        return ended(recording_id)

    with monkeypatch.context() as patch:
        patch.setattr(rig.client, "max_recorded_position", refuse)
        with pytest.raises(ArchiveError, match="refused"):
            rig.retain(rig.fast)
    rig.check_nothing_purged()
    assert all(each.segment_files for each in rig.retain(rig.fast))
