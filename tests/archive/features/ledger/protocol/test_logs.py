"""Where logs part, and what of them may be cut."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

from aerotape.archive.features.ledger.protocol.logs import begin_epoch, common_end
from aerotape.archive.features.ledger.protocol.member_record import Epoch, MemberRecord, MemberState


class Log:
    """A log as its entries, each with its epoch, beside its history; a position is an index."""

    def __init__(self) -> None:
        self.entries: list[tuple[Epoch, int]] = []
        self.member_record = MemberRecord()

    @property
    def state(self) -> MemberState:
        return MemberState(self.member_record, len(self.entries))

    def lead(self, epoch: Epoch) -> None:
        history = begin_epoch(self.member_record.history, epoch, len(self.entries))
        self.member_record = replace(self.member_record, history=history)

    def write(self, epoch: Epoch, number: int) -> None:
        self.entries.append((epoch, number))

    def follow(self, leader: Log, count: int) -> None:
        """Drop what parts, then copy some entries."""
        same = common_end(self.state, leader.state)
        assert same is None or self.entries[:same] == leader.entries[:same]
        del self.entries[same or 0 :]
        self.member_record = replace(self.member_record, history=leader.member_record.history)
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
                found = common_end(one.state, other.state)
                if found is not None:
                    pairs = zip(one.entries, other.entries, strict=False)
                    assert found == len(
                        list(itertools.takewhile(lambda each: each[0] == each[1], pairs))
                    )
                    compared += found > 0
    assert compared > 300


def test_logs_without_a_common_epoch() -> None:
    """Nothing shows where they part."""
    one = MemberState(MemberRecord(history=(((1, "a"), 0),)), 10)
    other = MemberState(MemberRecord(history=(((1, "b"), 0),)), 10)
    assert common_end(one, other) is None
    assert common_end(MemberState(MemberRecord(), 10), one) is None
