"""Copying a topic from a store of each kind into one of each kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.entity.logged import (
    DAY_NS,
    TOPIC,
    append,
    append_events,
    apply,
    delete,
    logged,
    purge,
    put_snapshots,
)

from aerotape.codecs.entity.actions import Event
from aerotape.entity.records import Pointer
from aerotape.entity.stores import copying
from aerotape.entity.stores.base import EntityStore
from aerotape.entity.stores.copying import Copied, copy_topic
from aerotape.entity.stores.sql import SqlStore
from aerotape.entity.stores.url import open_store
from aerotape.errors import EntityStoreError, StoreLockedError

NAMES = itertools.count()
Open = Callable[..., str]
JVM = (pytest.mark.jvm, pytest.mark.slow)
WAYS = [
    ("sqlite", "sqlite"),
    ("sqlite", "postgresql"),
    ("postgresql", "sqlite"),
    ("postgresql", "postgresql"),
    pytest.param(("postgresql", "cassandra"), marks=JVM),
    pytest.param(("cassandra", "sqlite"), marks=JVM),
]


@pytest.fixture(params=WAYS, ids="-".join)
def ways(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The kinds of the source and the target; creating tables of Cassandra takes a second each."""
    way: tuple[str, str] = request.param
    return way


@pytest.fixture
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """A function that returns the URL of a new store of a kind, with these options."""
    namespaces: list[str] = []

    def url(kind: str, options: str) -> str:
        options = f"?namespace=copying_{next(NAMES)}&{options}"
        if kind == "sqlite":
            return f"sqlite:{tmp_path / f'{next(NAMES)}.db'}{options}"
        server = request.getfixturevalue(f"{kind}_server")
        if kind == "cassandra":
            namespaces.append(options.partition("&")[0].partition("=")[2])
        return f"{server.url}{options}"

    yield url
    if namespaces:
        request.getfixturevalue("cassandra_server").drop(namespaces)


@pytest.fixture
def source(ways: tuple[str, str], new_url: Open) -> str:
    """The URL of a store with journals of all forms."""
    source_url = new_url(ways[0], "segment_size=3&segments=50")
    with open_store(source_url, writable=True) as store, store.replicating():
        payloads = [Event(1, b'{"a":1}', "json", ("x", "y")), Event(2, b"\0\xff", "binary"),
                    Event(3, b"a\0b", "text"), Event(9)]  # fmt: skip
        apply(store, logged([
            append_events("", payloads, 3 * DAY_NS + 1, timestamp_ms=5, origin="o", version="v",
                          metadata={"k": [1]}),
            *(append("Order-7", n, origin="host") for n in range(1, 200)),
            delete("Order-7", 100),
            *(append(f"id-{n}", 1, timestamp_ms=n) for n in range(60)),
            append("gone", 1), purge("gone"), delete("reset", 3),
        ]))  # fmt: skip
        put_snapshots(
            store, "Order-7", logged([append("Order-7", n) for n in range(1, 13)], 1 << 20)
        )
        apply(store, logged([append("Order-7", 200)], 2 << 20), "another")
        store.apply(TOPIC, 2, {}, Pointer(64, 96))
    return source_url


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 40 rows: the source has several."""
    monkeypatch.setattr(copying, "_BATCH_ROWS", 40)


@pytest.fixture
def target(ways: tuple[str, str], new_url: Open) -> str:
    return new_url(ways[1], "segment_size=7&segments=40")


def copy(source: str, target: str, topic: str = TOPIC) -> Copied:
    return copy_topic(source, target, topic)


def contents(url: str, topic: str = TOPIC) -> object:
    """Return all that can be read of a topic."""
    with open_store(url) as store:
        found, after = {}, None
        while page := store.ids(topic, after, 25):
            for id, head in page:
                read = list(store.events(topic, id))
                found[id] = head, read, store.snapshots(topic, id)
            after = page[-1][0]
        return found, store.pointers(topic)


def tagged(store: EntityStore) -> list[tuple[str, int]] | None:
    if not isinstance(store, SqlStore):
        return None
    return [(id, each.seq_nr) for tag in ("x", "tag") for id, each in store.tagged(TOPIC, tag)]


def test_all_is_copied(source: str, target: str) -> None:
    """Heads, events, snapshots and pointers are equal; the replicator continues in the target."""
    before = contents(source)
    copied = copy(source, target)
    assert contents(target) == before == contents(source)
    assert (copied.journals, copied.events, copied.snapshots) == (63, 4 + 99 + 60, 10)
    with open_store(target, writable=True) as store, store.replicating():
        assert store.topics() == [TOPIC]
        if (found := tagged(store)) is not None:
            assert len(found) == 1 + 99 + 60
        apply(store, logged([append("Order-7", 200), delete("Order-7", 190)], 1 << 40))
        assert [each.seq_nr for each in store.events(TOPIC, "Order-7")] == [*range(191, 201)]
        apply(store, logged([purge("Order-7"), append("Order-7", 1)], 2 << 40))
        assert [each.seq_nr for each in store.events(TOPIC, "Order-7")] == [1]
        assert store.snapshot(TOPIC, "Order-7") is None


def test_an_interrupted_copy(source: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted copy leaves no pointer and is repeated, also after changes of the source."""
    rows_of = copying._rows
    for count in (0, 1, 3):

        def interrupted(*arguments: object, count: int = count) -> object:
            yield from itertools.islice(rows_of(*arguments), count)  # type: ignore[arg-type]
            raise KeyboardInterrupt

        monkeypatch.setattr(copying, "_rows", interrupted)
        with pytest.raises(KeyboardInterrupt):
            copy(source, target)
        monkeypatch.undo()
        with open_store(target) as store:
            assert (store.pointers(TOPIC), store.topics()) == ({}, [])
            if isinstance(store, SqlStore):
                assert store.ids(TOPIC) == []
    with open_store(source, writable=True) as store, store.replicating():
        apply(store, logged([purge("id-1"), purge("Order-7"), append("Order-7", 4)], 1 << 40))
    copy(source, target)
    assert contents(target) == contents(source)


