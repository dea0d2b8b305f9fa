"""The quorum rule, with the worked values, and who elects a leader."""

from __future__ import annotations

import itertools

import pytest

from aerotape.archive.features.ledger.protocol.member_record import MemberRecord, MemberState
from aerotape.archive.features.ledger.protocol.quorums import Quorums
from aerotape.errors import ConfigurationError

GROUP = ("a", "b", "c")


def state(member: str, *, forgets: bool = False, end: int = 0) -> MemberState:
    epoch = (1, "a")
    return MemberState(
        MemberRecord(own=member, groups=(GROUP,), adopted=epoch, promised=epoch, forgets=forgets),
        end,
    )


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
        assert Quorums(write_quorum, ack_quorum).reached(ordered) == expected


def test_an_ack_quorum_has_what_is_confirmed() -> None:
    """The largest value that so many archives have reached, for all small cases."""
    for count in range(1, 5):
        for synced in itertools.product(range(-1, 4), repeat=count):
            for ack_quorum in range(1, count + 1):
                value = Quorums(count, ack_quorum).reached(synced)
                assert sum(each >= value for each in synced) >= ack_quorum
                assert sum(each > value for each in synced) < ack_quorum


@pytest.mark.parametrize("quorums", [(3, 0), (2, 3), (4, 2), (0, 0)])
def test_impossible_quorums_are_refused(quorums: tuple[int, int]) -> None:
    """Of three archives."""
    with pytest.raises(ConfigurationError, match="3 archives"):
        Quorums(*quorums).reached((1, 2, 3))


@pytest.mark.parametrize(
    ("write", "acknowledge", "ends", "expected"),
    [
        (3, 2, {"a": 9, "b": 7}, 7),
        (3, 2, {"a": 9, "b": 7, "c": 8}, 8),
        (3, 3, {"a": 9, "b": 7, "c": 8}, 7),
        (3, 3, {"a": 9, "b": 7}, -1),
        (2, 2, {"a": 9, "b": 7, "c": 8}, 7),
        (2, 1, {"a": 9, "b": 7, "c": 8}, 8),
    ],
)
def test_what_is_confirmed(
    write: int, acknowledge: int, ends: dict[str, int], expected: int
) -> None:
    """As many members as overlap with each electing quorum have it."""
    assert Quorums(write, acknowledge).end((GROUP,), 9, ends) == expected


def test_two_groups_confirm_together() -> None:
    """While a member is replaced, a quorum of each has what is confirmed."""
    groups = (GROUP, ("a", "b", "d"))
    quorums = Quorums(3, 2)
    assert quorums.end(groups, 9, {"a": 9, "c": 8}) == -1
    assert quorums.end(groups, 9, {"a": 9, "c": 8, "d": 7}) == 7


def test_who_elects_a_leader() -> None:
    """Members that forget count only if all members respond."""
    quorums = Quorums(3, 2)
    a, b, c = (state(each) for each in GROUP)
    assert quorums.missing_to_elect([GROUP], {"a": a, "b": b}) is None
    assert "1 of its 3" in str(quorums.missing_to_elect([GROUP], {"a": a}))
    lost = {"a": a, "b": state("b", forgets=True)}
    assert "lost nothing" in str(quorums.missing_to_elect([GROUP], lost))
    assert quorums.missing_to_elect([GROUP], {**lost, "c": c}) is None
    forgotten = {each: state(each, forgets=True) for each in GROUP}
    assert quorums.missing_to_elect([GROUP], forgotten) is None
    # Those that know nothing of it cannot show that the only other one was not replaced.
    blank = {each: MemberState(MemberRecord(own=each, forgets=True), 0) for each in ("b", "c")}
    assert "1 of its 3 archives know it" in str(
        quorums.missing_to_elect([GROUP], {"a": a, **blank})
    )
    assert quorums.missing_to_elect([GROUP], {"a": a, "b": lost["b"], "c": blank["c"]}) is None
    both = [GROUP, ("a", "d", "e")]
    assert quorums.missing_to_elect(both, {"a": a, "b": b}) is not None
    assert quorums.missing_to_elect(both, {"a": a, "b": b, "d": state("d")}) is None


def test_fewer_members_close_than_serve() -> None:
    """With both quorums 2, one member recovers a ledger, and two serve a writer."""
    quorums, group = Quorums(2, 2), ("a", "b")
    alone = {"a": state("a")}
    assert quorums.missing_to_elect([group], alone, serves=False) is None
    assert quorums.missing_to_elect([group], alone) is not None
