"""Random histories: the changes that a subscription returns are those of a model."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from support.daemon.archives import KINDS, ServedArchive, serve
from support.entity.followed import Follower
from support.entity.memory_store import MemoryStore
from support.entity.model import Model
from support.entity.topics import new_topic, tagged_events

import aerotape
from aerotape.entity.blocking.entities import Entities
from aerotape.entity.following.changes import TopicAppend, TopicChange
from aerotape.entity.following.following import From
from aerotape.entity.records import EventRecord
from aerotape.entity.replicator import Replicator
from aerotape.entity.stores.store import Store
from aerotape.entity.stores.url import open_store

IDS = ("a", "b", "C", "polygenelubricants")
STEPS = 80


@pytest.fixture(scope="module", params=KINDS)
def archive(request: pytest.FixtureRequest) -> Iterator[ServedArchive]:
    """Our archive, and the Java one."""
    with serve(request.param) as served:
        yield served


class History:
    """Random actions on a topic and, at the same time, on the model."""

    def __init__(self, client: aerotape.ArchiveClient, chance: random.Random) -> None:
        self.chance = chance
        self.model = Model()
        self.topic = new_topic()
        self.client = client
        self.writer = client.entities(self.topic, 2)

    def step(self) -> None:
        id = self.chance.choice(IDS)
        kind = self.chance.choice(["append"] * 6 + ["delete"] * 3 + ["purge", "unchanged"])
        if kind == "append":
            self.append(id)
        elif kind == "delete":
            to = self.chance.randint(1, (self.model.pointer(id) or 3) + 2)
            if self.writer.delete(id, to) is not None:
                self.model.delete(id, to)
        elif kind == "purge":
            self.writer.purge(id)
            self.model.purge(id)
        elif self.chance.random() < 0.1:  # the recordings stop and are extended
            self.writer.close()
            self.writer = self.client.entities(self.topic, 2)

    def append(self, id: str) -> None:
        last = self.model.pointer(id) or 0
        first = max(1, last + self.chance.choice([1, 1, 1, 4, 0, -1, -3]))
        appended = tagged_events(*range(first, first + self.chance.randint(1, 4)))
        is_conditional = self.chance.random() < 0.5
        try:
            place = self.writer.append(id, appended, expect=first - 1 if is_conditional else None)
        except aerotape.errors.SequenceConflictError:
            return
        assert self.model.append(
            id,
            [EventRecord(event, place.partition, place.offset, 0) for event in appended],
            is_conditional=is_conditional,
        )

    def purge_unchanged(self, store: Store) -> None:
        """Purge a journal unless it has changed since the store has it."""
        id = self.chance.choice(IDS)
        head = store.head(self.topic, id)
        if head is not None and self.writer.purge_unchanged(id, head):
            self.model.purge(id)


def follow(
    entities: Entities, from_: Mapping[int, int] | None = None, tags: Iterable[str] = ()
) -> list[TopicChange]:
    begin: From = "beginning" if from_ is None else from_
    with entities.subscribe(begin, tuple(tags), until_caught_up=True) as found:
        return list(found)


def check(history: History, store: Store | None, chance: random.Random) -> None:
    """Follow from the beginning, then from changes in the midst."""
    with history.client.entities(history.topic, 2, store) as entities:
        changes = follow(entities)
        places = [(each.partition, each.offset) for each in changes]
        assert max(Counter(places).values(), default=1) == 1
        for partition in range(2):
            offsets = [each.offset for each in changes if each.partition == partition]
            assert offsets == sorted(offsets)
        Follower(changes).check(history.model, IDS)
        for index in chance.sample(range(len(changes)), min(6, len(changes))):
            follower = Follower(changes[: index + 1])
            rest = follow(entities, changes[index].positions)
            passed = set(places[: index + 1])
            assert not passed & {(each.partition, each.offset) for each in rest}
            follower.apply(rest)
            follower.check(history.model, IDS)
        odd = follow(entities, tags=["odd"])
        expected = [
            [record for record in each.events if "odd" in record.event.tags]
            for each in changes
            if isinstance(each, TopicAppend)
        ]
        found = [list(each.events) for each in odd if isinstance(each, TopicAppend)]
        assert found == [each for each in expected if each]


def test_log_alone(client: aerotape.ArchiveClient, seeds: range) -> None:
    """Without a store: exactly the changes of the log."""
    for seed in seeds:
        chance = random.Random(seed)
        history = History(client, chance)
        for _ in range(STEPS):
            history.step()
        check(history, None, chance)
        history.writer.close()


def test_lagging_store(client: aerotape.ArchiveClient, seeds: range) -> None:
    """With a store that is replicated up to any record."""
    for seed in seeds:
        chance = random.Random(seed)
        history, store = History(client, chance), MemoryStore()
        for _ in range(4):
            for _ in range(STEPS // 4):
                history.step()
            store.replicate(client, history.topic, chance.choice([1, 7, 20, None]))
            check(history, store, chance)
        history.writer.close()


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_subscriptions_that_stay_open(
    client: aerotape.ArchiveClient,
    archive: ServedArchive,
    seeds: range,
    tmp_path: Path,
    database: str,
    request: pytest.FixtureRequest,
) -> None:
    """Changes come in pieces, while a store is replicated and journals are purged."""
    url = f"sqlite:{tmp_path / 'entities.db'}"
    if database == "postgresql":
        url = request.getfixturevalue("postgresql_server").url
    for seed in seeds:
        chance = random.Random(seed)
        history = History(client, chance)
        opened = partial(open_store, f"{url}?namespace={archive.kind}_{seed}")
        replicator = Replicator(
            history.topic, archive.connect, partial(opened, writable=True), index_positions=True
        )
        history.writer.purge("a")  # the first record
        list(replicator.run(until_caught_up=True))
        with opened() as store, client.entities(history.topic, 2, store) as entities:
            followers = [(Follower(), entities.subscribe()) for _ in range(2)]
            late = Follower()
            for step in range(STEPS):
                history.step()
                if chance.random() < 0.1:
                    history.purge_unchanged(store)
                if chance.random() < 0.1:
                    list(replicator.run(until_caught_up=True))
                follower, subscription = chance.choice(followers)
                follower.apply(subscription.take(chance.choice([0, 1, 5, 1000])))
                if chance.random() < 0.1:
                    subscription.close()
                    followers.remove((follower, subscription))
                    followers.append((follower, entities.subscribe(subscription.positions)))
                if step % 10 == 9:
                    late.apply(follow(entities, late.positions))
                    late.check(history.model, IDS)
            for follower, subscription in followers:
                while changes := subscription.take(10):
                    follower.apply(changes)
                follower.apply(follow(entities, subscription.positions))
                follower.check(history.model, IDS)
                subscription.close()
        history.writer.close()
