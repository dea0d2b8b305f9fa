"""The replicator's state transitions as a pure function."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.entity.logged import DAY_NS, append, delete, logged, mark, purge

from aerotape.codecs.entity.actions import Action
from aerotape.codecs.entity.messages import encode
from aerotape.entity.records import Head
from aerotape.entity.transitions import Change, LoggedAction, collapse
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


@pytest.mark.parametrize("head", [None, A])
def test_mark_changes_nothing(head: Head | None) -> None:
    """A mark changes nothing, with and without an entry."""
    assert change(head, mark(ID)).is_empty


def test_append_without_an_entry_creates_it() -> None:
    """Append without an entry: A(seqNr of the last event, deleteTo none), events inserted."""
    done = change(None, append(ID, 1, 2, 3, timestamp_ms=7, origin="a writer"))
    assert done.head is not None
    assert (done.head.seq_nr, done.head.delete_to, done.head.offset) == (3, None, 64)
    assert (done.head.created_ms, done.head.updated_ms, done.head.origin) == (7, 7, "a writer")
    assert done.head.segment_size == 5
    assert inserted(done) == [1, 2, 3]


def test_append_with_an_entry_moves_the_sequence_number() -> None:
    """Append with an entry: seqNr := last, events inserted; the segment size is the entry's."""
    done = change(A, append(ID, 6, 7, timestamp_ms=9))
    assert done.head == A._replace(seq_nr=7, offset=64, updated_ms=9)
    assert inserted(done) == [6, 7]
    assert done.delete is None


def test_delete_without_an_entry_resets() -> None:
    """Delete without an entry: A(seqNr = to, deleteTo = to)."""
    done = change(None, delete(ID, 4))
    assert done.head is not None
    assert (done.head.seq_nr, done.head.delete_to, done.head.offset) == (4, 4, 64)
    assert not done.insertions


def test_delete_with_an_entry_deletes_what_is_left_of_the_range() -> None:
    """Delete with an entry: deleteTo updated, events deleteTo < seqNr <= to deleted."""
    done = change(A, delete(ID, 4))
    assert done.head == A._replace(delete_to=4, offset=64, updated_ms=2_000)
    assert done.delete == (3, 4)


def test_purge() -> None:
    """Purge: nothing without an entry; with one, all events and the entry are deleted."""
    assert change(None, purge(ID)).is_empty
    done = change(A, purge(ID))
    assert done.is_purged
    assert done.head is None


def test_actions_at_applied_offsets_are_ignored() -> None:
    """An action at or before the head's offset is ignored; a purge only before it."""
    assert change(A, append(ID, 6), first_offset=10).is_empty
    assert change(A, delete(ID, 4), first_offset=10).is_empty
    assert change(A, purge(ID), first_offset=9).is_empty
    assert change(A, purge(ID), first_offset=10).is_purged


@pytest.mark.parametrize(("to", "expected"), [(9, 5), (5, 5), (4, 4), (1, 2)])
def test_delete_is_limited_to_existing_events(to: int, expected: int) -> None:
    """A delete beyond the head is clamped to it, and a lower one does not undo a higher one."""
    head = change(A, delete(ID, to)).head
    assert head is not None
    assert (head.seq_nr, head.delete_to) == (5, expected)


def test_events_up_to_the_last_one_are_left_out() -> None:
    """Events of an append that are not after the last event are not inserted."""
    done = change(A, append(ID, 3, 5, 6))
    assert done.head == A._replace(seq_nr=6, offset=64, updated_ms=0)
    assert inserted(done) == [6]
    assert change(A, append(ID, 3, 4)).insertions == []


def test_head_with_delete_to_above_its_sequence_number() -> None:
    """A stored head with deleteTo > seqNr keeps it; later events follow it."""
    strange = A._replace(delete_to=8)
    head = change(strange, delete(ID, 20)).head
    assert head is not None
    assert (head.seq_nr, head.delete_to) == (5, 8)
    done = change(strange, append(ID, 7, 8, 9))
    assert inserted(done) == [9]


def test_first_append_above_one_counts_as_deleted_up_to_it() -> None:
    """A journal whose first append begins at k has deleteTo k - 1."""
    head = change(None, append(ID, 4, 7)).head
    assert head is not None
    assert (head.seq_nr, head.delete_to) == (7, 3)


def test_purge_begins_a_new_incarnation() -> None:
    """The journal after a purge has another record id, and starts at 1."""
    first = change(None, append(ID, 1, 2))
    done = change(first.head, purge(ID), append(ID, 1), first_offset=640)
    assert first.head is not None
    assert done.head is not None
    assert done.is_purged
    assert (done.head.seq_nr, done.head.delete_to) == (1, None)
    assert done.head.record_id != first.head.record_id


def test_record_id_depends_on_the_log_only() -> None:
    """Repeating a batch gives the same record id."""
    one, two = (change(None, append(ID, 1)).head for _ in range(2))
    assert one == two


def test_expiry_follows_the_last_append() -> None:
    """A journal expires at the last append plus expireAfter; without one it does not."""
    noon, day_ms = 43_200_000, 86_400_000
    first = change(None, append(ID, 1, expire_after_ns=DAY_NS, timestamp_ms=noon))
    assert first.head is not None
    assert (first.head.expire_after_ns, first.head.expires_ms) == (DAY_NS, noon + day_ms)
    moved = change(
        first.head, append(ID, 2, expire_after_ns=3 * DAY_NS, timestamp_ms=noon), first_offset=200
    )
    assert moved.head is not None
    assert moved.head.expires_ms == noon + 3 * day_ms
    same = change(moved.head, delete(ID, 1), first_offset=300).head
    assert same is not None
    assert same.expires_ms == noon + 3 * day_ms
    removed = change(moved.head, append(ID, 3), first_offset=300).head
    assert removed is not None
    assert (removed.expire_after_ns, removed.expires_ms) == (None, None)


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
