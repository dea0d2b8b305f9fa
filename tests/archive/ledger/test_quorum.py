"""The sync cursor and the quorum rule, with the worked traces and random models."""

from __future__ import annotations

import itertools
import random

import pytest

from aerotape.archive.ledger.cursor import SyncCursor
from aerotape.archive.ledger.quorum import last_add_confirmed, quorum_value
from aerotape.errors import ConfigurationError


def test_entries_synced_in_any_order_are_joined() -> None:
    """The worked trace: 0, 1, 4, 3, 2."""
    cursor = SyncCursor()
    assert cursor.last_add_synced == -1
    seen = []
    for entry_id in (0, 1, 4, 3, 2):
        cursor.synced(entry_id)
        seen.append((cursor.last_add_synced, cursor.ranges))
    assert seen == [(0, ()), (1, ()), (1, ((4, 4),)), (1, ((3, 4),)), (4, ())]


def test_what_is_synced_already_does_not_matter() -> None:
    """Up to the last add synced, and within ranges."""
    cursor = SyncCursor(5)
    for entry_id in (0, 5, 8, 8, 9, 8):
        cursor.synced(entry_id)
    assert (cursor.last_add_synced, cursor.ranges) == (5, ((8, 9),))


def test_a_confirmed_entry_advances_the_cursor() -> None:
    """The worked example: (1, {4, 6}) and last add confirmed 3 become (4, {6})."""
    cursor = SyncCursor(1)
    cursor.synced(4)
    cursor.synced(6)
    seen = [(cursor.last_add_synced, cursor.ranges)]
    for confirmed in (3, 2, 9, -1):
        cursor.confirmed(confirmed)
        seen.append((cursor.last_add_synced, cursor.ranges))
    assert seen == [(1, ((4, 4), (6, 6))), (4, ((6, 6),)), (4, ((6, 6),)), (9, ()), (9, ())]


@pytest.mark.parametrize("seed", range(50))
def test_a_cursor_is_a_set_of_entries(seed: int) -> None:
    """Random syncs and confirmations, against a plain set."""
    rng = random.Random(seed)
    cursor, synced = SyncCursor(), set[int]()
    for _ in range(200):
        first = rng.randrange(60)
        last = first + rng.choice((0, 0, 0, 1, 5))
        if rng.random() < 0.05:
            last_add_synced = cursor.confirmed(first)
            synced |= set(range(first + 1))
        else:
            last_add_synced = cursor.synced(first, last)
            synced |= set(range(first, last + 1))
        run = next(entry_id for entry_id in itertools.count() if entry_id not in synced) - 1
        assert last_add_synced == cursor.last_add_synced == run
        after = [entry_id for first, last in cursor.ranges for entry_id in range(first, last + 1)]
        assert after == sorted(entry_id for entry_id in synced if entry_id > run)
        ends = [run, *itertools.chain(*cursor.ranges)]
        gaps = [begin - end for end, begin in itertools.pairwise(ends)][::2]
        assert all(gap > 1 for gap in gaps), "ranges that touch are one"


@pytest.mark.parametrize(
    ("synced", "write_quorum", "ack_quorum", "expected"),
    [
        ((1, 2, 3), 3, 1, 3),
        ((1, 2, 3), 3, 2, 2),
        ((1, 2, 3), 3, 3, 1),
        ((5, 5, -1), 3, 2, 5),
        ((-1, -1, 9), 3, 2, -1),
        ((7,), 1, 1, 7),
        ((4, 9, 2, 7, 7), 5, 3, 7),
    ],
)
def test_the_quorum_rule_gives_the_worked_values(
    synced: tuple[int, ...], write_quorum: int, ack_quorum: int, expected: int
) -> None:
    """In any order of the archives."""
    for ordered in itertools.permutations(synced):
        assert quorum_value(ordered, write_quorum, ack_quorum) == expected
        assert last_add_confirmed(-1, 100, ordered, write_quorum, ack_quorum) == expected


def test_an_ack_quorum_has_what_is_confirmed() -> None:
    """The largest value that so many archives have reached, for all small cases."""
    for count in range(1, 5):
        for synced in itertools.product(range(-1, 4), repeat=count):
            for ack_quorum in range(1, count + 1):
                value = quorum_value(synced, count, ack_quorum)
                assert sum(each >= value for each in synced) >= ack_quorum
                assert sum(each > value for each in synced) < ack_quorum


def test_the_last_add_confirmed_neither_decreases_nor_passes_the_last_add_pushed() -> None:
    """An archive that was lost and replaced reports less than before."""
    assert last_add_confirmed(6, 9, (-1, -1, 8), 3, 2) == 6
    assert last_add_confirmed(6, 9, (20, 20, 8), 3, 2) == 9


@pytest.mark.parametrize("quorums", [(3, 0), (2, 3), (4, 2), (0, 0)])
def test_impossible_quorums_are_refused(quorums: tuple[int, int]) -> None:
    """Of three archives."""
    with pytest.raises(ConfigurationError, match="3 archives"):
        quorum_value((1, 2, 3), *quorums)
