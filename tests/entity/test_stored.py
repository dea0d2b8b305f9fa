"""Reading from a store alone, while a replicator changes it and while there is no archive."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from support.entity.logged import (
    TOPIC,
    append,
    append_events,
    apply,
    delete,
    logged,
    purge,
    snapshot,
)

from aerotape.codecs.entity.actions import Action, Event
from aerotape.entity.records import Pointer, Replicated
from aerotape.entity.stored import StoredEntities
from aerotape.entity.stores.base import EntityStore
from aerotape.entity.stores.cassandra_tables import CassandraTables
from aerotape.entity.stores.sql import SqlStore
from aerotape.entity.stores.url import open_store
from aerotape.errors import ConfigurationError, EntityError, EntityStoreError, JournalChangedError

ID = "order-7"
Open = Callable[..., str]


@pytest.fixture
def url(store_url: Open) -> str:
    """The URL of a new store, segment size 200."""
    return store_url("segment_size=200")


@pytest.fixture
def store(url: str) -> Iterator[EntityStore]:
    """That store, writable; the test holds its lock."""
    with open_store(url, writable=True) as opened, opened.replicating():
        yield opened


@pytest.fixture
def reader(url: str, store: EntityStore) -> Iterator[EntityStore]:
    """That store, opened for reading by another process."""
    with open_store(url) as opened:
        yield opened


def test_reading(store: EntityStore, reader: EntityStore) -> None:
    """Events, last number and snapshots are those that are replicated."""
    apply(store, logged([append(ID, *range(1, 6)), snapshot(ID, 2), snapshot(ID, 3)]))
    stored = StoredEntities(reader, TOPIC)
    assert stored.topic == TOPIC
    assert [each.seq_nr for each in stored.read(ID)] == [1, 2, 3, 4, 5]
    assert [each.seq_nr for each in stored.read(ID, 4)] == [4, 5]
    assert stored.pointer(ID) == 5
    assert stored.snapshot(ID) == store.snapshot(TOPIC, ID) != None  # noqa: E711
    found, events = stored.recover(ID)
    assert found == stored.snapshot(ID)
    assert [each.seq_nr for each in events] == [4, 5]
    assert (list(stored.read("none")), stored.pointer("none"), stored.snapshot("none")) == (
        [],
        None,
        None,
    )
    found, events = stored.recover("none")
    assert (found, list(events)) == (None, [])
    apply(store, logged([delete(ID, 9), append("gone", 1)], 6400))
    assert (stored.pointer(ID), list(stored.read(ID))) == (5, [])
    apply(store, logged([delete("reset", 7)], 12_800))
    assert stored.pointer("reset") == 7


def test_how_far_it_is_replicated(store: EntityStore, reader: EntityStore) -> None:
    """Each partition has the position and the time when the store got it."""
    before_ms = time.time_ns() // 1_000_000
    store.apply(TOPIC, 0, {}, Pointer(64, 128))
    store.apply(TOPIC, 3, {}, Pointer(0, 96))
    first = StoredEntities(reader, TOPIC).replicated_to()
    assert {index: each.next_position for index, each in first.items()} == {0: 128, 3: 96}
    time.sleep(0.01)
    store.apply(TOPIC, 0, {}, Pointer(128, 192))
    later = StoredEntities(reader, TOPIC).replicated_to()
    assert later[3] == first[3]
    assert later[0] == Replicated(192, later[0].updated_ms)
    after_ms = time.time_ns() // 1_000_000
    assert before_ms <= first[0].updated_ms < later[0].updated_ms <= after_ms


def test_a_topic_that_the_store_does_not_have(store: EntityStore, reader: EntityStore) -> None:
    """It is refused, with the topics that there are."""
    with pytest.raises(EntityStoreError, match=r"has no topic orders; its topics are: none"):
        StoredEntities(reader, TOPIC)
    apply(store, logged([append(ID, 1)]), "another")
    with pytest.raises(EntityStoreError, match=r"has no topic orders; its topics are: another"):
        StoredEntities(reader, TOPIC)
    with pytest.raises(ConfigurationError, match="not a topic's name"):
        StoredEntities(reader, "a|b")


def test_changes_while_it_is_read(store: EntityStore, reader: EntityStore) -> None:
    """A journal that replaces another one during a read does not show in it: it is an error."""
    apply(store, logged([append(ID, *range(n, n + 100)) for n in range(1, 2001, 100)]))
    stored = StoredEntities(reader, TOPIC)
    records = stored.read(ID)
    _, to_recover = stored.recover(ID)
    read = [next(records).offset, next(to_recover).offset]
    apply(store, logged([purge(ID), append(ID, *range(1, 2001))], 64_000))
    for rest in (records, to_recover):
        with pytest.raises(JournalChangedError, match="was purged while it was read"):
            for record in rest:
                read.append(record.offset)
    assert max(read) < 64_000
    snapshot_, events = stored.recover(ID)
    assert snapshot_ is None
    assert [each.seq_nr for each in events] == list(range(1, 2001))


def test_deletes_while_it_is_recovered(store: EntityStore, reader: EntityStore) -> None:
    """Events after the snapshot that are deleted meanwhile are an error at the end."""
    apply(store, logged([append(ID, 1, 2, 3, 4), snapshot(ID, 2)]))
    stored = StoredEntities(reader, TOPIC)
    _, events = stored.recover(ID)
    apply(store, logged([delete(ID, 2)], 6400))
    assert [each.seq_nr for each in events] == [3, 4]
    _, events = stored.recover(ID)
    apply(store, logged([snapshot(ID, 4), delete(ID, 4)], 12_800))
    with pytest.raises(EntityError, match="recover it again"):
        list(events)
    found, events = stored.recover(ID)
    assert found is not None
    assert (found.seq_nr, list(events)) == (4, [])


def test_a_later_snapshot_while_it_is_recovered(store: EntityStore, reader: EntityStore) -> None:
    """It is an error: Cassandra may already have deleted the events, and the head not changed."""
    apply(store, logged([append(ID, 1, 2, 3, 4), snapshot(ID, 2)]))
    _, events = StoredEntities(reader, TOPIC).recover(ID)
    apply(store, logged([snapshot(ID, 1), snapshot(ID, 2)], 6400))
    assert [each.seq_nr for each in events] == [3, 4]
    _, events = StoredEntities(reader, TOPIC).recover(ID)
    apply(store, logged([snapshot(ID, 3)], 12_800))
    with pytest.raises(EntityError, match="recover it again"):
        list(events)


def test_snapshots_are_stored_before_events_are_deleted(
    store: EntityStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Cassandra, which has no transactions; an interrupted batch is repeated."""
    if not isinstance(store, CassandraTables):
        pytest.skip("the store has transactions")
    apply(store, logged([append(ID, 1, 2, 3)]))
    batch = logged([snapshot(ID, 2), delete(ID, 2)], 6400)
    with monkeypatch.context() as patch:
        patch.setattr(type(store), "_deletes", lambda *_: (_ for _ in [1 / 0]))
        with pytest.raises(ZeroDivisionError):
            apply(store, batch)
    assert [each.seq_nr for each in store.snapshots(TOPIC, ID)] == [2]
    assert [each.seq_nr for each in store.events(TOPIC, ID)] == [1, 2, 3]
    apply(store, batch)
    assert [each.seq_nr for each in store.snapshots(TOPIC, ID)] == [2]
    assert [each.seq_nr for each in store.events(TOPIC, ID)] == [3]


