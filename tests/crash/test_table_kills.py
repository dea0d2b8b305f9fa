"""SIGKILL of a table job at each change of a file: each row once, and no file is missing."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder
from support.power_cut.power_cut import Cut, build_shim, recorded

pytest.importorskip("deltalake")

from deltalake import DeltaTable
from support.spark.table_rig import KINDS, Kind, expected_rows, rows_of, run_here

from aerotape.spark.tables.delta import DeltaRecordingTable

pytestmark = pytest.mark.crash

OF_EACH_SEED = 60


def archives(folder: Path) -> list[Path]:
    """Write an archive directory, and copies in which a recording has grown, and one is new."""
    first, second = folder / "archive-0", folder / "archive-1"
    first.mkdir(parents=True)
    builders = [fill(SegmentBuilder(), 60), fill(SegmentBuilder(), 5, seed=2)]
    for builder in builders:
        add_recording(first, builder, live=True)
    shutil.copytree(first, second)
    fill(builders[0], 30, seed=3).write(second)
    add_recording(second, fill(SegmentBuilder(), 7, seed=4), live=True)
    return [first, second]


def rows_there(kind: Kind, out: Path) -> list[dict[str, Any]]:
    """Return the rows of a table; none without one."""
    pattern = "_delta_log/*0.json" if kind == "delta" else "part-*.parquet"
    return rows_of(kind, out) if list(out.glob(pattern)) else []


def check(kind: Kind, cut: Cut, out: Path, stages: list[list[dict[str, Any]]]) -> None:
    """Check what readers see after a kill: the last commit, or that of the job that was killed."""
    rows = rows_there(kind, out)
    done = stages[len(cut.notes) :] or stages[-1:]
    if kind == "delta":
        assert rows in done[:2], cut
        if rows:
            assert all(Path(uri).exists() for uri in DeltaTable(out).file_uris()), cut
    else:
        keys = [(row["recording_id"], row["position"]) for row in rows]
        assert len(keys) == len(set(keys)), cut
        assert all(row in done[:2][-1] for row in rows), cut
        assert all(row in rows for row in done[0]), cut


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_that_is_killed_at_any_change(kind: Kind, tmp_path: Path, seeds: range) -> None:
    """Readers see whole commits, and the next job completes the table; then a vacuum leaves the
    files of the table only."""
    directories = archives(tmp_path)
    stages = [[], *map(expected_rows, directories)]
    root = tmp_path / "root"
    root.mkdir()
    command = [sys.executable, "-m", "support.power_cut.table_run", kind, str(root / "table")]
    command += map(str, directories)
    run = recorded(build_shim(tmp_path), root, tmp_path / "log", command, 120)
    run.check_complete()
    kills = run.kills()
    draw = random.Random(seeds.start)
    for cut in draw.sample(kills, min(len(kills), OF_EACH_SEED * len(seeds))):
        left = tmp_path / "left"
        cut.write(left)
        out = left / "table"
        check(kind, cut, out, stages)
        reports = run_here(kind, directories[-1], out).recordings
        assert not [each.error for each in reports if each.error], cut
        assert rows_of(kind, out) == stages[-1], cut
        if kind == "delta":
            DeltaRecordingTable(out).vacuum(0)
            files = {str(path) for path in out.rglob("*.parquet") if "_delta_log" not in path.parts}
            assert files == set(DeltaTable(out).file_uris()), cut
        shutil.rmtree(left)
