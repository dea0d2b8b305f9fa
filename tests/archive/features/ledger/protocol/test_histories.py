"""Random histories of the protocol: its invariants hold, and not without these rules."""

from __future__ import annotations

from typing import Any

import pytest
from support.ledger.protocol_model import BrokenError, run

from aerotape.archive.features.ledger.protocol.quorums import Quorums
from aerotape.archive.features.ledger.protocol.replica import MemberState, Replica

_STEPS = 600
_HISTORIES = 600
# In which a history without a rule fails.
_MOST = 3_000


def test_the_invariants_hold(seeds: range) -> None:
    """With crashes, lost directories, partitions and replaced members; more of them by --seeds."""
    begin = (seeds.start - 1) * _HISTORIES
    models = [run(seed, _STEPS) for seed in range(begin, begin + len(seeds) * _HISTORIES)]
    assert sum(model.elected for model in models) > 5 * len(models)
    assert sum(len(model.confirmed) for model in models) > 10 * len(models)
    assert sum(model.closed is not None for model in models) > len(models) // 40


_WITHOUT: dict[str, tuple[Any, str, Any]] = {
    "a member that does not know the ledger forgets": (Replica, "join", Replica.create),
    "a log that was cut has lost its last epochs": (
        MemberState, "epoch", property(lambda self: self.replica.adopted),
    ),
    "an electing quorum": (
        Quorums, "electing", property(lambda self: self.write - self.acknowledge),
    ),
    "a confirming quorum": (Quorums, "confirming", lambda self, size: self.acknowledge - 1),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("rule", _WITHOUT)
def test_a_rule_that_is_left_out_is_missed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one of them some history breaks an invariant."""
    monkeypatch.setattr(*_WITHOUT[rule])
    with pytest.raises(BrokenError):
        for seed in range(_MOST):
            run(seed, _STEPS, (3, 3, 2))
