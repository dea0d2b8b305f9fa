"""What a Delta table lists of its recordings."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

pytest.importorskip("deltalake")

from deltalake import DeltaTable
from pyarrow import feather
from support.spark.table_rig import expected_rows, rows_of, run_here

from aerotape.spark.tables import converted_files
from aerotape.spark.tables.delta import DeltaRecordingTable


def lists_of(out: Path) -> list[Path]:
    return sorted((out / "_aerotape").iterdir())


def test_each_commit_has_a_list_and_a_transaction(archive_dir: Path, out: Path) -> None:
    """It names each recording and its positions; lists of earlier versions are retained."""
    ends = []
    for seed in range(3):
        builder = fill(SegmentBuilder(), 30, seed)
        ends.append(builder.position)
        add_recording(archive_dir, builder)
        run_here("delta", archive_dir, out)
    path = out / "_aerotape" / f"{DeltaTable(out).transaction_version('aerotape')}.arrow"
    rows = feather.read_table(path).to_pylist()
    assert [(row["recording_id"], row["from_position"], row["to_position"]) for row in rows] == [
        (id, 0, end) for id, end in enumerate(ends)
    ]
    transactions = [
        json.loads(line)["txn"]
        for log in (out / "_delta_log").glob("*.json")
        for line in log.read_text().splitlines()
        if line.startswith('{"txn"')
    ]
    assert [each["appId"] for each in transactions] == ["aerotape"] * 3
    assert {f"{each['version']}.arrow" for each in transactions} == {
        each.name for each in lists_of(out)
    }


def test_only_so_many_lists_are_retained(
    archive_dir: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit deletes the oldest ones."""
    monkeypatch.setattr(converted_files, "_RETAINED", 2)
    every: set[Path] = set()
    for seed in range(4):
        add_recording(archive_dir, fill(SegmentBuilder(), 5, seed))
        run_here("delta", archive_dir, out)
        added = set(lists_of(out)) - every
        every |= added
        assert len(added) == 1
        assert len(lists_of(out)) <= 2
        assert added < set(lists_of(out)) or seed == 0
    assert len(every) == 4


def test_a_table_without_its_list(archive_dir: Path, out: Path) -> None:
    """Nothing is converted twice, and what is new is added."""
    add_recording(archive_dir, fill(SegmentBuilder(), 5))
    run_here("delta", archive_dir, out)
    shutil.rmtree(out / "_aerotape")
    add_recording(archive_dir, fill(SegmentBuilder(), 7))
    reports = run_here("delta", archive_dir, out).recordings
    assert [each.result for each in reports] == ["up to date", "converted"]
    assert rows_of("delta", out) == expected_rows(archive_dir)


def test_vacuum_deletes_lists_that_were_replaced(archive_dir: Path, out: Path) -> None:
    """Those that were replaced before the last hours, however old they were then; never that of the
    table."""
    for seed in range(3):
        add_recording(archive_dir, fill(SegmentBuilder(), 5, seed))
        run_here("delta", archive_dir, out)
    present = out / "_aerotape" / f"{DeltaTable(out).transaction_version('aerotape')}.arrow"
    others = [path for path in lists_of(out) if path != present]
    now = time.time()
    for path, age_h in zip(others, (9, 7), strict=True):
        os.utime(path, (now - age_h * 3600,) * 2)
    DeltaRecordingTable(out).vacuum(8)
    assert set(lists_of(out)) == {*others, present}
    DeltaRecordingTable(out).vacuum(5)
    assert set(lists_of(out)) == {others[1], present}
    DeltaRecordingTable(out).vacuum(0)
    assert lists_of(out) == [present]
