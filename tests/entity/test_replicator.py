"""The replicator, with our archive and stores of all kinds."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from support.daemon.archives import ServedArchive
from support.entity.logged import DAY_NS
from support.processes import free_port
from support.stores.postgresql import PostgresqlServer

import aerotape
from aerotape.codecs.entity.actions import Event
from aerotape.entity.blocking.entities import Entities
from aerotape.entity.partition import Partition
from aerotape.entity.records import Head, Pointer
from aerotape.entity.replicator import Progress, Replicator
from aerotape.entity.retention import purge_expired
from aerotape.entity.stores.base import EntityStore
from aerotape.entity.stores.url import open_store
from aerotape.errors import EntityError, EntityStoreError, StoreLockedError

TOPICS = (f"replicated-{number}" for number in itertools.count())


@pytest.fixture
def topic() -> str:
    return next(TOPICS)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'entities.db'}"


def events(*numbers: int, size: int = 0) -> list[Event]:
    return [Event(number, b'{"n":%d}' % number + b" " * size, "text") for number in numbers]


def replicate(archive: ServedArchive, topic: str, url: str, **options: int) -> list[Progress]:
    """Replicate all that is recorded."""
    with replicator(archive, topic, url, **options) as one:
        return list(one.run(until_caught_up=True))


def replicator(archive: ServedArchive, topic: str, url: str, **options: float) -> Replicator:
    return Replicator(topic, archive.connect, lambda: open_store(url, writable=True), **options)  # type: ignore[arg-type]


def numbers(found: Iterator[object]) -> list[int]:
    return [each.seq_nr for each in found]  # type: ignore[attr-defined]


class Model:
    """Journals as (last event, deleted to, events)."""

    def __init__(self) -> None:
        self.last: dict[str, int] = {}
        self.kept: dict[str, list[int]] = {}

    def append(self, id: str, appended: list[int]) -> None:
        self.last[id] = appended[-1]
        self.kept[id] = self.kept.get(id, []) + appended

    def delete(self, id: str, to: int) -> None:
        self.kept[id] = [number for number in self.kept.get(id, []) if number > to]

    def purge(self, id: str) -> None:
        self.last.pop(id, None)
        self.kept.pop(id, None)


def random_step(chance: random.Random, journal: Entities, model: Model, id: str) -> None:
    kind = chance.random()
    if kind < 0.6:
        first = model.last.get(id, 0) + chance.choice((1, 1, 3))
        appended = list(range(first, first + chance.randrange(1, 5)))
        journal.append(id, events(*appended))
        model.append(id, appended)
    elif kind < 0.85:
        to = chance.randrange(1, 20)
        if journal.delete(id, to) is not None:
            model.delete(id, to)
    else:
        journal.purge(id)
        model.purge(id)


def test_random_histories(
    archive: ServedArchive,
    client: aerotape.ArchiveClient,
    store_url: Callable[[str], str],
    seeds: range,
) -> None:
    """Reads are a model's at every step, while the replicator lags and ends anywhere."""
    url = store_url("segment_size=3")
    open_store(url, writable=True).close()
    with open_store(url) as store:
        for seed in seeds:
            topic, chance, model = next(TOPICS), random.Random(seed), Model()
            with client.entities(topic, 2, store) as journal:
                for _ in range(60):
                    id = f"id-{chance.randrange(4)}"
                    random_step(chance, journal, model, id)
                    if chance.random() < 0.3:  # a replicator that ends after some batches
                        size = chance.randrange(1, 12)
                        with replicator(archive, topic, url, batch_records=size) as one:
                            running = one.run(until_caught_up=True)
                            for _ in range(chance.randrange(1, 4)):
                                next(running, None)
                    id = f"id-{chance.randrange(4)}"
                    assert numbers(journal.read(id)) == model.kept.get(id, [])
                    assert journal.pointer(id) == model.last.get(id)
                replicate(archive, topic, url)
                passes = journal.statistics.passes
                for id in model.last:
                    head = store.head(topic, id)
                    assert head is not None
                    assert head.seq_nr == model.last[id]
                    assert numbers(store.events(topic, id)) == model.kept[id]
                    assert numbers(journal.read(id)) == model.kept[id]
                    assert journal.statistics.passes == passes
                    replicate(archive, topic, url)  # the reader's mark
            ids = [f"id-{index}" for index in range(4)]
            assert sorted(store.heads(topic, ids)) == sorted(model.last)


