"""The column `recorded_time` of tables, and its statistics."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder
from support.builders.timed_directory import Built, build

pytest.importorskip("deltalake")

import pyarrow
from deltalake import DeltaTable
from support.spark.table_rig import KINDS, Kind, expected_rows, rows_of, run_here

both = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "archive")


@both
def test_rows_have_their_recorded_times(kind: Kind, built: Built, out: Path) -> None:
    """Of a recording with a time index, and null for one without; compaction changes nothing."""
    add_recording(built.archive_dir, fill(SegmentBuilder(), 30))
    assert run_here(kind, built.archive_dir, out).files > 2
    rows = rows_of(kind, out)
    assert rows == expected_rows(built.archive_dir)
    assert {row["recorded_time"] is None for row in rows} == {True, False}
    if kind == "delta":
        DeltaTable(out).optimize.compact()
        assert rows_of(kind, out) == rows


def test_readers_of_a_delta_table_skip_files_by_time(built: Built, out: Path) -> None:
    """The log's bounds include the times of each file, in milliseconds; DuckDB and pyarrow read a
    range of times while the other files are missing."""
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    built.points = [point._replace(time_ns=point.time_ns + 1_500) for point in built.points]
    built.put_index()
    add_recording(built.archive_dir, fill(SegmentBuilder(), 30))
    run_here("delta", built.archive_dir, out)
    rows = rows_of("delta", out)
    table = DeltaTable(out)
    actions = pyarrow.table(table.get_add_actions(flatten=True)).to_pylist()
    for action in actions:
        times = [
            row["recorded_time"]
            for row in rows
            if row["recording_id"] == action["min.recording_id"]
            and action["min.position"] <= row["position"] <= action["max.position"]
        ]
        known = [time for time in times if time is not None]
        low, high = action["min.recorded_time"], action["max.recorded_time"]
        assert action["null_count.recorded_time"] == len(times) - len(known)
        if known:
            assert (low, high) == (floored(min(known)), ceiled(max(known)))
        else:
            assert (low, high) == (None, None)
    [chosen] = [a for a in actions if (a["min.recording_id"], a["min.position"]) == (0, 0)]
    low, high = chosen["min.recorded_time"], chosen["max.recorded_time"] - timedelta(seconds=1)
    expected = [
        row["position"]
        for row in rows
        if row["recorded_time"] is not None and low <= row["recorded_time"] <= high
    ]
    assert len(expected) > 20
    between = polars.col("recorded_time").is_between(low, high)
    assert sorted(polars.scan_delta(str(out)).filter(between).collect()["position"]) == expected
    for action in actions:
        if action is not chosen:
            (out / action["path"]).unlink()
    filters: Any = [("recorded_time", ">=", low), ("recorded_time", "<=", high)]
    assert sorted(table.to_pyarrow_table(filters=filters)["position"].to_pylist()) == expected
    found = duckdb.from_arrow(table.to_pyarrow_dataset()).filter(
        f"recorded_time BETWEEN '{low}' AND '{high}'"
    )
    assert sorted(position for (position,) in found.project("position").fetchall()) == expected


def floored(time: datetime) -> datetime:
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def ceiled(time: datetime) -> datetime:
    return floored(time + timedelta(microseconds=999))
