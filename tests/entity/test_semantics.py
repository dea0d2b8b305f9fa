"""What actions do to a journal, by each of the three that apply them to an empty store."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pyarrow
import pytest
from support.entity.logged import (
    append,
    conditional,
    delete,
    logged,
    mark,
    purge,
    purge_unchanged,
    snapshot,
)
from support.entity.model import Model

from aerotape import _native
from aerotape._native import Fold
from aerotape.codecs.entity.actions import Action, ActionKind, Append, Delete, Event, Snapshot
from aerotape.codecs.entity.messages import Selector, encode
from aerotape.entity.log.tail import LogStatistics, Tail
from aerotape.entity.partition import Partition
from aerotape.entity.records import EventRecord
from aerotape.entity.transitions import LoggedAction, collapse
from aerotape.waiting import Task, run

ID = "an entity"
LENGTH = 64

# The last sequence number, and the events that can be read.
Journal = tuple[int, list[int]] | None


def of_replicator(actions: Sequence[Action]) -> Journal:
    """Return the journal that the replicator stores."""
    change = collapse(None, logged(actions), 100)
    if change.head is None:
        return None
    events = [
        event.seq_nr
        for each in change.insertions
        for event in each.action.events.events
        if event.seq_nr > each.after
    ]
    assert not change.is_purged
    return change.head.seq_nr, events


def of_replicator_by_one(actions: Sequence[Action]) -> Journal:
    """Return the journal that a replicator with batches of one record stores."""
    head, stored = None, list[int]()
    for action in logged(actions):
        change = collapse(head, [action], 100)
        if change.is_purged:
            stored = []
        if change.delete is not None:
            begin, end = change.delete
            stored = [each for each in stored if not begin <= each <= end]
        stored += [
            event.seq_nr
            for each in change.insertions
            for event in each.action.events.events
            if event.seq_nr > each.after
        ]
        head = change.head
    return None if head is None else (head.seq_nr, stored)


def of_reader(actions: Sequence[Action]) -> Journal:
    """Return the journal that a reader of the log sees."""
    messages = [
        SimpleNamespace(payload=encode(each), position=at, end_position=at + LENGTH)
        for at, each in zip(range(0, LENGTH * len(actions), LENGTH), actions, strict=True)
    ]

    class Records:
        """Batches of two."""

        def __init__(self, _: int, begin: int, __: int) -> None:
            self.rest = [each for each in messages if each.position >= begin]

        def next(self) -> Task[list[Any]]:
            found, self.rest = self.rest[:2], self.rest[2:]
            return found
            yield

        def close(self) -> None:
            pass

    archive = cast("Any", SimpleNamespace(records=Records))
    end = LENGTH * len(actions)
    partition, selector = Partition("topic", 0, 1, True), Selector(ID)
    found: list[Journal] = []
    for buffer_length in (0, 1 << 20):
        tail = Tail(archive, partition, 0, selector, Fold(), end, LogStatistics(), buffer_length)
        run(tail.scan(0))
        events, seq_nrs = tail.events(1), list[int]()
        while batch := run(events.next()):
            seq_nrs += [each.event.seq_nr for each in batch]
        journal = tail.fold.last, seq_nrs
        found.append(journal if tail.fold.exists else None)
    assert found[0] == found[1]
    return found[0]


def of_spark(actions: Sequence[Action]) -> Journal:
    """Return the journal that the tables for Spark have."""
    log = logged(actions)
    rows = [row(each) for each in log]
    actions_of_one = pyarrow.RecordBatch.from_pylist(rows, ROW)
    heads, events, others, _ = _native.entity_journals(actions_of_one, 1, 0)
    found = pyarrow.record_batch(heads).to_pylist()
    if not found:
        return None
    seq_nrs = pyarrow.record_batch(events)["seq_nr"].to_pylist()
    for number, _, after in others:
        seq_nrs += [event.seq_nr for event in log[number].events.events if event.seq_nr > after]
    return found[0]["seq_nr"], sorted(seq_nrs)


ROW = pyarrow.schema(
    {
        "entityId": pyarrow.binary(),
        "partition": pyarrow.int32(),
        "position": pyarrow.int64(),
        "kind": pyarrow.int32(),
        "fromSeqNr": pyarrow.int64(),
        "toSeqNr": pyarrow.int64(),
        "metadata": pyarrow.binary(),
        "payloadType": pyarrow.int32(),
        "sbe_payload": pyarrow.binary(),
    }
)


def row(action: LoggedAction) -> dict[str, Any]:
    """Return an action as the tables for Spark read it."""
    header = action.header
    is_append = header.from_seq_nr > 0
    return {
        "entityId": header.id,
        "partition": action.partition,
        "position": action.offset,
        "kind": header.kind.value,
        "fromSeqNr": header.from_seq_nr,
        "toSeqNr": header.to_seq_nr,
        "metadata": b"",
        "payloadType": action.append.payload_type.value if is_append else 0,
        "sbe_payload": action.append.payload if is_append else b"",
    }


ABC, D = append(ID, 1, 2, 3), append(ID, 4)


@pytest.mark.parametrize("journal_of", [of_replicator, of_replicator_by_one, of_reader, of_spark])
@pytest.mark.parametrize(
    ("actions", "journal"),
    [
        # Without a journal.
        ([], None),
        ([mark(ID)], None),
        ([purge(ID)], None),
        ([ABC], (3, [1, 2, 3])),
        ([append(ID, 5, 6)], (6, [5, 6])),
        ([delete(ID, 3)], (3, [])),
        # A mark changes nothing.
        ([ABC, mark(ID)], (3, [1, 2, 3])),
        # An append adds the events after the last one.
        ([ABC, D], (4, [1, 2, 3, 4])),
        ([ABC, append(ID, 9)], (9, [1, 2, 3, 9])),
        ([ABC, append(ID, 2)], (3, [1, 2, 3])),
        ([ABC, append(ID, 3, 4)], (4, [1, 2, 3, 4])),
        # A delete removes the events that exist up to its limit; the last number stays.
        ([ABC, delete(ID, 2)], (3, [3])),
        ([ABC, delete(ID, 3)], (3, [])),
        ([ABC, delete(ID, 9), D], (4, [4])),
        ([ABC, delete(ID, 2), delete(ID, 1)], (3, [3])),
        ([append(ID, 5, 6), delete(ID, 2)], (6, [5, 6])),
        # The first delete creates the journal; later ones do not move its end.
        ([delete(ID, 3), delete(ID, 5)], (3, [])),
        ([delete(ID, 3), D], (4, [4])),
        # A purge deletes the journal; the next action begins another.
        ([ABC, purge(ID)], None),
        ([ABC, purge(ID), mark(ID)], None),
        ([ABC, purge(ID), append(ID, 1)], (1, [1])),
        ([ABC, purge(ID), delete(ID, 2)], (2, [])),
        ([ABC, delete(ID, 2), purge(ID), D, delete(ID, 1)], (4, [4])),
        ([purge(ID), ABC, purge(ID)], None),
        # An append that overlaps what was deleted restores nothing.
        ([ABC, delete(ID, 3), append(ID, 1), append(ID, 2)], (3, [])),
        ([delete(ID, 6), append(ID, 1)], (6, [])),
        ([delete(ID, 6), append(ID, 5, 6, 7)], (7, [7])),
        ([ABC, append(ID, 2), delete(ID, 2), append(ID, 1, 2, 3, 4)], (4, [3, 4])),
        # A conditional append follows the last event directly, or is refused.
        ([conditional(ID, 1, 2)], (2, [1, 2])),
        ([conditional(ID, 2)], None),
        ([ABC, conditional(ID, 4)], (4, [1, 2, 3, 4])),
        ([ABC, conditional(ID, 3, 4)], (3, [1, 2, 3])),
        ([ABC, conditional(ID, 5)], (3, [1, 2, 3])),
        ([ABC, conditional(ID, 1)], (3, [1, 2, 3])),
        ([ABC, delete(ID, 3), conditional(ID, 1), conditional(ID, 4)], (4, [4])),
        ([ABC, purge(ID), conditional(ID, 4), conditional(ID, 1)], (1, [1])),
        ([delete(ID, 3), conditional(ID, 1), conditional(ID, 4)], (4, [4])),
        # A conditional purge has the position of the last change; actions are 64 bytes long.
        ([ABC, purge_unchanged(ID, 0)], None),
        ([ABC, D, purge_unchanged(ID, 0)], (4, [1, 2, 3, 4])),
        ([ABC, D, mark(ID), purge_unchanged(ID, 64)], None),
        ([ABC, delete(ID, 1), purge_unchanged(ID, 0)], (3, [2, 3])),
        ([ABC, conditional(ID, 1), purge_unchanged(ID, 0)], (3, [1, 2, 3])),
        ([purge_unchanged(ID, 0), ABC], (3, [1, 2, 3])),
        # A snapshot changes no event.
        ([snapshot(ID, 1)], None),
        ([ABC, snapshot(ID, 3), D], (4, [1, 2, 3, 4])),
        ([ABC, snapshot(ID, 3), purge_unchanged(ID, 0)], None),
    ],
)
def test_journal(
    journal_of: Callable[[Sequence[Action]], Journal], actions: list[Action], journal: Journal
) -> None:
    """Replicator, reader and the tables for Spark give an entity the same journal."""
    assert journal_of(actions) == journal


def of_model(actions: Sequence[Action]) -> Journal:
    """Return the journal of the model."""
    model, last_change = Model(), -1
    for each in logged(actions):
        header = each.header
        numbers = range(header.from_seq_nr, header.to_seq_nr + 1)
        match header.kind:
            case ActionKind.APPEND | ActionKind.CONDITIONAL_APPEND:
                added = [EventRecord(Event(number), 0, each.offset, 0) for number in numbers]
                is_conditional = header.kind is ActionKind.CONDITIONAL_APPEND
                model.append(ID, added, is_conditional=is_conditional)
                last_change = each.offset
            case ActionKind.DELETE:
                model.delete(ID, header.to_seq_nr)
                last_change = each.offset
            case ActionKind.PURGE:
                model.purge(ID)
            case ActionKind.CONDITIONAL_PURGE if last_change == header.to_seq_nr:
                model.purge(ID)
    last = model.pointer(ID)
    return None if last is None else (last, [each.seq_nr for each in model.read(ID)])


def random_actions(chance: random.Random) -> list[Action]:
    """Return a history in which numbers are repeated, skipped and expected wrongly."""
    actions: list[Action] = []
    last = last_change = 0
    for number in range(chance.randint(1, 12)):
        first = max(1, last + chance.choice([1, 1, 1, -2, -1, 0, 2]))
        end = first + chance.choice([0, 0, 1, 3])
        match chance.choice("aaaaccccdddpqqsm"):
            case "a":
                actions.append(append(ID, *range(first, end + 1)))
            case "c":
                actions.append(conditional(ID, *range(first, end + 1)))
            case "d":
                actions.append(delete(ID, max(1, last + chance.choice([-2, -1, 0, 3]))))
            case "p":
                actions.append(purge(ID))
            case "q":
                actions.append(purge_unchanged(ID, chance.choice([last_change, last_change, 0])))
            case "s":
                actions.append(snapshot(ID, first))
            case _:
                actions.append(mark(ID))
        if isinstance(actions[-1], Append | Delete) and not isinstance(actions[-1], Snapshot):
            last_change = 64 * number
        journal = of_model(actions)
        last = 0 if journal is None else journal[0]
    return actions


def test_random_histories(seeds: range) -> None:
    """Replicator, reader and the tables for Spark agree with the model, whatever was appended."""
    for seed in range(seeds.start * 200, seeds.stop * 200):
        actions = random_actions(random.Random(seed))
        expected = of_model(actions)
        for journal_of in (of_replicator, of_replicator_by_one, of_reader, of_spark):
            assert journal_of(actions) == expected, (seed, journal_of.__name__, actions)


def test_reading_from_any_head(seeds: range) -> None:
    """A reader that folds the rest of the log over a head has the journal, however old the head."""
    for seed in range(seeds.start * 100, seeds.stop * 100):
        chance = random.Random(seed)
        actions = random_actions(chance)
        log, expected = logged(actions), of_model(actions)
        stored = chance.randint(0, len(log))
        head = collapse(None, log[:stored], 100).head
        fold = Fold(head)
        # The pointer may be older than the head if the head exists.
        for each in log[chance.randint(0, stored) if head is not None else stored :]:
            fold.apply(each.header, each.offset)
        assert (fold.last if fold.exists else None) == (expected and expected[0]), (seed, actions)
        if fold.exists and expected is not None and expected[1]:
            assert fold.deleted < expected[1][0], (seed, actions)
