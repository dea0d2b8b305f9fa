"""Random interleavings of callers: each result is that of a moment of its operation.

See `support/entity/simulation.py`.
"""

from __future__ import annotations

import random

import pytest
from support.entity.simulation import TOPIC, Record, World, open_writer
from support.entity.topics import events

from aerotape.codecs.entity.actions import ActionKind
from aerotape.codecs.entity.messages import read_header
from aerotape.entity.blocking.entities import Entities
from aerotape.entity.log import topic_log
from aerotape.errors import SequenceConflictError
from aerotape.waiting import run

HISTORIES = 300
STEPS = 12
IDS = "ab"


class Caller:
    """A thread with operations on topic objects that others use, too."""

    def __init__(self, world: World, topics: list[Entities]) -> None:
        self.world = world
        self.topics = topics
        self.chance = random.Random(world.chance.random())

    def run(self) -> None:
        world, chance = self.world, self.chance
        operations = [self.append_expecting] * 6 + [self.read, self.pointer] * 2
        operations += [self.append, self.delete, self.purge]
        if world.store is not None:
            operations.append(self.purge_unchanged)
        for _ in range(STEPS):
            if world.store is not None:
                world.under_way[self] = world.store.count
            chance.choice(operations)(chance.choice(self.topics), chance.choice(IDS))
            world.under_way.pop(self, None)
            if world.store is not None and chance.random() < 0.6:
                world.store.replicate_some()
            if world.store is not None and chance.random() < 0.1:
                world.purge()

    def last(self, id: str) -> int:
        """Return the last sequence number as it is, which may change before it is used."""
        return self.world.journals.model.pointer(id) or 0

    def sent_since(self, begin: int, kind: ActionKind, id: str, to_seq_nr: int) -> list[Record]:
        """Return the records of an action that any caller has sent since there were `begin`."""
        found = []
        for record in self.world.records[begin:]:
            header = read_header(record.message)
            if (header.kind, header.id, header.to_seq_nr) == (kind, id.encode(), to_seq_nr):
                found.append(record)
        return found

    # -- operations ----------------------------------------------------------------------------

    def append_expecting(self, topic: Entities, id: str) -> None:
        """An append succeeds if it does in the log; an error has the number that it has there."""
        begin, expect = len(self.world.records), self.last(id)
        expect = max(0, expect + self.chance.choice([0, 0, 0, 0, -1, 1]))
        last = expect + self.chance.choice([1, 1, 3])
        try:
            place = topic.append(id, events(*range(expect + 1, last + 1)), expect=expect)
        except SequenceConflictError as error:
            sent = self.sent_since(begin, ActionKind.CONDITIONAL_APPEND, id, last)
            assert (False, error.actual) in [(each.is_applied, each.last or 0) for each in sent]
        else:
            (sent_here,) = (each for each in self.world.records if each.offset == place.offset)
            assert sent_here.is_applied

    def append(self, topic: Entities, id: str) -> None:
        first = self.last(id) + self.chance.choice([1, 1, 2])
        topic.append(id, events(first, first + 1))

    def delete(self, topic: Entities, id: str) -> None:
        topic.delete(id, self.chance.randint(1, self.last(id) + 2))

    def purge(self, topic: Entities, id: str) -> None:
        topic.purge(id)

    def purge_unchanged(self, topic: Entities, id: str) -> None:
        """A journal is purged if it is in the log."""
        assert self.world.store is not None
        if (head := self.world.store.head(TOPIC, id)) is not None:
            begin = len(self.world.records)
            is_purged = topic.purge_unchanged(id, head)
            sent = self.sent_since(begin, ActionKind.CONDITIONAL_PURGE, id, head.offset)
            assert is_purged in [each.is_applied for each in sent]

    def pointer(self, topic: Entities, id: str) -> None:
        begin = len(self.world.records)
        found = topic.pointer(id)
        journals = [state.get(id) for state in self.world.states[begin:]]
        assert found in [None if each is None else each.last for each in journals]

    def read(self, topic: Entities, id: str) -> None:
        """The events are those of a moment, without those that were deleted or purged later."""
        begin = len(self.world.records)
        found = [(each.seq_nr, each.offset) for each in topic.read(id)]
        journals = [state.get(id) for state in self.world.states[begin:]]
        allowed: list[list[tuple[int, int]]] = []
        for number, journal in enumerate(journals):
            for later in journals[number:]:
                if journal is None or later is None or later.incarnation != journal.incarnation:
                    allowed.append([])
                    break
                allowed.append([each for each in journal.events if each[0] > later.deleted])
        assert found in allowed


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_interleavings(
    monkeypatch: pytest.MonkeyPatch, seeds: range, threads: int, stored: bool
) -> None:
    """Of two objects, used by threads; with a store that lags, and a log purged up to there."""
    monkeypatch.setattr(topic_log, "open_writer", open_writer)
    for number in range(seeds.start * HISTORIES, seeds.stop * HISTORIES):
        world = World(random.Random(number), stored=stored)
        topics = [world.open_topic(world.store) for _ in range(2)]
        for topic in topics:
            run(topic._log.writer(IDS[0]))  # others wait meanwhile
        try:
            world.baton.run([Caller(world, topics).run for _ in range(threads)])
        except BaseException as error:
            error.add_note(f"in history {number}")
            raise
