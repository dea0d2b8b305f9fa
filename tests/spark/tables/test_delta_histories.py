"""Histories of Delta tables to which others than our jobs write, compared with a model."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("deltalake")

from support.spark.table_history import DeltaRs, History

STEPS = 40
PER_SEED = 4


@pytest.mark.parametrize("number", range(PER_SEED))
def test_random_histories_agree_with_a_model(tmp_path: Path, number: int, seeds: range) -> None:
    """Each row is in the table exactly as often as the model says, and each file that the log
    names: RESTORE to a version brings back what that version lacks, and nothing is converted
    twice."""
    for seed in seeds:
        folder = tmp_path / str(seed)
        (folder / "archive").mkdir(parents=True)
        out = folder / "table"
        history = History(folder / "archive", out, seed * PER_SEED + number, DeltaRs(out))
        history.add()
        for _ in range(STEPS):
            history.step()
        history.convert()
