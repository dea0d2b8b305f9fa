"""Interrupts of the commit to a folder of Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog.location import StorageOptions
from aerotape.errors import ConfigurationError

pytest.importorskip("pyarrow")

from support.spark.table_rig import TasksHere, expected_rows, options, rows_of, run_here

from aerotape.spark.tables.folder import ParquetFolder
from aerotape.spark.tables.job import TableJob
from aerotape.spark.tables.output import OutputStore


def write(store: OutputStore, name: str, data: bytes) -> None:
    with store.new_file(name) as stream:
        stream.write(data)


def test_folders_of_any_name_in_any_storage(tmp_path: Path) -> None:
    """Files are written, listed, read, moved and deleted; one whose writing fails is not there, and
    in an object store the one before it stays."""
    pytest.importorskip("moto")
    from support.spark import object_store

    with object_store.serve() as server:
        name = "a b/é%20#c"
        for place in (f"s3://tapes/{name}", f"memory://tables/{name}", str(tmp_path / name)):
            storage = StorageOptions.of(server.options if place.startswith("s3") else {})
            store = OutputStore.open(place, storage)
            assert store.files() == {}
            store.make_folder("inner #1")
            write(store, "inner #1/é", b"first")
            write(store, "other", b"2")
            assert set(store.files()) == {"inner #1/é", "other"}
            assert set(store.files("inner #1")) == {"é"}
            with store.open_file("inner #1/é") as file:
                assert file.seek(2) == 2
                assert file.read() == b"rst"
            for path in ("new", "other"):
                with pytest.raises(KeyError), store.new_file(path) as stream:
                    stream.write(bytes(10))
                    raise KeyError
            kept = {"other"} if store.is_object_store else set()
            assert set(store.files()) == {"inner #1/é", *kept}
            store.move("inner #1/é", "%2F")
            assert set(store.files()) == {"%2F", *kept}
            with pytest.raises(ConfigurationError, match="is a file: name a folder"):
                OutputStore.open(f"{place}/%2F", storage)
            store.delete_file("none")
            store.delete_folder("none")
            store.delete_folder("")
            assert store.files() == {}


def test_a_full_disk_is_reported_in_one_line(tmp_path: Path) -> None:
    """With the name of the file, and not with pyarrow's details."""
    (tmp_path / "new").symlink_to("/dev/full")
    store = OutputStore.open(tmp_path)
    with (
        pytest.raises(OSError, match=rf"^\[Errno 28\] No space left on device: '{tmp_path}/new'$"),
        store.new_file("new") as stream,
        store.writing("new"),
    ):
        stream.write(bytes(1 << 20))
    assert store.files() == {}


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
