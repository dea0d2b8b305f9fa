"""The quorum rule, with the worked values."""

from __future__ import annotations

import itertools

import pytest

from aerotape.archive.ledger.quorum import last_add_confirmed
from aerotape.errors import ConfigurationError


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
        assert last_add_confirmed(-1, 100, ordered, write_quorum, ack_quorum) == expected


def test_an_ack_quorum_has_what_is_confirmed() -> None:
    """The largest value that so many archives have reached, for all small cases."""
    for count in range(1, 5):
        for synced in itertools.product(range(-1, 4), repeat=count):
            for ack_quorum in range(1, count + 1):
                value = last_add_confirmed(-1, 9, synced, count, ack_quorum)
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
        last_add_confirmed(-1, 9, (1, 2, 3), *quorums)
