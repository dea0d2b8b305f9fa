"""The model of how archives agree on a ledger: its invariants, and that each rule is necessary."""

from __future__ import annotations

import pytest
from support.ledger.protocol_model import BrokenError, Model, Quorums, Rules, run

_STEPS = 600


def test_the_invariants_hold() -> None:
    """Random histories with crashes, older directories, partitions and replaced members."""
    models = [run(seed, _STEPS) for seed in range(600)]
    assert sum(model.elections for model in models) > 1_500
    assert sum(len(model.confirmed) for model in models) > 3_000
    assert sum(model.closed is not None for model in models) > 15


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "quorums"),
    [
        (Rules(who_forgets_does_not_count=False), Quorums(3, 3, 2)),
        (Rules(adopt_after_the_copy=False), Quorums(4, 3, 2)),
        (Rules(count_own_epoch_only=False), Quorums(3, 3, 2)),
        (Rules(fence=False), Quorums(4, 3, 2)),
        (Rules(both_groups=False), Quorums(2, 2, 2)),
        (Rules(both_have_all=False), Quorums(2, 2, 2)),
        (Rules(elect_less=1), Quorums(3, 3, 2)),
    ],
    ids=["forgetting", "adopting", "counting", "fencing", "groups", "both", "electing"],
)
def test_each_rule_is_necessary(rules: Rules, quorums: Quorums) -> None:
    """Without one of the rules some history breaks an invariant."""
    with pytest.raises(BrokenError):
        for seed in range(5_000):
            model = Model(seed, quorums, is_volatile=seed % 2 == 1, rules=rules)
            for _ in range(_STEPS):
                model.step()