def test_reading_during_replication(store: EntityStore, reader: EntityStore, seeds: range) -> None:
    """Whatever is replicated meanwhile: one journal, rising numbers, and state that is complete.

    The state of an entity is its last number; each event says in which journal it is. Cassandra
    has no transactions, a purge shows in part.
    """
    purges = isinstance(store, SqlStore)
    stop = threading.Event()
    faults: list[BaseException] = []
    wanted, applied = 50 * len(seeds), 0

    def replicate() -> None:
        nonlocal applied
        try:
            chance, journal, last = random.Random(seeds.start), 0, 0
            for batch in range(1, 1_000_000):
                if stop.is_set():
                    return
                actions: list[Action] = []
                for _ in range(chance.randint(1, 4)):
                    if (kind := chance.random()) < 0.7 or not last:
                        numbers = range(last + 1, last + chance.choice([2, 5, 700]))
                        payload = b"%d" % journal
                        made = [Event(number, payload, "json") for number in numbers]
                        actions.append(append_events(ID, made))
                        last = numbers[-1]
                    elif kind < 0.95 or not purges:
                        upto = chance.randint(max(1, last - 3), last)
                        actions += [snapshot(ID, upto), delete(ID, upto)]
                    else:
                        actions.append(purge(ID))
                        journal, last = journal + 1, 0
                apply(store, logged(actions, 64_000 * batch))
                applied = batch
        except BaseException as error:
            faults.append(error)

    apply(store, logged([append_events(ID, [Event(1, b"-1", "json")]), purge(ID)]))
    stored = StoredEntities(reader, TOPIC)
    thread = threading.Thread(target=replicate)
    thread.start()
    try:
        ends_at, recovered = time.monotonic() + 60, 0
        while min(recovered, applied) < wanted and not faults:
            assert time.monotonic() < ends_at
            with contextlib.suppress(JournalChangedError):
                check_one_journal([(each.seq_nr, each.event.payload) for each in stored.read(ID)])
            found, events = stored.recover(ID)
            try:
                after = [(each.seq_nr, each.event.payload) for each in events]
            except EntityError:
                continue
            check_one_journal(after)
            state = 0 if found is None else found.seq_nr
            assert [number for number, _ in after] == [*range(state + 1, state + len(after) + 1)]
            recovered += 1
    finally:
        stop.set()
        thread.join()
    assert not faults


def check_one_journal(read: list[tuple[int, bytes | None]]) -> None:
    numbers = [number for number, _ in read]
    assert numbers == sorted(set(numbers))
    assert len({payload for _, payload in read}) <= 1
