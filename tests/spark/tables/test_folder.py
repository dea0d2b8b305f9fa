"""Interrupts of the commit to a folder of Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog.location import StorageOptions

pytest.importorskip("pyarrow")

from support.spark.table_rig import TasksHere, expected_rows, options, rows_of, run_here

from aerotape.spark.tables.folder import ParquetFolder
from aerotape.spark.tables.job import TableJob
from aerotape.spark.tables.output import OutputStore


def test_an_interrupt_while_files_are_moved(
    archive_dir: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that have been moved stay, and the next job adds the others."""
    for seed in range(3):
        add_recording(archive_dir, fill(SegmentBuilder(), 200, seed))
    move = OutputStore.move
    moved: list[str] = []

    def interrupted(store: OutputStore, source: str, target: str) -> None:
        move(store, source, target)
        moved.append(target)
        if len(moved) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(OutputStore, "move", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_here("folder", archive_dir, out)
    assert {path.name for path in out.glob("*.parquet")} == set(moved)
    run_here("folder", archive_dir, out)
    assert rows_of("folder", out) == expected_rows(archive_dir)


def test_an_interrupt_after_files_appeared_in_an_object_store(
    archive_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in the table since they were written: the next job converts nothing."""
    pytest.importorskip("moto")
    from support.spark import object_store

    add_recording(archive_dir, fill(SegmentBuilder(), 30))

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with object_store.serve() as store:
        place = "s3://tapes/table", StorageOptions.of(store.options)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(ParquetFolder, "commit", interrupted)
            with TableJob(options(archive_dir), ParquetFolder(*place), TasksHere()) as job:
                job.run()
        with TableJob(options(archive_dir), ParquetFolder(*place), TasksHere()) as job:
            [report] = job.run().recordings
    assert report.result == "up to date"
