"""Compaction of the catalog when an archive starts."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_entry
from support.builders.held_recordings import add_recording, segments
from support.builders.segment_builder import SegmentBuilder
from support.builders.streams import record
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive
from support.jvm.java import JavaArchive, JavaClient, archive_tool

from aerotape.archive.compaction import compact_at_start
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import MIN_CAPACITY_BYTES, RecordingState

NOW_NS = 1_700_000_000 * 10**9


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Seven recordings: 1, 3, 4 and 6 purged, 3 with a remaining file; 2 invalid."""
    made = tmp_path / "archive"
    for number in range(7):
        add_recording(made, [1], now_ns=NOW_NS, channel=f"aeron:ipc?alias={'x' * 40 * number}")
    with Catalog.open(made) as catalog:
        for purged in (1, 3, 4, 6):
            catalog.change_state(purged, RecordingState.DELETED)
        catalog.change_state(2, RecordingState.INVALID)
    for purged in (1, 4, 6):
        [path] = made.glob(f"{purged}-*.rec")
        path.unlink()
    return made


def open_catalog(directory: Path) -> Catalog:
    return Catalog.open(directory, capacity_bytes=MIN_CAPACITY_BYTES)


def states(directory: Path) -> dict[int, int]:
    with Catalog.open(directory, read_only=True) as catalog:
        return {entry.recording_id: entry.state for entry in catalog.entries()}


def bodies(catalog: Catalog) -> dict[int, bytes]:
    return {each: catalog.entry(each).body for each in catalog.recording_ids()}


def test_purged_recordings_without_files_are_removed(directory: Path) -> None:
    """Other entries are unchanged, ids continue, and the open catalog remains usable."""
    with open_catalog(directory) as catalog:
        before, capacity = bodies(catalog), catalog.capacity_bytes
        assert compact_at_start(catalog, directory, 0) == [1, 4, 6]
        assert catalog.capacity_bytes < capacity
        assert states(directory) == {
            0: RecordingState.VALID,
            2: RecordingState.INVALID,
            3: RecordingState.DELETED,
            5: RecordingState.VALID,
        }
        assert bodies(catalog) == before
        assert catalog.next_recording_id == 7
        catalog.set_start_position(5, 65_536)
        catalog.change_state(2, RecordingState.VALID)
        assert add_entry(catalog, SegmentBuilder()) == 7
        with Catalog.open(directory, read_only=True) as seen:
            assert list(seen.recording_ids()) == [0, 2, 5, 7]
            assert seen.start_position(5) == 65_536
    assert sorted(path.name for path in directory.glob("archive.catalog*")) == ["archive.catalog"]


def test_half_of_the_entries_is_not_enough(directory: Path) -> None:
    """With three of six purged without a file, the catalog is not compacted."""
    inode = (directory / "archive.catalog").stat().st_ino
    with open_catalog(directory) as catalog:
        add_entry(catalog, SegmentBuilder())
        assert compact_at_start(catalog, directory, 0) == []
    assert (directory / "archive.catalog").stat().st_ino == inode


def test_a_reader_of_the_old_file_is_not_affected(directory: Path) -> None:
    """A catalog that is open for reading lists the same recordings as before."""
    with open_catalog(directory) as catalog, Catalog.open(directory, read_only=True) as reader:
        held = [entry.recording_id for entry in reader.entries()]
        assert compact_at_start(catalog, directory, 0)
        assert [entry.recording_id for entry in reader.entries()] == held


def test_the_file_has_the_configured_capacity(directory: Path) -> None:
    """A running archive has free, zeroed space after the last entry."""
    with open_catalog(directory) as catalog:
        assert compact_at_start(catalog, directory, 64 * 1024)
        assert catalog.capacity_bytes == 64 * 1024
    assert (directory / "archive.catalog").stat().st_size == 64 * 1024


def test_damage_is_logged_and_nothing_is_changed(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged entry may belong to a recording that was not purged."""
    with open_catalog(directory) as catalog:
        place = catalog.entry(5)
    with (directory / "archive.catalog").open("r+b") as file:
        file.seek(place.offset + 32 + 80)
        file.write(b"\xff\xff\xff\x7f")
    before = (directory / "archive.catalog").read_bytes()
    with open_catalog(directory) as catalog, caplog.at_level(logging.WARNING):
        assert compact_at_start(catalog, directory, 0) == []
    assert "catalog not compacted" in caplog.text
    assert "damaged" in caplog.text
    assert (directory / "archive.catalog").read_bytes() == before


@pytest.mark.parametrize("call", ["posix_fallocate", "pwrite", "fsync", "fchmod"])
def test_a_failure_at_any_step_leaves_the_old_catalog(
    directory: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
) -> None:
    """The archive starts with the old catalog, and the next start tries again."""
    with open_catalog(directory) as catalog:
        before = (directory / "archive.catalog").read_bytes()
        held = bodies(catalog)

        def fail(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, call, fail)
        assert compact_at_start(catalog, directory, 0) == []
        assert "No space left on device" in caplog.text
        monkeypatch.undo()
        assert (directory / "archive.catalog").read_bytes() == before
        assert bodies(catalog) == held
        assert compact_at_start(catalog, directory, 0) == [1, 4, 6]


@pytest.mark.jvm
def test_an_archive_compacts_when_it_starts(tmp_path: Path, aeron_dir: Path) -> None:
    """Clients get the same listings, and the Java archive opens the directory."""
    archive_dir = tmp_path / "archive"
    properties = {
        "aeron.archive.low.storage.space.threshold": "1m",
        "aeron.archive.catalog.capacity": "4096",
    }
    with (
        AerotapeArchive(archive_dir, aeron_dir, properties=properties) as archive,
        JavaClient(archive.aeron_dir) as client,
    ):
        client.connect(archive.control_channel)
        first = record(client, 7001, 1024)
        purged = [record(client, 7002 + number, 1024) for number in range(20)]
        last = record(client, 7100, 1024)
        for stream in purged:
            client.call("purgeRecording", stream.recording_id)
        await_true(lambda: not any(segments(archive_dir, each.recording_id) for each in purged))
        listed = _listed(client)
    size = (archive_dir / "archive.catalog").stat().st_size
    with (
        AerotapeArchive(archive_dir, aeron_dir, properties=properties) as archive,
        JavaClient(archive.aeron_dir) as client,
    ):
        client.connect(archive.control_channel)
        assert list(states(archive_dir)) == [first.recording_id, last.recording_id]
        assert (archive_dir / "archive.catalog").stat().st_size < size
        assert _listed(client) == listed
        assert client.call("getStopPosition", last.recording_id) == 1024
        new = record(client, 7200, 1024)
        assert new.recording_id == last.recording_id + 1
        rows = _listed(client)
    described = archive_tool(archive_dir, "count-entries")
    assert described.stdout.strip() == "3", described.stderr
    with (
        JavaArchive(archive_dir, tmp_path / "java-aeron") as java,
        JavaClient(java.aeron_dir) as client,
    ):
        client.connect(java.control_channel)
        assert _listed(client) == rows
        assert record(client, 7300, 1024).recording_id == new.recording_id + 1


def _listed(client: JavaClient) -> list[dict[str, Any]]:
    """Return all recordings as a Java client sees them, without ids of its session."""
    rows = client.call("listRecordings", 0, 100)
    for row in rows:
        del row["controlSessionId"], row["correlationId"]
    return list(rows)
