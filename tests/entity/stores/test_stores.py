"""Every store: the conformance suite."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import pytest
from support.entity.logged import (
    DAY_NS,
    TOPIC,
    append,
    append_events,
    apply,
    delete,
    logged,
    mark,
    purge,
    snapshot,
)

from aerotape.codecs.entity.actions import Action, Event
from aerotape.codecs.entity.segments import event_segment
from aerotape.entity.records import EventRecord, Pointer
from aerotape.entity.stores import base
from aerotape.entity.stores.base import EntityStore
from aerotape.entity.stores.url import open_store
from aerotape.entity.transitions import LoggedAction
from aerotape.errors import EntityStoreError, JournalChangedError, StoreLockedError

ID = "Order-7"
Open = Callable[..., str]


@pytest.fixture
def store(store_url: Open) -> Iterator[EntityStore]:
    """A new store whose lock the test holds; segment size 3."""
    with open_store(store_url("segment_size=3"), writable=True) as opened, opened.replicating():
        yield opened


def rows(store: EntityStore, id: str = ID, topic: str = TOPIC) -> list[tuple[int, int]]:
    """Return the events of a journal as (seqNr, segment)."""
    head = store.head(topic, id)
    if head is None:
        return []
    return [(e.seq_nr, event_segment(e.seq_nr, head.segment_size)) for e in store.events(topic, id)]


def aggregate(
    store: EntityStore, id: str = ID, topic: str = TOPIC
) -> tuple[int, int | None, int] | None:
    head = store.head(topic, id)
    return None if head is None else (head.seq_nr, head.delete_to, head.segment_size)


ROWS: dict[
    str, tuple[int, list[Action], tuple[int, int | None, int], list[tuple[int, int]], list[int]]
] = {
    "one segment": (5, [append(ID, 1, 2, 3)], (3, None, 5), [(1, 0), (2, 0), (3, 0)], []),
    "two segments": (
        3,
        [append(ID, 1, 2, 3), append(ID, 4, 5)],
        (5, None, 3),
        [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1)],
        [],
    ),
    "deleted to 2": (
        3,
        [append(ID, 1, 2, 3, 4, 5), delete(ID, 2)],
        (5, 2, 3),
        [(3, 0), (4, 1), (5, 1)],
        [],
    ),
    "all preserved, snapshot of 5": (
        3,
        [append(ID, 1, 2, 3, 4, 5), snapshot(ID, 5)],
        (5, None, 3),
        [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1)],
        [5],
    ),
    "zero state": (3, [append(ID, 1, 2, 3, 4, 5), delete(ID, 5)], (5, 5, 3), [], []),
    "zero state, snapshot of 5": (
        3,
        [append(ID, 1, 2, 3), append(ID, 4, 5), snapshot(ID, 5), delete(ID, 5)],
        (5, 5, 3),
        [],
        [5],
    ),
    "zero state, snapshots of 2 and 5": (
        3,
        [
            append(ID, 1, 2, 3),
            snapshot(ID, 2),
            delete(ID, 2),
            append(ID, 4, 5),
            delete(ID, 5),
            snapshot(ID, 5),
        ],
        (5, 5, 3),
        [],
        [5, 2],
    ),
}


def test_worked_rows(store_url: Open) -> None:
    """The seven rows of the design: heads, (seqNr, segment) of events, and snapshots.

    In one batch, one by one, and each one repeated.
    """
    url = store_url()
    for name, (size, actions, expected, events, snapshots) in ROWS.items():
        log = logged(actions)
        with open_store(f"{url}segment_size={size}", writable=True) as store, store.replicating():
            for topic, batches in {
                f"{name}, batch": [log],
                name: [[each] for each in log],
                f"{name}, repeated": [[each] for each in log for _ in range(2)],
            }.items():
                for batch in batches:
                    apply(store, batch, topic)
                assert (aggregate(store, ID, topic), rows(store, ID, topic)) == (expected, events)
                assert [each.seq_nr for each in store.snapshots(topic, ID)] == snapshots
                apply(store, logged([purge(ID)], 6400), topic)
                assert store.snapshots(topic, ID) == []


def test_transitions(store: EntityStore) -> None:
    """Each action, without an entry and with one, one batch each."""
    log = iter(logged([
        mark(ID), purge(ID), delete(ID, 2), append(ID, 3, 4, 5), mark(ID), delete(ID, 4),
        append(ID, 6, 7, 8), delete(ID, 100), append(ID, 9), purge(ID), append(ID, 1),
    ]))  # fmt: skip
    expected: list[tuple[tuple[int, int | None, int] | None, list[int]]] = [
        (None, []),
        (None, []),
        ((2, 2, 3), []),
        ((5, 2, 3), [3, 4, 5]),
        ((5, 2, 3), [3, 4, 5]),
        ((5, 4, 3), [5]),
        ((8, 4, 3), [5, 6, 7, 8]),
        ((8, 8, 3), []),
        ((9, 8, 3), [9]),
        (None, []),
        ((1, None, 3), [1]),
    ]
    for action, (head, events) in zip(log, expected, strict=True):
        apply(store, [action])
        assert (aggregate(store), [number for number, _ in rows(store)]) == (head, events)
        apply(store, [action])  # repeated after a crash
        assert (aggregate(store), [number for number, _ in rows(store)]) == (head, events)


def test_head_has_all_fields(store: EntityStore) -> None:
    """A head is read as it was stored."""
    first = append(ID, 1, 2, timestamp_ms=1_700_000_000_123, origin="host-ü", version="1.2",
                   expire_after_ns=DAY_NS + 5)  # fmt: skip
    apply(store, logged([first], 4096))
    head = store.head(TOPIC, ID)
    assert head is not None
    assert (head.partition, head.offset, head.origin) == (0, 4096, "host-ü")
    assert (head.created_ms, head.updated_ms) == (1_700_000_000_123, 1_700_000_000_123)
    assert (head.expire_after_ns, head.expires_ms) == (DAY_NS + 5, 1_700_086_400_124)
    apply(store, logged([append(ID, 3, timestamp_ms=1_700_000_000_999)], 8192))
    later = store.head(TOPIC, ID)
    assert later is not None
    assert (later.created_ms, later.updated_ms) == (1_700_000_000_123, 1_700_000_000_999)
    assert (later.expire_after_ns, later.expires_ms) == (None, None)
    assert later.record_id == head.record_id


def test_events_are_read_as_appended(store: EntityStore) -> None:
    """All payload types, tags, and the fields of the append."""
    events = [
        Event(1, b'{"a":[1,"\xc3\xbc"]}', "json", ("x", "y")),
        Event(2, b"\x00\xff", "binary"),
        Event(3, "text ü".encode(), "text", ("z",)),
        Event(5),
        Event(6, b"a\x00b", "text"),  # columns of PostgreSQL's type text have no NUL
        Event(7, b' {"a": 2.50,\n"a":1e999, "\\ud800":"\\u0000"}\n', "json"),
        Event(8, b"12345678901234567890.1230", "json"),
    ]
    action = append_events(ID, events, DAY_NS, timestamp_ms=17, origin="o", version="v",
                           metadata={"k": 1})  # fmt: skip
    apply(store, logged([action], 128))
    found = list(store.events(TOPIC, ID))
    assert [each.event for each in found] == events
    assert {(e.partition, e.offset, e.timestamp_ms, e.origin, e.version) for e in found} == {
        (0, 128, 17, "o", "v")
    }
    assert {e.expire_after_ns for e in found} == {DAY_NS}
    assert [each.metadata for each in found] == [{"k": 1}] * 7


def test_pages_of_events(store: EntityStore) -> None:
    """A journal of several pages is read in order, and from any event."""
    apply(store, logged([append(ID, *range(n, n + 100)) for n in range(1, 1300, 100)]))
    assert [each.seq_nr for each in store.events(TOPIC, ID)] == list(range(1, 1301))
    assert [each.seq_nr for each in store.events(TOPIC, ID, 513)] == list(range(513, 1301))


def test_gaps(store: EntityStore) -> None:
    """Events 1, 2 and 7 are three events, also after a delete into the gap."""
    apply(store, logged([append(ID, 1, 2, 7)]))
    assert [number for number, _ in rows(store)] == [1, 2, 7]
    apply(store, logged([delete(ID, 5)], 640))
    assert (aggregate(store), rows(store)) == ((7, 5, 3), [(7, 2)])


def test_segment_size_is_kept_for_each_journal(store_url: Open) -> None:
    """A store opened with another segment size keeps the size of existing journals."""
    url = store_url("segment_size=3")
    with open_store(url, writable=True) as store, store.replicating():
        apply(store, logged([append("old", 1, 2, 3, 4)]))
    with open_store(url.replace("segment_size=3", "segment_size=100"), writable=True) as store:
        with store.replicating():
            apply(store, logged([append("new", *range(1, 8)), append("old", 5, 6, 7)], 640))
            apply(store, logged([delete("old", 5), delete("new", 5)], 6400))
        assert aggregate(store, "old") == (7, 5, 3)
        assert aggregate(store, "new") == (7, 5, 100)
        assert rows(store, "old") == [(6, 1), (7, 2)]
        assert rows(store, "new") == [(6, 0), (7, 0)]


def test_purged_events_do_not_reappear(store: EntityStore) -> None:
    """The journal that begins after a purge has none of the events of the purged one."""
    apply(store, logged([append(ID, *range(1, 20)), delete(ID, 7)]))
    apply(store, logged([purge(ID), append(ID, 1), append(ID, 2, 3)], 640))
    assert rows(store) == [(1, 0), (2, 0), (3, 0)]
    apply(store, logged([append(ID, 4, 15)], 6400))
    assert [number for number, _ in rows(store)] == [1, 2, 3, 4, 15]


def test_journals_are_separate(store: EntityStore) -> None:
    """Keys are ids in topics; upper and lower case differ, though their segment is the same."""
    log = logged([append("a", 1), append("A", 1, 2), append("a'; --", 1, 2, 3)])
    apply(store, log)
    apply(store, log[:1], topic="another")
    apply(store, logged([purge("A")], 640))
    assert aggregate(store, "a") == (1, None, 3)
    assert aggregate(store, "A") is None
    assert aggregate(store, "a'; --") == (3, None, 3)


def test_pointers(store: EntityStore) -> None:
    """Each partition of a topic has a pointer: offset and next position."""
    assert store.pointer(TOPIC, 0) is None
    store.apply(TOPIC, 0, {}, Pointer(64, 128))
    store.apply(TOPIC, 3, {}, Pointer(0, 96))
    store.apply(TOPIC, 0, {}, Pointer(128, 1 << 40))
    assert store.pointers(TOPIC) == {0: Pointer(128, 1 << 40), 3: Pointer(0, 96)}
    assert store.pointer(TOPIC, 3) == Pointer(0, 96)
    assert store.pointers("another") == {}


def test_expired(store: EntityStore) -> None:
    """Journals that have expired are listed, to the millisecond."""
    noon_ms, hour_ns = 43_200_000, DAY_NS // 24
    hours = {"": 3, "e11": 11, "e12": 12, "e13": 13, "e36": 36}
    log = [
        append(id, 1, expire_after_ns=count * hour_ns, timestamp_ms=noon_ms)
        for id, count in hours.items()
    ]
    apply(store, logged([*log, append("stays", 1)]))
    for at in range(0, 60):
        for ms in (-1, 0):
            now_ms = noon_ms + at * 3_600_000 + ms
            expected = sorted(id for id, count in hours.items() if count <= at + ms / 1000)
            assert sorted(id for id, _ in store.expired(TOPIC, now_ms)) == expected


def test_namespaces_are_separate(store_url: Open) -> None:
    """Two namespaces of one store have separate tables and locks."""
    with (
        open_store(store_url(), writable=True) as one,
        open_store(store_url(), writable=True) as two,
        one.replicating(),
        two.replicating(),
    ):
        apply(one, logged([append(ID, 1)]))
        assert two.head(TOPIC, ID) is None


def test_one_replicator(store_url: Open) -> None:
    """A second replicator is refused, with the owner's name; after the first it gets the lock."""
    url = store_url()
    with open_store(url, writable=True) as one, open_store(url, writable=True) as two:
        with one.replicating():
            refused = pytest.raises(StoreLockedError, match="another replicator has its lock")
            with refused as caught, two.replicating():
                pass
            assert one.owner in str(caught.value)
            with pytest.raises(StoreLockedError):
                two.apply(TOPIC, 0, {}, Pointer(0, 64))
            assert one.pointer(TOPIC, 0) is None
        with two.replicating():
            two.apply(TOPIC, 0, {}, Pointer(0, 64))


