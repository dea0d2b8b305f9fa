"""Power cuts while recordings of different durabilities are written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.power_cut.power_cut import Cut, Run, build_shim, recorded

pytestmark = pytest.mark.crash

PERSISTENT, VOLATILE, PLAIN = range(3)


def contents(cut: Cut, recording_id: int) -> bytes:
    """Return the segment files of a recording one after the other."""
    found = {
        int(name.rpartition("-")[2].removesuffix(".rec")): data
        for name, data in cut.files.items()
        if name.startswith(f"archive/{recording_id}-")
    }
    return b"".join(found[base] for base in sorted(found))


def lost(run: Run, seed: int) -> list[str]:
    """Return the power cuts after which bytes are missing that a counter had promised."""
    *_, last = (cut for cut in run.power_cuts(seed, 0) if cut.kind == "everything")
    complete = [contents(last, each) for each in range(3)]
    return [
        f"{cut}: recording {recording_id} before {promised}"
        for cut in run.power_cuts(seed)
        for recording_id, promised in enumerate(cut.counters)
        if contents(cut, recording_id)[:promised] != complete[recording_id][:promised]
    ]


def test_all_bytes_before_a_confirmed_position_survive(
    tmp_path: Path, aeron_dir: Path, seeds: range
) -> None:
    """Whenever the power fails, what was confirmed is on storage; without forcing it, it is not."""
    root = aeron_dir.parent / "root"
    (root / "archive").mkdir(parents=True)
    command = [sys.executable, "-m", "support.power_cut.durable_run"]
    command += [str(root / "archive"), str(aeron_dir), str(seeds.start)]
    run = recorded(build_shim(tmp_path), root, tmp_path / "log", command, 120)
    ends = run.changes[-1].counters
    assert len(ends) == 3
    assert min(ends) > 65_536, f"all are confirmed beyond a segment: {ends}"
    # The counters are watched one after the other, while the first recording is already written.
    watched = [change.counters for change in run.changes if len(change.counters) > VOLATILE]
    assert len({counters[VOLATILE] for counters in watched}) > 2
    assert lost(run, seeds.start) == []
    for place in ("native code, bytes", "native code, names"):
        assert lost(run.without(place), seeds.start), f"{place}: not noticed"
