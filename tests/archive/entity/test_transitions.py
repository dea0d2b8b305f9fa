"""The replicator's state transitions as a pure function."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.entity.logged import DAY_NS, append, delete, logged, mark, purge

from aerotape.archive.entity.records import Head
from aerotape.archive.entity.transitions import Change, LoggedAction, collapse
from aerotape.codecs.entity.actions import Action
from aerotape.codecs.entity.messages import encode
from aerotape.errors import CodecError

ID = "an entity"
A = Head(partition=0, offset=10, seq_nr=5, delete_to=2, segment_size=3, record_id="an incarnation")


def change(head: Head | None, *actions: Action, first_offset: int = 64) -> Change:
    return collapse(head, logged(actions, first_offset), 5)


def inserted(change: Change) -> list[int]:
    return [
        event.seq_nr
        for each in change.insertions
        for event in each.action.events.events
        if event.seq_nr > each.after
    ]


def test_actions_at_applied_offsets_are_ignored() -> None:
    """An action at or before the head's offset is ignored; a purge only before it."""
    assert change(A, append(ID, 6), first_offset=10).is_empty
    assert change(A, delete(ID, 4), first_offset=10).is_empty
    assert change(A, purge(ID), first_offset=9).is_empty
    assert change(A, purge(ID), first_offset=10).is_purged


def test_head_with_delete_to_above_its_sequence_number() -> None:
    """A stored head with deleteTo > seqNr keeps it; later events follow it."""
    strange = A._replace(delete_to=8)
    head = change(strange, delete(ID, 20)).head
    assert head is not None
    assert (head.seq_nr, head.delete_to) == (5, 8)
    done = change(strange, append(ID, 7, 8, 9))
    assert inserted(done) == [9]


def test_expiry_follows_the_last_append() -> None:
    """expireOn is the date of the last append plus expireAfter; without one it is removed."""
    noon = 43_200_000
    first = change(None, append(ID, 1, expire_after_ns=DAY_NS, timestamp_ms=noon))
    assert first.head is not None
    assert (first.head.expire_after_ns, first.head.expire_on) == (DAY_NS, date(1970, 1, 2))
    moved = change(
        first.head, append(ID, 2, expire_after_ns=3 * DAY_NS, timestamp_ms=noon), first_offset=200
    )
    assert moved.head is not None
    assert moved.head.expire_on == date(1970, 1, 4)
    same = change(moved.head, delete(ID, 1), first_offset=300).head
    assert same is not None
    assert same.expire_on == date(1970, 1, 4)
    removed = change(moved.head, append(ID, 3), first_offset=300).head
    assert removed is not None
    assert (removed.expire_after_ns, removed.expire_on) == (None, None)


def test_covered_appends_are_not_decoded() -> None:
    """A purge drops everything before it, a delete all covered appends except the last."""
    bad = [replace(append(ID, seq_nr), payload=b"{") for seq_nr in (1, 2)]
    log = logged([*bad, purge(ID), bad[0], append(ID, 2), delete(ID, 2)])
    assert collapse(None, log, 5).insertions == []


def test_damaged_append_is_an_error_with_its_place() -> None:
    """An append with a damaged payload is refused with its position."""
    damaged = replace(append(ID, 1), payload=b"{")
    with pytest.raises(CodecError, match="partition 3, position 4096"):
        collapse(None, [LoggedAction(3, 4096, encode(damaged))], 5)


ACTIONS = st.one_of(
    st.builds(
        lambda first, count: append(ID, *range(first, first + count)),
        st.integers(1, 9),
        st.integers(1, 3),
    ),
    st.builds(lambda to: delete(ID, to), st.integers(1, 12)),
    st.just(purge(ID)),
    st.just(mark(ID)),
)


def stored(head: Head | None, rows: set[int], done: Change) -> set[int]:
    """Return the sequence numbers of the stored events after a change."""
    if done.is_purged:
        rows = set()
    if done.delete is not None:
        rows = {number for number in rows if not done.delete[0] <= number <= done.delete[1]}
    return rows | set(inserted(done))


@given(st.lists(ACTIONS, max_size=12), st.integers(0, 12))
def test_a_batch_equals_its_actions_one_by_one(actions: list[Action], split: int) -> None:
    """Collapsing a batch changes head and events as applying its actions one by one does."""
    log = logged(actions)
    head, rows = None, set[int]()
    for each in log:
        done = collapse(head, [each], 5)
        head, rows = done.head, stored(head, rows, done)
    first = collapse(None, log[:split], 5)
    second = collapse(first.head, log[split:], 5)
    assert second.head == head
    batched = stored(first.head, stored(None, set(), first), second)
    if head is not None:
        assert {n for n in batched if n > (head.delete_to or 0)} == rows
    assert batched == rows