def test_lock_of_a_replicator_that_is_gone(
    store_url: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock expires; that of a process of this host that has ended is taken at once."""
    url = store_url("lease_ms=1000")
    with open_store(url, writable=True) as one, open_store(url, writable=True) as two:
        assert one.try_lock(base.REPLICATOR_LOCK) == one.owner
        while two.try_lock(base.REPLICATOR_LOCK) != two.owner:
            time.sleep(0.05)
        with pytest.raises(StoreLockedError):
            one.apply(TOPIC, 0, {}, Pointer(0, 64))
        two.unlock(base.REPLICATOR_LOCK)
    with open_store(store_url(), writable=True) as one, open_store(url, writable=True) as two:
        space = one.owner.rsplit("/", 2)[0]
        one.owner = two.owner = f"{space}/{(1 << 22) - 1}/gone"
        two.try_lock(base.REPLICATOR_LOCK)
        two.owner = f"{space}/1/next"
        assert two.try_lock(base.REPLICATOR_LOCK) == two.owner


def test_other_schema_version(store_url: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of another version are refused, and both versions named."""
    url = store_url()
    for name in ("sql", "cassandra_tables"):
        module = f"aerotape.entity.stores.{name}.SCHEMA_VERSION"
        monkeypatch.setattr(module, "7")
    monkeypatch.setattr(base, "SCHEMA_VERSION", "7")
    open_store(url, writable=True).close()
    monkeypatch.undo()
    with pytest.raises(EntityStoreError, match=r"schema version '7': expected '2'"):
        open_store(url, writable=True)


def test_tables_are_created_once(store_url: Open) -> None:
    """A store that is opened again has what it had."""
    url = store_url()
    with open_store(url, writable=True) as store, store.replicating():
        apply(store, logged([append(ID, 1)]))
    with open_store(url, writable=True) as store:
        assert rows(store) == [(1, 0)]


def random_log(random: random.Random, keys: int, count: int) -> list[LoggedAction]:
    """Return random actions; appends continue their journal."""
    last: dict[str, int] = {}
    actions: list[Action] = []
    for _ in range(count):
        id = f"k{random.randrange(keys)}"
        kinds = ("append", "delete", "snapshot", "purge", "mark")
        kind = random.choices(kinds, (6, 3, 3, 1, 1))[0]
        if kind == "append":
            first = last.get(id, 0) + random.choice((1, 1, 1, 2))
            numbers = range(first, first + random.randrange(1, 6))
            actions.append(append(id, *numbers))
            last[id] = numbers[-1]
        elif kind == "delete":
            to = random.randrange(1, 30)
            actions.append(delete(id, to))
            last.setdefault(id, to)
        elif kind == "snapshot":
            actions.append(snapshot(id, max(1, last.get(id, 0) - random.randrange(-1, 8))))
        elif kind == "purge":
            actions.append(purge(id))
            last.pop(id, None)
        else:
            actions.append(mark(id))
    return logged(actions)


class Model:
    """The journals of all keys as dictionaries; snapshots as offsets by sequence number."""

    def __init__(self) -> None:
        self.heads: dict[str, tuple[int, int]] = {}
        self.events: dict[str, list[int]] = {}
        self.snapshots: dict[str, dict[int, int]] = {}

    def apply(self, log: list[LoggedAction]) -> None:
        for each in log:
            id, header = each.header.id.decode(), each.header
            seq_nr, deleted = self.heads.get(id, (0, 0))
            match header.kind.name:
                case "APPEND":
                    if id not in self.heads:
                        deleted = header.from_seq_nr - 1
                    self.heads[id] = (header.to_seq_nr, deleted)
                    numbers = [event.seq_nr for event in each.events.events]
                    self.events[id] = self.events.get(id, []) + numbers
                case "DELETE":
                    to = header.to_seq_nr
                    if id in self.heads:
                        to = max(deleted, min(to, seq_nr))
                    self.heads[id] = (max(seq_nr, to), to)
                case "SNAPSHOT" if header.to_seq_nr <= seq_nr:
                    self.snapshots.setdefault(id, {})[header.to_seq_nr] = each.offset
                case "PURGE":
                    self.heads.pop(id, None)
                    self.snapshots.pop(id, None)
                    self.events.pop(id, None)

    def read(self, id: str) -> list[int]:
        _, deleted = self.heads.get(id, (0, 0))
        return [number for number in self.events.get(id, []) if number > deleted]


def test_random_histories(store: EntityStore, seeds: range) -> None:
    """Random histories in random batches, some repeated, leave what a model has."""
    for seed in seeds:
        chance = random.Random(seed)
        topic, keys = f"topic-{seed}", 6
        log, model, begin = random_log(chance, keys, 150), Model(), 0
        while begin < len(log):
            end = begin + chance.randrange(1, 25)
            batch = log[begin:end]
            apply(store, batch, topic)
            if chance.random() < 0.2:
                apply(store, batch, topic)
            model.apply(batch)
            begin = end
        for id in (f"k{index}" for index in range(keys)):
            head = store.head(topic, id)
            found = None if head is None else (head.seq_nr, head.delete_to or 0)
            assert found == model.heads.get(id)
            assert [each.seq_nr for each in store.events(topic, id)] == model.read(id)
            latest = sorted(model.snapshots.get(id, {}).items(), reverse=True)[:10]
            assert [(each.seq_nr, each.offset) for each in store.snapshots(topic, id)] == latest


def test_changes_while_events_are_read(store: EntityStore) -> None:
    """Events are given without a gap; where there would be one, reading ends with an error."""
    actions = [append(ID, *range(1, 601)), append(ID, *range(601, 1301))]
    apply(store, logged(actions))

    def begun() -> Iterator[EventRecord]:
        events = store.events(TOPIC, ID)
        assert [next(events).seq_nr for _ in range(10)] == list(range(1, 11))
        return events

    # Events that were given already may be deleted, also up to the end of the page.
    events = begun()
    apply(store, logged([delete(ID, 500)], 10_000))
    assert [each.seq_nr for each in events] == list(range(11, 1301))
    events = store.events(TOPIC, ID)
    assert next(events).seq_nr == 501
    apply(store, logged([delete(ID, 1200)], 20_000))
    with pytest.raises(JournalChangedError, match="events up to 1200 were deleted"):
        list(events)
    assert [each.seq_nr for each in store.events(TOPIC, ID)] == list(range(1201, 1301))
    apply(store, logged([append(ID, *range(1301, 2001))], 30_000))
    events = store.events(TOPIC, ID)
    assert next(events).seq_nr == 1201
    head = store.head(TOPIC, ID)
    assert head is not None
    apply(store, logged([purge(ID), append(ID, 1, 2)], 40_000))
    with pytest.raises(JournalChangedError, match="was purged while it was read"):
        list(events)
    with pytest.raises(JournalChangedError, match="was purged"):
        list(store.events(TOPIC, ID, 1, head.record_id))
    assert [each.seq_nr for each in store.events(TOPIC, ID)] == [1, 2]
