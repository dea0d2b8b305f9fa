"""What a Delta table lists of its recordings, and tables of earlier versions."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.scoped_store import build, do_import
from support.builders.segment_builder import SegmentBuilder

pytest.importorskip("deltalake")

from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import CommitProperties, Transaction
from pyarrow import feather, parquet
from support.spark.table_rig import KINDS, Kind, expected_rows, rows_of, run_here

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


# -- tables of earlier versions --------------------------------------------------------------


def old_delta_table(new: Path, old: Path) -> None:
    """Write the rows of a table with four transactions for each recording, as was done before."""
    transactions = [
        Transaction(f"aerotape:{key}{suffix}", value, 1)
        for row in feather.read_table(lists_of(new)[0]).to_pylist()
        for key in ((row["scope_id"] or 0) << 64 | row["recording_id"],)
        for suffix, value in (
            (":from", row["from_position"]),
            ("", row["to_position"]),
            (":last", row["last_position"]),
            (":source", row["identity"] << 31 | 12345),
        )
    ]
    write_deltalake(
        old,
        DeltaTable(new).to_pyarrow_table(),
        commit_properties=CommitProperties(app_transactions=transactions),
    )


def old_folder(new: Path, old: Path) -> None:
    """Copy files with the metadata that they had before."""
    old.mkdir()
    key = b"aerotape.recordings"
    for path in new.glob("*.parquet"):
        table = parquet.read_table(path)
        recordings = json.loads(parquet.read_metadata(path).metadata[key])
        for each in recordings:
            each["last"] = [each.pop("last_message")[0], 12345]
        metadata = {**(table.schema.metadata or {}), key: json.dumps(recordings)}
        parquet.write_table(table.replace_schema_metadata(metadata), old / path.name)


def make_old(kind: Kind, new: Path, old: Path) -> None:
    (old_delta_table if kind == "delta" else old_folder)(new, old)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_an_earlier_version_is_continued(
    kind: Kind, archive_dir: Path, out: Path, tmp_path: Path
) -> None:
    """A run converts what is new, also with only some recordings selected, and nothing twice."""
    for seed in range(3):
        add_recording(archive_dir, fill(SegmentBuilder(), 30, seed))
    run_here(kind, archive_dir, tmp_path / "new")
    make_old(kind, tmp_path / "new", out)
    reports = run_here(kind, archive_dir, out).recordings
    assert [each.result for each in reports] == ["up to date"] * 3
    add_recording(archive_dir, fill(SegmentBuilder(), 7))
    [report] = run_here(kind, archive_dir, out, recording_ids=(3,)).recordings
    assert report.messages == 7
    reports = run_here(kind, archive_dir, out).recordings
    assert [each.result for each in reports] == ["up to date"] * 4
    assert rows_of(kind, out) == expected_rows(archive_dir)


@pytest.mark.parametrize("kind", KINDS)
def test_imports_in_a_table_of_an_earlier_version_are_not_converted_twice(
    kind: Kind, tmp_path: Path, out: Path
) -> None:
    """Recordings of the archive itself and of another one are found."""
    store = build(tmp_path / "store", archive_id=5, count=2)
    do_import(store, build(tmp_path / "high", archive_id=9, count=2), (1 << 64) - 1)
    run_here(kind, store, tmp_path / "new", scope_ids=())
    make_old(kind, tmp_path / "new", out)
    reports = run_here(kind, store, out, scope_ids=()).recordings
    assert [each.result for each in reports] == ["up to date"] * 4


def longer_messages() -> SegmentBuilder:
    builder = SegmentBuilder()
    for _ in range(3):
        builder.message(bytes(60_000))
    return builder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("changed", "error"),
    [
        (longer_messages(), "its message at position"),
        (fill(SegmentBuilder(initial_term_id=9), 30), "it is not the recording that the table has"),
    ],
    ids=["message", "recording"],
)
def test_a_recording_that_differs_from_a_table_of_an_earlier_version_is_left_out(
    kind: Kind, changed: SegmentBuilder, error: str, archive_dir: Path, out: Path, tmp_path: Path
) -> None:
    """It has no message where the last one began, or another initial term id."""
    add_recording(archive_dir, fill(SegmentBuilder(), 30))
    run_here(kind, archive_dir, tmp_path / "new")
    make_old(kind, tmp_path / "new", out)
    shutil.rmtree(archive_dir)
    archive_dir.mkdir()
    add_recording(archive_dir, changed)
    [report] = run_here(kind, archive_dir, out).recordings
    assert report.result == "left out"
    assert error in str(report.error)