def test_follows(
    archive: ServedArchive, client: aerotape.ArchiveClient, topic: str, sqlite_url: str
) -> None:
    """A replicator that follows stores what is appended later, also to a topic that begins then."""
    found: list[Progress] = []
    over = threading.Event()

    def follow() -> None:
        with replicator(archive, topic, sqlite_url) as one:
            for progress in one.run():
                found.append(progress)
                if over.is_set():
                    return

    thread = threading.Thread(target=follow)
    thread.start()
    with client.entities(topic, 2) as journal, open_store(sqlite_url, writable=True) as store:
        pointers = {}
        for number in range(1, 30):
            place = journal.append(f"id-{number % 3}", events(number))
            pointers[place.partition] = Pointer(place.offset, place.next_position)
        for _ in range(1000):
            if store.pointers(topic) == pointers:
                break
            threading.Event().wait(0.01)
        assert store.pointers(topic) == pointers
        over.set()
        for number in range(2):
            journal.append(f"{number}", events(1))
        thread.join(20)
        assert not thread.is_alive()
    assert sum(each.events for each in found) >= 29


def test_two_replicators(
    archive: ServedArchive, client: aerotape.ArchiveClient, topic: str, sqlite_url: str
) -> None:
    """A second replicator of a namespace is refused; one of another namespace is not."""
    with client.entities(topic) as journal:
        journal.append("id", events(1))
        with open_store(sqlite_url, writable=True) as store, store.replicating():
            with pytest.raises(StoreLockedError, match="namespace journal of sqlite:"):
                replicate(archive, topic, sqlite_url)
            (done,) = replicate(archive, topic, f"{sqlite_url}?namespace=other")
    assert done.events == 1


def test_topic_without_recordings(archive: ServedArchive, topic: str, sqlite_url: str) -> None:
    """A topic that does not exist cannot be caught up with."""
    with pytest.raises(EntityError, match=rf"topic {topic} has no recording: check its name"):
        replicate(archive, topic, sqlite_url)


def test_store_of_another_log(
    archive: ServedArchive, client: aerotape.ArchiveClient, topic: str, sqlite_url: str
) -> None:
    """A pointer after the end of the recording is an error, and changes nothing."""
    with client.entities(topic) as journal:
        journal.append("id", events(1))
        with open_store(sqlite_url, writable=True) as store, store.replicating():
            store.apply(topic, 0, {}, Pointer(1 << 20, (1 << 20) + 64))
        with pytest.raises(EntityError, match="the store is that of another log"):
            replicate(archive, topic, sqlite_url)


def test_record_that_is_no_action(
    archive: ServedArchive, client: aerotape.ArchiveClient, topic: str, sqlite_url: str
) -> None:
    """A record that is no action ends the replicator, with its position; the pointer precedes."""
    partition = Partition(topic, 0, 1)
    with client.entities(topic) as journal:
        place = journal.append("id", events(1))
        with client.aeron.add_publication(
            partition.channel("aeron:ipc"), partition.stream_id
        ) as intruder:
            intruder.send(b"not an action")
            journal.append("id", events(2))
            with pytest.raises(EntityError, match=rf"position {place.next_position} on"):
                replicate(archive, topic, sqlite_url, batch_records=1)
    with open_store(sqlite_url, writable=True) as store:
        assert store.pointer(topic, 0) == Pointer(place.offset, place.next_position)


def test_store_goes_away(
    archive: ServedArchive, client: aerotape.ArchiveClient, topic: str
) -> None:
    """A replicator resumes when the store is back; with no time to retry it is an error."""
    with PostgresqlServer() as server, client.entities(topic) as journal:
        for number in range(1, 201):
            journal.append("id", events(number))
        with replicator(archive, topic, server.url, batch_records=10, retry_s=30) as one:
            running = one.run(until_caught_up=True)
            records = [next(running).records for _ in range(3)]
            server.stop()
            restart = threading.Timer(0.5, server.start)
            restart.start()
            records += [each.records for each in running]
            restart.join()
        assert sum(records) == 200
        with open_store(server.url, writable=True) as store:
            assert numbers(store.events(topic, "id")) == list(range(1, 201))
        for number in range(201, 301):
            journal.append("id", events(number))
        with replicator(archive, topic, server.url, batch_records=10, retry_s=0) as one:
            running = one.run(until_caught_up=True)
            next(running)
            server.stop()
            with pytest.raises(EntityStoreError, match=r"postgresql://tests@127\.0\.0\.1"):
                list(running)