def test_a_target_with_the_topic_is_refused(source: str, target: str) -> None:
    """A second copy is refused, and one into a store with another topic is not."""
    copy(source, target, "another")
    copy(source, target)
    before = contents(target)
    with pytest.raises(EntityStoreError, match="already has topic orders; copy it into another"):
        copy(source, target)
    assert contents(target) == before
    with pytest.raises(EntityStoreError, match="has no topic none; its topics are: another, order"):
        copy(source, target, "none")


def test_a_replicator_after_an_interrupted_copy(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a replicator has stored since an interrupted copy is not removed by another copy."""
    rows_of = copying._rows

    def interrupted(*arguments: object) -> object:
        yield from itertools.islice(rows_of(*arguments), 1)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(copying, "_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        copy(source, target)
    monkeypatch.undo()
    with open_store(target, writable=True) as store, store.replicating():
        apply(store, logged([append("Order-7", 1)]))
    before = contents(target)
    with pytest.raises(EntityStoreError, match="already has topic orders"):
        copy(source, target)
    assert contents(target) == before


def test_replicators_are_refused(source: str, target: str) -> None:
    """While a replicator runs in either store, nothing is copied."""
    open_store(target, writable=True).close()
    for url in (source, target):
        with (
            open_store(url, writable=True) as store,
            store.replicating(),
            pytest.raises(StoreLockedError),
        ):
            copy(source, target)
    with open_store(target) as store:
        assert store.ids(TOPIC) == []
    if source.startswith("sqlite"):
        with pytest.raises(EntityStoreError, match="within one file"):
            copy(source, source.replace("copying_", "other_"))


def test_the_lock_of_the_source_is_lost(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source that another replicator has taken meanwhile is not copied."""
    rows_of = copying._rows

    def taken(store: EntityStore, *arguments: object) -> object:
        yield from rows_of(store, *arguments)  # type: ignore[arg-type]
        store.unlock("replicator")
        with open_store(source, writable=True) as other, other.replicating():
            pass

    monkeypatch.setattr(copying, "_rows", taken)
    with pytest.raises(StoreLockedError):
        copy(source, target)
    with open_store(target) as store:
        assert store.pointers(TOPIC) == {}


def test_a_refused_copy_creates_nothing(tmp_path: Path) -> None:
    """While a replicator runs in the source, or within one file."""
    source, target = f"sqlite:{tmp_path / 'a.db'}", tmp_path / "b.db"
    with open_store(source, writable=True) as store, store.replicating():
        apply(store, logged([append("id", 1)]))
        with pytest.raises(StoreLockedError):
            copy(source, f"sqlite:{target}")
    assert not target.exists()
    with pytest.raises(EntityStoreError, match="within one file"):
        copy(source, f"{source}?namespace=x")
    with pytest.raises(EntityStoreError, match="no tables of namespace x"):
        open_store(f"{source}?namespace=x")
