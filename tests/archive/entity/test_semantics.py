"""What actions do to a journal, by each of the three that apply them to an empty store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pyarrow
import pytest
from support.entity.logged import append, delete, logged, mark, purge

from aerotape import _native
from aerotape.archive.entity.head_info import last_seq_nr
from aerotape.archive.entity.log import LogStatistics, Tail
from aerotape.archive.entity.partition import Partition
from aerotape.archive.entity.transitions import LoggedAction, collapse
from aerotape.codecs.entity.actions import Action
from aerotape.codecs.entity.messages import Selector, encode

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
    return change.head.seq_nr, events


def of_reader(actions: Sequence[Action]) -> Journal:
    """Return the journal that a reader of the log sees."""
    messages = [
        SimpleNamespace(payload=encode(each), position=at, end_position=at + LENGTH)
        for at, each in zip(range(0, LENGTH * len(actions), LENGTH), actions, strict=True)
    ]

    def replay(_: int, begin: int, __: int) -> Any:
        return nullcontext(each for each in messages if each.position >= begin)

    client = cast("Any", SimpleNamespace(replay=replay))
    end = LENGTH * len(actions)
    tail = Tail(client, Partition("topic", 0, 1, True), 0, Selector(ID), end, LogStatistics())
    tail.scan(0)
    seq_nr = last_seq_nr(tail.info, None)
    return None if seq_nr is None else (seq_nr, [each.event.seq_nr for each in tail.events(1)])


def of_spark(actions: Sequence[Action]) -> Journal:
    """Return the journal that the tables for Spark have."""
    log = logged(actions)
    rows = [row(each) for each in log]
    heads, events, others = _native.entity_journals(pyarrow.RecordBatch.from_pylist(rows, ROW), 1)
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


@pytest.mark.parametrize("journal_of", [of_replicator, of_reader, of_spark])
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
    ],
)
def test_journal(
    journal_of: Callable[[Sequence[Action]], Journal], actions: list[Action], journal: Journal
) -> None:
    """Replicator, reader and the tables for Spark give an entity the same journal."""
    assert journal_of(actions) == journal
