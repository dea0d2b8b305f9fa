"""Rules of the protocol between archives that need no archive."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from aerotape import QualifiedId
from aerotape.archive.ledger.metadata import LedgerMetadata
from aerotape.archive.ledger.mirrors.replica import (
    Epoch,
    MemberState,
    Replica,
    begin_epoch,
    boot_id,
    may_have_forgotten,
    missing_to_elect,
    parting,
    quorum_end,
)
from aerotape.codecs.generated.ledger_control import LedgerType

GROUP = ("a", "b", "c")


def ledger(write: int, acknowledge: int, **changes: object) -> LedgerMetadata:
    metadata = LedgerMetadata(QualifiedId(0, 7), write_quorum=write, ack_quorum=acknowledge)
    return replace(metadata, **changes)  # type: ignore[arg-type]


def state(member: str, *, forgets: bool = False, end: int = 0) -> MemberState:
    return MemberState(Replica(own=member, groups=(GROUP,), forgets=forgets), end)


class Log:
    """A log as its entries, each with its epoch, beside its history; a position is an index."""

    def __init__(self) -> None:
        self.entries: list[tuple[Epoch, int]] = []
        self.replica = Replica()

    @property
    def state(self) -> MemberState:
        return MemberState(self.replica, len(self.entries))

    def lead(self, epoch: Epoch) -> None:
        history = begin_epoch(self.replica.history, epoch, len(self.entries))
        self.replica = replace(self.replica, history=history)

    def write(self, epoch: Epoch, number: int) -> None:
        self.entries.append((epoch, number))

    def follow(self, leader: Log, count: int) -> None:
        """Drop what parts, then copy some entries."""
        same = parting(self.state, leader.state)
        assert same is None or self.entries[:same] == leader.entries[:same]
        del self.entries[same or 0 :]
        self.replica = replace(self.replica, history=leader.replica.history)
        self.entries += leader.entries[len(self.entries) :][:count]


def test_where_logs_part(seeds: range) -> None:
    """Exactly where their entries do, whoever has led and however much was copied."""
    compared = 0
    for seed in range(seeds.start, seeds.stop + 300):
        draw = random.Random(seed)
        logs = [Log() for _ in range(3)]
        number = 0
        for turn in range(1, 8):
            leader = draw.choice(logs)
            epoch = (turn, str(logs.index(leader)))
            leader.lead(epoch)
            for _ in range(draw.randrange(6)):
                number += 1
                leader.write(epoch, number)
                for other in logs:
                    if other is not leader and draw.random() < 0.4:
                        other.follow(leader, draw.randrange(4))
            for one, other in itertools.combinations(logs, 2):
                found = parting(one.state, other.state)
                if found is not None:
                    pairs = zip(one.entries, other.entries, strict=False)
                    assert found == len(
                        list(itertools.takewhile(lambda each: each[0] == each[1], pairs))
                    )
                    compared += found > 0
    assert compared > 300


def test_logs_without_a_common_epoch() -> None:
    """Nothing shows where they part."""
    one = MemberState(Replica(history=(((1, "a"), 0),)), 10)
    other = MemberState(Replica(history=(((1, "b"), 0),)), 10)
    assert parting(one, other) is None
    assert parting(MemberState(Replica(), 10), one) is None


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
    assert quorum_end(ledger(write, acknowledge), (GROUP,), -1, 9, ends) == expected
    assert quorum_end(ledger(write, acknowledge), (GROUP,), 99, 9, ends) == 99


def test_two_groups_confirm_together() -> None:
    """While a member is replaced, a quorum of each has what is confirmed."""
    groups = (GROUP, ("a", "b", "d"))
    metadata = ledger(3, 2)
    assert quorum_end(metadata, groups, -1, 9, {"a": 9, "c": 8}) == -1
    assert quorum_end(metadata, groups, -1, 9, {"a": 9, "c": 8, "d": 7}) == 7


def test_who_elects_a_leader() -> None:
    """Members that forget count only if all members respond."""
    metadata = ledger(3, 2)
    a, b, c = (state(each) for each in GROUP)
    assert missing_to_elect(metadata, [GROUP], {"a": a, "b": b}) is None
    assert "1 of its 3" in str(missing_to_elect(metadata, [GROUP], {"a": a}))
    lost = {"a": a, "b": state("b", forgets=True)}
    assert "lost nothing" in str(missing_to_elect(metadata, [GROUP], lost))
    assert missing_to_elect(metadata, [GROUP], {**lost, "c": c}) is None
    forgotten = {each: state(each, forgets=True) for each in GROUP}
    assert missing_to_elect(metadata, [GROUP], forgotten) is None
    both = [GROUP, ("a", "d", "e")]
    assert missing_to_elect(metadata, both, {"a": a, "b": b}) is not None
    assert missing_to_elect(metadata, both, {"a": a, "b": b, "d": state("d")}) is None


def test_fewer_members_close_than_serve() -> None:
    """With both quorums 2, one member recovers a ledger, and two serve a writer."""
    metadata, group = ledger(2, 2), ("a", "b")
    alone = {"a": state("a")}
    assert missing_to_elect(metadata, [group], alone, serves=False) is None
    assert missing_to_elect(metadata, [group], alone) is not None


def test_what_an_archive_may_have_forgotten() -> None:
    """After the machine was started again what was in its page cache; else only what it is told."""
    adopted = Replica(promised=(1, "a"), adopted=(1, "a"), boot="another")
    volatile = ledger(2, 2, type=LedgerType.VD_JOURNAL, recording_id=3, replica=adopted)
    assert may_have_forgotten(volatile)
    assert not may_have_forgotten(replace(volatile, type=LedgerType.PD_JOURNAL))
    assert not may_have_forgotten(replace(volatile, replica=replace(adopted, boot=boot_id())))
    assert may_have_forgotten(ledger(2, 2, replica=Replica(forgets=True)))
    assert may_have_forgotten(ledger(2, 2, recording_id=3)), "its metadata was lost"
    promised = Replica(promised=(1, "a"))
    assert not may_have_forgotten(ledger(2, 2, recording_id=3, replica=promised))