def test_archive_restarts(tmp_path: Path, aeron_dir: Path, sqlite_url: str, topic: str) -> None:
    """A replicator resumes when the archive is back."""
    channel = f"aeron:udp?endpoint=localhost:{free_port()}"

    def launch() -> aerotape.Archive:
        return aerotape.Archive.launch(
            dir=tmp_path / "archive",
            aeron_dir=aeron_dir,
            driver="embedded",
            properties={"aeron.archive.control.channel": channel, **SMALL},
        )

    def connect() -> aerotape.ArchiveClient:
        return aerotape.connect(
            aeron_dir=aeron_dir, control_request_channel=channel, timeout_ns=3_000_000_000
        )

    def write(first: int) -> None:
        with connect() as client, client.entities(topic) as journal:
            for number in range(first, first + 100):
                journal.append("id", events(number))

    with Replicator(
        topic, connect, lambda: open_store(sqlite_url, writable=True), batch_records=10, retry_s=30
    ) as one:
        running = one.run()
        with launch():
            write(1)
            next(running)
        with launch():
            write(101)
            with open_store(sqlite_url, writable=True) as store:
                while len(numbers(store.events(topic, "id"))) < 200:
                    next(running)
                assert numbers(store.events(topic, "id")) == list(range(1, 201))
                running.close()


SMALL = {
    "aeron.term.buffer.sparse.file": "true",
    "aeron.ipc.term.buffer.length": "65536",
    "aeron.archive.segment.file.length": "131072",
    "aeron.archive.low.storage.space.threshold": "1m",
}


def test_purge_expired(
    archive: ServedArchive, client: aerotape.ArchiveClient, topic: str, sqlite_url: str
) -> None:
    """Expired journals are purged, but not one with an append that is not replicated."""
    far_ms = 100 * 365 * DAY_NS // 1_000_000
    with (
        open_store(sqlite_url, writable=True) as store,
        client.entities(topic, 2, store) as journal,
    ):
        for id in ("short", "moved"):
            journal.append(id, events(1), expire_after_ns=DAY_NS)
        journal.append("long", events(1), expire_after_ns=100 * 365 * DAY_NS)
        journal.append("never", events(1))
        replicate(archive, topic, sqlite_url)
        journal.append("moved", events(2))
        assert list(purge_expired(journal, store)) == []
        listed = {
            each.id: each.is_purged for each in purge_expired(journal, store, far_ms, dry_run=True)
        }
        assert listed == {"short": False, "moved": False}
        done = {each.id: each.is_purged for each in purge_expired(journal, store, far_ms)}
        assert done == {"short": True, "moved": False}
        assert numbers(journal.read("short")) == []
        replicate(archive, topic, sqlite_url)
        assert sorted(store.heads(topic, ["long", "moved", "never", "short"])) == [
            "long",
            "moved",
            "never",
        ]
        moved = store.head(topic, "moved")
        assert moved is not None
        assert moved.expires_ms is None


def test_unreplicated_tail_only(
    archive: ServedArchive, client: aerotape.ArchiveClient, topic: str, sqlite_url: str
) -> None:
    """With a replicated log, a read takes nothing from it; deletes not replicated do not leak."""
    with (
        open_store(sqlite_url, writable=True) as store,
        client.entities(topic, 1, store) as journal,
    ):
        journal.append("id", events(1, 2, 3, 4, 5))
        replicate(archive, topic, sqlite_url)
        journal.delete("id", 3)
        assert numbers(journal.read("id")) == [4, 5]
        journal.purge("id")
        assert numbers(journal.read("id")) == []
        assert numbers(store.events(topic, "id")) == [1, 2, 3, 4, 5]


def test_stores_are_closed_on_errors(
    archive: ServedArchive, client: aerotape.ArchiveClient, topic: str, sqlite_url: str
) -> None:
    """After a failure the lock is free for the next replicator at once."""
    opened: list[EntityStore] = []

    def open_it() -> EntityStore:
        opened.append(open_store(sqlite_url, writable=True))
        opened[-1].heads = refused  # type: ignore[method-assign]
        return opened[-1]

    def refused(topic: str, ids: Sequence[str]) -> dict[str, Head]:
        raise EntityError("refused", topic)

    with client.entities(topic) as journal:
        journal.append("id", events(1))
        with closing(Replicator(topic, archive.connect, open_it)) as one:
            with pytest.raises(EntityError, match="refused"):
                list(one.run(until_caught_up=True))
            assert [each.events for each in replicate(archive, topic, sqlite_url)] == [1]
    assert len(opened) == 1
