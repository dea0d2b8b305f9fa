"""Random histories: reads agree with a model at every step, however far a store is replicated."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from support.daemon.archives import KINDS, ServedArchive, serve
from support.entity.memory_store import MemoryStore
from support.entity.model import Model
from support.entity.topics import events, new_topic

import aerotape
from aerotape.entity.blocking.entities import Entities
from aerotape.entity.records import EventRecord, SnapshotRecord
from aerotape.errors import EntityError


@pytest.fixture(scope="module", params=KINDS)
def archive(request: pytest.FixtureRequest) -> Iterator[ServedArchive]:
    """Our archive, and the Java one."""
    with serve(request.param) as served:
        yield served


IDS = ("a", "b", "C", "polygenelubricants")
STEPS = 150


class History:
    """Random actions on a topic and, at the same time, on the model."""

    def __init__(
        self, client: aerotape.ArchiveClient, store: MemoryStore | None, chance: random.Random
    ) -> None:
        self.client = client
        self.store = store
        self.chance = chance
        self.model = Model()
        self.topic = new_topic()
        buffer_length = chance.choice([0, 500, 1 << 20])
        # Two writers of one driver.
        self.writers: list[Entities] = [
            client.entities(self.topic, 2, store, buffer_length=buffer_length) for _ in range(2)
        ]

    def step(self) -> None:
        journal, id = self.chance.choice(self.writers), self.chance.choice(IDS)
        kind = self.chance.choice(
            ["append"] * 6 + ["delete"] * 3 + ["snapshot"] * 3 + ["purge"] + ["close"]
        )
        if kind == "append":
            self.append(journal, id)
        elif kind == "delete":
            to = self.chance.randint(1, (self.model.pointer(id) or 3) + 2)
            written = journal.delete(id, to)
            assert (written is not None) == (id in self.model.journals)
            if written is not None:
                self.model.delete(id, to)
        elif kind == "snapshot":
            self.save_snapshot(journal, id)
        elif kind == "purge":
            journal.purge(id)
            self.model.purge(id)
        else:
            journal.close()
            self.writers.remove(journal)
            self.writers.append(self.client.entities(self.topic, 2, self.store))
        if self.store is not None and self.chance.random() < 0.3:
            self.store.replicate(self.client, self.topic, self.chance.choice([1, 3, None]))

    def append(self, journal: Entities, id: str) -> None:
        last = self.model.pointer(id) or 0
        first = max(1, last + self.chance.choice([1, 1, 1, 4, 0, -1, -3]))
        appended = events(*range(first, first + self.chance.randint(1, 4)))
        is_conditional = self.chance.random() < 0.5
        try:
            place = journal.append(id, appended, expect=first - 1 if is_conditional else None)
        except aerotape.errors.SequenceConflictError as error:
            assert is_conditional
            assert (error.expected, error.actual) == (first - 1, last) != (last, last)
            return
        assert self.model.append(
            id,
            [EventRecord(event, place.partition, place.offset, 0) for event in appended],
            is_conditional=is_conditional,
        )

    def save_snapshot(self, journal: Entities, id: str) -> None:
        last = self.model.pointer(id)
        seq_nr = max(1, (last or 0) - self.chance.choice([0, 0, 1, 2, 5, -1]))
        payload = self.chance.randbytes(3)
        try:
            place = journal.save_snapshot(id, seq_nr, payload)
        except EntityError as error:
            assert last is None or seq_nr > last
            assert (f"ends with event {last}" if last else "has no journal") in str(error)
            return
        assert self.model.save_snapshot(
            id, SnapshotRecord(seq_nr, payload, "binary", place.partition, place.offset, 0)
        )

    def check_snapshot(self, journal: Entities, id: str) -> None:
        expected = self.model.snapshot(id)
        found, events = journal.recover(id)
        assert journal.snapshot(id) == found
        assert same(found) == same(expected)
        after = 0 if expected is None else expected.seq_nr
        read = [each.event for each in events]
        assert read == [each.event for each in self.model.read(id, after + 1)]

    def check(self) -> None:
        journal, id = self.chance.choice(self.writers), self.chance.choice(IDS)
        begin = self.chance.choice([1, 1, 3, 10])
        read = [(each.event, each.partition, each.offset) for each in journal.read(id, begin)]
        expected = self.model.read(id, begin)
        assert read == [(each.event, each.partition, each.offset) for each in expected]
        assert journal.pointer(id) == self.model.pointer(id)
        self.check_snapshot(journal, id)

    def close(self) -> None:
        for journal in self.writers:
            journal.close()


def same(snapshot: SnapshotRecord | None) -> object:
    """Return what snapshots that are equal have in common: not the time and the writer."""
    if snapshot is None:
        return None
    return snapshot.seq_nr, snapshot.payload, snapshot.partition, snapshot.offset


@pytest.mark.parametrize("stored", [False, True])
def test_histories(client: aerotape.ArchiveClient, seeds: range, stored: bool) -> None:
    """Reads give what the model has: with the log alone, and with a store that lags at random."""
    for seed in seeds:
        history = History(client, MemoryStore() if stored else None, random.Random(seed))
        for _ in range(STEPS):
            history.step()
            history.check()
        history.close()
