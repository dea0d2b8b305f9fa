"""Cassandra has no transactions: a replicator can end after any statement of a batch."""

from __future__ import annotations

import random

import pytest
from support.entity.fake_cassandra import FakeCassandra, KilledError
from support.entity.logged import TOPIC, apply, delete, snapshot
from support.entity.simulation import World, open_writer
from support.entity.topics import events

from aerotape.codecs.entity.messages import encode
from aerotape.entity.log import topic_log
from aerotape.entity.transitions import LoggedAction
from aerotape.errors import SequenceConflictError

HISTORIES = 100
STEPS = 40
IDS = "ab"


class History:
    """Actions on a topic, and a replicator that ends at random and is started again."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.world = World(chance)
        self.store = FakeCassandra(chance, segment_size=chance.choice([2, 3, 10]))
        self.topics = [self.world.open_topic(self.store) for _ in range(2)]
        self.batch_records = chance.choice([1, 3, 7, 100])
        # By id and incarnation: sequence numbers and offsets of snapshots.
        self.snapshots: dict[tuple[str, str], dict[int, int]] = {}
        self.interruptions = 0

    def run(self) -> None:
        for _ in range(STEPS):
            self.act()
            for _ in range(self.chance.choice([0, 0, 1, 3])):
                self.replicate(self.chance.choice([None, self.chance.randint(0, 12)]))
            self.check_reads()
        for _ in self.world.records:
            self.replicate()
        self.check_store()

    def act(self) -> None:
        """Send an action, and compare its outcome with that in the log."""
        chance, model = self.chance, self.world.journals.model
        topic, id = chance.choice(self.topics), chance.choice(IDS)
        last, kind = model.pointer(id) or 0, chance.random()
        if kind < 0.3:
            first = max(1, last + chance.choice([1, 1, 3, 0, -2]))
            topic.append(id, events(*range(first, first + chance.choice([1, 1, 4]))))
        elif kind < 0.5:
            expect = max(0, last + chance.choice([0, 0, -1, 1]))
            is_expected = expect == last
            try:
                topic.append(id, events(expect + 1), expect=expect)
                assert is_expected
            except SequenceConflictError as error:
                assert not is_expected
                assert error.actual == last
        elif kind < 0.65:
            # A delete past the last event, repeated after an append, must not delete that.
            self.world.offer(encode(delete(id, chance.randint(1, last + 2))))
        elif kind < 0.75:
            topic.purge(id)
        elif kind < 0.82:
            if (head := self.store.head(TOPIC, id)) is not None:
                is_purged = topic.purge_unchanged(id, head)
                assert is_purged == self.world.records[-1].is_applied
        elif journal := model.journals.get(id):
            self.world.offer(encode(snapshot(id, last)))
            of_journal = self.snapshots.setdefault((id, journal.incarnation), {})
            of_journal[last] = self.world.records[-1].offset

    def replicate(self, writes_left: int | None = None) -> None:
        """Store a batch from the pointer on; a part of it if its process ends after some writes."""
        pointer = self.store.pointer(TOPIC, 0)
        begin = 0 if pointer is None else pointer.next_position
        batch = [each for each in self.world.records if each.offset >= begin][: self.batch_records]
        if not batch:
            return
        log = [LoggedAction(0, each.offset, each.message) for each in batch]
        self.store.writes_left = writes_left
        try:
            apply(self.store, log, next_position=batch[-1].end)
        except KilledError:
            self.interruptions += 1
        self.store.writes_left = None

    def check_reads(self) -> None:
        """Readers see the journals as they are, whatever part of a batch is stored."""
        topic, model = self.chance.choice(self.topics), self.world.journals.model
        for id in IDS:
            read = [(each.event, each.offset) for each in topic.read(id)]
            assert read == [(each.event, each.offset) for each in model.read(id)]
            assert topic.pointer(id) == model.pointer(id)

    def check_store(self) -> None:
        """A store that is up to date has the journals as they are."""
        for id in IDS:
            head, journal = self.store.head(TOPIC, id), self.world.journals.model.journals.get(id)
            if journal is None:
                assert head is None
                continue
            assert head is not None
            change = self.world.journals.offsets[id]
            assert (head.seq_nr, head.delete_to or 0) == (journal.seq_nr, journal.delete_to)
            assert (head.partition, head.offset) == change
            stored = [(each.event, each.offset) for each in self.store.events(TOPIC, id)]
            assert stored == [
                (each.event, each.offset) for _, each in sorted(journal.events.items())
            ]
            expected = sorted(self.snapshots.get((id, journal.incarnation), {}).items())[-10:]
            found = [(each.seq_nr, each.offset) for each in self.store.snapshots(TOPIC, id)]
            assert found == expected[::-1]


def test_interrupted_batches(monkeypatch: pytest.MonkeyPatch, seeds: range) -> None:
    """A part of a batch, in any order of its concurrent statements, changes no result of a read.

    The batch is repeated, perhaps with other records after it, until all of it is stored.
    """
    monkeypatch.setattr(topic_log, "open_writer", open_writer)
    interruptions = 0
    for number in range(seeds.start * HISTORIES, seeds.stop * HISTORIES):
        history = History(random.Random(number))
        try:
            history.run()
        except BaseException as error:
            error.add_note(f"in history {number}")
            raise
        interruptions += history.interruptions
    assert interruptions > HISTORIES
