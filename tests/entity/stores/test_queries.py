"""Views, lists, tags and snapshots of stores."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.entity.logged import (
    TOPIC,
    append,
    append_events,
    apply,
    delete,
    logged,
    purge,
    put_snapshots,
)

from aerotape.codecs.entity.actions import Action, Event
from aerotape.codecs.entity.segments import head_segment
from aerotape.entity.records import Pointer, SnapshotRecord
from aerotape.entity.stores.base import EntityStore
from aerotape.entity.stores.sql import SqlStore
from aerotape.entity.stores.url import open_store
from aerotape.errors import EntityStoreError

ID = "Order-7"
Open = Callable[..., str]


@pytest.fixture
def store(store_url: Open) -> Iterator[EntityStore]:
    """A new store whose lock the test holds; segment size 3, 50 segments."""
    url = store_url("segment_size=3&segments=50")
    with open_store(url, writable=True) as opened, opened.replicating():
        yield opened


@pytest.fixture
def sql_store(store: EntityStore) -> SqlStore:
    """A store with SQL."""
    if not isinstance(store, SqlStore):
        pytest.skip("only SQL stores have these indexes")
    store.index_positions()
    return store


def test_view(store: EntityStore) -> None:
    """A view is the pointer and the head, None for what there is not."""
    assert store.view(TOPIC, 0, ID) == (None, None)
    store.apply(TOPIC, 3, {}, Pointer(0, 96))
    assert store.view(TOPIC, 3, ID) == (Pointer(0, 96), None)
    apply(store, logged([append(ID, 1, 2), append("other", 1)], 640))
    head = store.head(TOPIC, ID)
    assert head is not None
    assert store.view(TOPIC, 0, ID) == (Pointer(704, 768), head)
    assert store.view(TOPIC, 1, ID) == (None, head)
    assert store.view("another", 0, ID) == (None, None)


def test_topics_and_ids(store: EntityStore) -> None:
    """All topics and all journals are listed, in pages of any length, in the documented order."""
    assert (store.topics(), store.ids(TOPIC)) == ([], [])
    ids = ["", "a", "A", "a ", "ä", "😀", "\uffff", *(f"id-{n}" for n in range(60))]
    apply(store, logged([append(id, 1) for id in ids]))
    apply(store, logged([append("a", 1)]), topic="Another")
    assert store.topics() == ["Another", TOPIC]

    def order(id: str) -> tuple[int, bytes]:
        segment = 0 if isinstance(store, SqlStore) else head_segment(id, 50)
        return segment, id.encode()

    expected = sorted(ids, key=order)
    for limit in (1, 2, 7, 1000):
        found, after = [], None
        while page := store.ids(TOPIC, after, limit):
            assert len(page) <= limit
            assert dict(page) == store.heads(TOPIC, [id for id, _ in page])
            found += [id for id, _ in page]
            after = found[-1]
        assert found == expected
    assert [id for id, _ in store.ids("Another")] == ["a"]


def test_tags(sql_store: SqlStore) -> None:
    """Events are found by tag, in the order of the log; those deleted or purged are not."""
    store = sql_store
    tags = ("x", "x", "y z", "a\0b", "ü'; --")

    def tagged(id: str, *seq_nrs: int) -> list[Event]:
        return [Event(number, b"1", "json", tags[: number % 6]) for number in seq_nrs]

    log = logged(
        [
            append_events("b", tagged("b", *range(1, 7))),
            append_events("a", tagged("a", 1, 3, 5)),
            append_events("b", tagged("b", 9, 10, 11)),
            append_events("c", tagged("c", 5)),
        ]
    )
    apply(store, log)
    apply(store, log, topic="another")

    def found(tag: str, topic: str = TOPIC) -> list[tuple[str, int]]:
        return [(id, record.seq_nr) for id, record in store.tagged(topic, tag)]

    assert found("a\0b") == [("b", 4), ("b", 5), ("a", 5), ("b", 10), ("b", 11), ("c", 5)]
    assert found("ü'; --") == [("b", 5), ("a", 5), ("b", 11), ("c", 5)]
    assert found("x")[:3] == [("b", 1), ("b", 2), ("b", 3)]
    assert found("a b") == found("X") == []
    apply(store, logged([delete("b", 5), purge("c")], 6400))
    assert found("a\0b") == [("a", 5), ("b", 10), ("b", 11)]
    apply(store, logged([append_events("c", tagged("c", 3, 4))], 64_000))
    assert found("a\0b") == [("a", 5), ("b", 10), ("b", 11), ("c", 4)]
    assert len(found("a\0b", "another")) == 6


def test_random_tags(sql_store: SqlStore, seeds: range) -> None:
    """After random histories, the index has the tags of the events that are left, and no other."""
    for seed in seeds:
        chance, topic, last = random.Random(seed), f"topic-{seed}", dict.fromkeys("abc", 0)
        for batch in range(30):
            actions: list[Action] = []
            for _ in range(chance.randrange(1, 8)):
                id = chance.choice("abc")
                if (kind := chance.random()) < 0.6:
                    numbers = range(last[id] + 1, last[id] + chance.randrange(2, 5))
                    last[id] = numbers[-1]
                    actions.append(append_events(id, [
                        Event(n, b"1", "json", tuple(chance.sample("xyz", chance.randrange(3))))
                        for n in numbers
                    ]))  # fmt: skip
                elif kind < 0.9:
                    actions.append(delete(id, chance.randrange(1, 20)))
                else:
                    actions.append(purge(id))
                    last[id] = 0
            log = logged(actions, 6400 * batch)
            apply(sql_store, log, topic)
            if chance.random() < 0.3:
                apply(sql_store, log, topic)
        for tag in "xyz":
            expected = {
                (id, each.seq_nr)
                for id in "abc"
                for each in sql_store.events(topic, id)
                if tag in each.event.tags
            }
            found = [(id, each.seq_nr) for id, each in sql_store.tagged(topic, tag)]
            assert sorted(found) == sorted(expected)


def test_events_between(sql_store: SqlStore, seeds: range) -> None:
    """After random histories: the events that are left, by position, of a range, with tags."""
    for seed in seeds:
        chance, topic, last = random.Random(seed), f"between-{seed}", dict.fromkeys("abc", 0)
        for batch in range(20):
            actions: list[Action] = []
            for _ in range(chance.randrange(1, 8)):
                id = chance.choice("abc")
                if chance.random() < 0.7:
                    numbers = range(last[id] + 1, last[id] + chance.randrange(2, 5))
                    last[id] = numbers[-1]
                    actions.append(append_events(id, [
                        Event(n, b"1", "json", tuple(chance.sample("xyz", chance.randrange(4))))
                        for n in numbers
                    ]))  # fmt: skip
                else:
                    actions.append(delete(id, chance.randrange(1, 20)))
            apply(sql_store, logged(actions, 640 * batch), topic)
        every = [(id, record) for id in "abc" for record in sql_store.events(topic, id)]
        every.sort(key=lambda item: (item[1].offset, item[1].seq_nr))
        for tags in ((), ("x",), ("x", "y"), ("z", "y", "x"), ("none",)):
            begin, end = chance.randrange(0, 6400, 32), chance.randrange(6400, 13_000, 32)
            for low, high in ((0, 1 << 40), (begin, end), (end, begin)):
                found = list(sql_store.events_between(topic, 0, low, high, tags))
                assert found == [
                    (id, record)
                    for id, record in every
                    if low <= record.offset < high
                    and (not tags or set(tags) & set(record.event.tags))
                ]
        assert list(sql_store.events_between(topic, 1, 0, 1 << 40)) == []


def test_pages_of_events(sql_store: SqlStore) -> None:
    """More events than a page, of one append and of many."""
    log = [append(ID, *range(1, 1001)), *(append(f"id-{n}", 1) for n in range(1000))]
    apply(sql_store, logged(log))
    found = [(id, each.seq_nr) for id, each in sql_store.events_between(TOPIC, 0, 0, 1 << 40)]
    assert found == [*((ID, n) for n in range(1, 1001)), *((f"id-{n}", 1) for n in range(1000))]


def test_no_order(store: EntityStore) -> None:
    """A store without an order of events, or without its index yet, says so at once."""
    is_sql = isinstance(store, SqlStore)
    expected = "without --no-index-positions" if is_sql else "no order of events across"
    with pytest.raises(EntityStoreError, match=expected):
        store.events_between(TOPIC, 0, 0, 1 << 40)
    if not is_sql:
        with pytest.raises(EntityStoreError, match=expected):
            store.index_positions()
        return
    assert list(store.events_between(TOPIC, 0, 0, 1 << 40, ("tag",))) == []
    for _ in range(2):
        store.index_positions()
        assert list(store.events_between(TOPIC, 0, 0, 1 << 40)) == []


def test_pages_of_tags(sql_store: SqlStore) -> None:
    """More events than a page, of one append and of many."""
    log = [append(ID, *range(1, 1001)), *(append(f"id-{n}", 1) for n in range(1000))]
    apply(sql_store, logged(log))
    found = [(id, each.seq_nr) for id, each in sql_store.tagged(TOPIC, "tag")]
    assert found == [*((ID, n) for n in range(1, 1001)), *((f"id-{n}", 1) for n in range(1000))]


def test_snapshots(store: EntityStore) -> None:
    """The latest ten snapshots are kept, and read as they were written, until a purge."""
    assert store.snapshot(TOPIC, ID) is None
    apply(store, logged([append(ID, *range(1, 40))]))
    assert store.snapshot(TOPIC, ID) is None
    payloads = [
        Event(5, b'{"a":[1,"\xc3\xbc"]}', "json"),
        Event(7, b"\x00\xff", "binary"),
        Event(9, "text ü".encode(), "text"),
        Event(11, b"a\x00b", "text"),
        Event(13),
    ]
    for index, event in enumerate(payloads):
        fields: dict[str, Any] = {
            "timestamp_ms": 17,
            "origin": "o",
            "version": "v",
            "metadata": {"k": 1},
        }
        (action,) = logged([append_events(ID, [event], **fields)], 6400 + 64 * index)
        for _ in range(2):
            put_snapshots(store, ID, [action])
        assert store.snapshot(TOPIC, ID) == SnapshotRecord(
            event.seq_nr, event.payload, event.payload_type, 0, 6400 + 64 * index,
            17, "o", "v", {"k": 1},
        )  # fmt: skip
    many = logged([append(ID, n) for n in (20, 21, 22, 23, 24, 25, 26, 27, 20)], 64_000)
    put_snapshots(store, ID, many)
    found = store.snapshots(TOPIC, ID)
    assert [each.seq_nr for each in found] == [27, 26, 25, 24, 23, 22, 21, 20, 13, 11]
    assert [each.offset for each in found][-3] == many[-1].offset  # the last one of event 20
    put_snapshots(store, ID, logged([append(ID, 3)], 640_000))
    assert [each.seq_nr for each in store.snapshots(TOPIC, ID, 2)] == [27, 26]
    apply(store, logged([delete(ID, 39)], 650_000))
    assert len(store.snapshots(TOPIC, ID)) == 10
    apply(store, logged([purge(ID)], 700_000))
    assert store.snapshots(TOPIC, ID) == []
    apply(store, logged([append(ID, 1)], 800_000))
    assert store.snapshots(TOPIC, ID) == []
    put_snapshots(store, ID, logged([append(ID, 1)], 900_000))
    assert [each.seq_nr for each in store.snapshots(TOPIC, ID)] == [1]
