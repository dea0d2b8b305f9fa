"""Random histories of the protocol: its invariants hold, and not without these rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.ledger.protocol_model import BrokenError, run

from aerotape.archive.features.ledger.protocol import logs
from aerotape.archive.features.ledger.protocol.election import Adopt, Election
from aerotape.archive.features.ledger.protocol.leadership import Leadership
from aerotape.archive.features.ledger.protocol.member_record import (
    NO_EPOCH,
    Epoch,
    Group,
    MemberRecord,
    MemberState,
)
from aerotape.archive.features.ledger.protocol.quorums import Quorums

_STEPS = 600
_HISTORIES = 600
# In which a history without a rule fails.
_MOST = 3_000
_CLOSING: dict[str, float] = {
    "start": 6, "restart": 4, "crash": 1, "partition": 3, "heal": 2, "sync": 4, "close": 6,
    "lose_tail": 2, "wipe": 1, "replace": 2,
}  # fmt: skip
_LOSING: dict[str, float] = {
    "start": 6, "restart": 4, "crash": 2, "heal": 2, "close": 6, "lose_tail": 3, "replace": 3,
}  # fmt: skip
_REPLACING: dict[str, float] = {
    "start": 6, "restart": 4, "crash": 1, "partition": 3, "heal": 2, "replace": 8,
}  # fmt: skip
_WIPING: dict[str, float] = {
    "start": 6, "restart": 4, "heal": 4, "sync": 4, "partition": 1, "wipe": 4, "replace": 8,
}  # fmt: skip
_RETURNING: dict[str, float] = {
    "start": 6, "restart": 4, "crash": 3, "partition": 3, "heal": 2, "replace": 16,
}  # fmt: skip
_PARTING: dict[str, float] = {"start": 12, "restart": 4, "partition": 6, "heal": 6}
_MISLEADING: dict[str, float] = {
    "start": 6, "restart": 4, "crash": 1, "partition": 2, "heal": 2, "back_up": 4,
    "put_back_silently": 3, "close": 6,
}  # fmt: skip


def _end_of_newest_group(self: Leadership, own: int, ends: Mapping[str, int]) -> int:
    known = {**ends, self.member_record.own: own}
    return self.quorums.end(self.member_record.groups[-1:], own, known)


def _groups_of_the_query(self: Election) -> set[Group]:
    return {group for state in self._queried.values() for group in state.member_record.groups}


_adopt = Election._adopt


def _adopt_own_groups(self: Election, *arguments: Any) -> Adopt:
    step, own = _adopt(self, *arguments), self._own.member_record
    record = replace(step.member_record, groups=own.groups, version=own.version)
    return replace(step, member_record=record)


def _begun_at(self: MemberRecord, end: int) -> Epoch:
    return max((epoch for epoch, begin in self.history if begin <= end), default=NO_EPOCH)


def _synced_by_any(self: Leadership, own: int) -> int:
    return self._end(own, {name: each.confirmed for name, each in self.reports.items()})


def _has_newest_groups(self: Leadership, own: int) -> bool:
    version = self.member_record.version
    names = (each for each, report in self.reports.items() if report.version == version)
    return self.is_quorum(names)


def _common_end(own: MemberState, confirmed: int, other: MemberState) -> int:
    position = logs.common_end(own, other)
    return min(confirmed, other.end) if position is None else position


def test_the_invariants_hold(seeds: range) -> None:
    """With crashes, lost directories, partitions and replaced members; more of them by --seeds."""
    begin = (seeds.start - 1) * _HISTORIES
    models = [run(seed, _STEPS) for seed in range(begin, begin + len(seeds) * _HISTORIES)]
    assert sum(model.elected for model in models) > 4 * len(models)
    assert sum(len(model.confirmed) for model in models) > 10 * len(models)
    assert sum(model.closed is not None for model in models) > len(models) // 40


# Each with what shows it: archives, write quorum, ack quorum, and what happens besides.
_WITHOUT: dict[str, tuple[tuple[Any, str, Any], tuple[int, int, int], dict[str, float] | None]] = {
    "a member that does not know the ledger forgets": (
        (MemberRecord, "join", MemberRecord.create), (3, 3, 2), None,
    ),
    "a log that was cut has lost its last epochs": (
        (MemberState, "epoch", property(lambda self: self.member_record.adopted)), (3, 3, 2), None,
    ),
    "the log of the highest epoch wins": (
        (MemberState, "rank", property(lambda self: (self.has_decided_end, self.end))),
        (3, 3, 2), None,
    ),
    "an epoch counts only once all of its leader's log was on storage": (
        (MemberRecord, "epoch_at", _begun_at), (3, 3, 2), _LOSING,
    ),
    "of two such logs, the closed one wins": (
        (MemberState, "rank", property(lambda self: (self.has_decided_end, self.epoch, self.end))),
        (3, 3, 2), _LOSING,
    ),
    "an end that is decided wins over a higher epoch": (
        (MemberState, "rank", property(lambda self: (self.epoch, self.end, self.is_closed))),
        (3, 3, 2), _MISLEADING,
    ),
    "the epochs that a cut has lost do not return by a copy": (
        (MemberRecord, "cut", lambda self, end: replace(self, is_decided=False)),
        (2, 2, 2),
        _LOSING,
    ),
    "a closed member stays closed under the same log": (
        (logs, "stays_closed", lambda own, kept, other: False), (2, 2, 2), _CLOSING,
    ),
    "of those that have lost their directories, an electing quorum must know the ledger": (
        (MemberState, "is_blank", property(lambda self: False)), (3, 3, 1), _WIPING,
    ),
    "an electing quorum": (
        (Quorums, "electing", property(lambda self: self.write - self.acknowledge)),
        (3, 3, 2), None,
    ),
    "a confirming quorum": (
        (Quorums, "confirming", lambda self, size: self.acknowledge - 1), (3, 3, 2), None,
    ),
    "a quorum of both groups confirms": (
        (Leadership, "_end", _end_of_newest_group), (3, 3, 2), _REPLACING,
    ),
    "groups that a member names only when it promises": (
        (Election, "_groups", property(_groups_of_the_query)), (3, 3, 2), _REPLACING,
    ),
    "a leader has the newest groups": (
        (Election, "_adopt", _adopt_own_groups), (3, 3, 2), _RETURNING,
    ),
    "members count only once they have adopted the epoch": (
        (Leadership, "_synced", _synced_by_any), (3, 3, 2), _PARTING,
    ),
    "what is confirmed never decreases": (
        (Leadership, "confirmed", Leadership._synced), (3, 3, 2), None,
    ),
    "a new group takes over with all that was confirmed": (
        (Leadership, "has_agreed", _has_newest_groups), (3, 3, 2), _RETURNING,
    ),
    "a member does not follow a log that lacks what its entries show to be confirmed": (
        (logs, "kept_end", _common_end), (3, 3, 2), _MISLEADING,
    ),
}  # fmt: skip
# The first seed to try, of rules that show in one of some thousand histories.
_FIRST = {
    "groups that a member names only when it promises": 11_000,
    "a leader has the newest groups": 7_400,
    "members count only once they have adopted the epoch": 2_800,
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", _WITHOUT)
def test_a_rule_that_is_left_out_is_missed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one of them some history breaks an invariant."""
    changed, shape, disturbances = _WITHOUT[rule]
    monkeypatch.setattr(*changed)
    with pytest.raises(BrokenError):
        first = _FIRST.get(rule, 0)
        for seed in range(first, first + _MOST):
            run(seed, _STEPS, shape, disturbances)


@pytest.mark.parametrize(
    "disturbances",
    [_CLOSING, _LOSING, _REPLACING, _WIPING, _RETURNING, _PARTING, _MISLEADING],
    ids=["closing", "losing", "replacing", "wiping", "returning", "parting", "misleading"],
)
def test_with_all_rules_no_such_history_fails(disturbances: dict[str, float]) -> None:
    """The histories that show a rule do not fail for another reason."""
    for seed in range(200):
        run(seed, _STEPS, (2, 2, 2), disturbances)
        run(seed, _STEPS, (3, 3, 2), disturbances)
