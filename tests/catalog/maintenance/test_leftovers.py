"""Files of ours that outlive their recording, after ArchiveTool's `compact`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.builders.built_archive import add_entry, add_recording, fill
from support.builders.mark_files import leave
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import tool
from support.jvm.java import archive_tool

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.recovery.quarantine import Quarantine
from aerotape.catalog.recovery.refresh import refresh
from aerotape.catalog.recovery.suspect_marks import SuspectNote
from aerotape.catalog.time_index.file import Provenance, time_index_path, write_time_index
from aerotape.catalog.time_index.points import TimePoint, TimePoints
from aerotape.replay.offline.directory import open_directory

OURS = ("aerotape-{}.time-index", "aerotape-{}.suspect")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Three recordings with all files that there can be of one; 1 and 2 are INVALID."""
    directory = tmp_path / "archive"
    directory.mkdir()
    for recording_id in range(3):
        stream = fill(SegmentBuilder(), 10)
        add_recording(directory, stream)
        points = TimePoints.of([TimePoint(1_700_000_000_500_000_000, stream.position, -42)])
        provenance = Provenance(recording_id, 1_700_000_000_000, 0, 0, -42)
        write_time_index(time_index_path(directory, recording_id), provenance, points)
        extra = directory / f"{recording_id}-{1 << 20}.rec"
        extra.write_bytes(b"x" * 64)
        removed = Quarantine(directory, recording_id, 5, "test")
        removed.remove_segment(extra, lambda name: SuspectNote("cut", "lost", 64, 5, name))
    with Catalog.open(directory) as catalog:
        for recording_id in (1, 2):
            catalog.change_state(recording_id, RecordingState.INVALID)
    leave(directory)
    return directory


def ours(directory: Path, recording_id: int) -> set[str]:
    names = {name.format(recording_id) for name in OURS}
    return {name for name in names if (directory / name).exists()}


@pytest.mark.jvm
def test_files_of_recordings_that_are_gone_are_deleted(directory: Path) -> None:
    """With the orphaned segments of all; a dry run names them."""
    archive_tool(directory, "compact", answers="y\n")
    assert not list(directory.glob("1-*.rec"))
    assert len(ours(directory, 1)) == len(ours(directory, 2)) == 2
    names = {name.format(id_) for name in OURS for id_ in (1, 2)}
    expected = {*names, "aerotape-quarantine/1-5", "aerotape-quarantine/2-5"}
    row = tool(directory, "delete-orphaned-segments", "--dry-run", "--json", expect=None).json
    assert set(row["other_files_deleted"]) == expected
    assert len(ours(directory, 1)) == 2
    printed = tool(directory, "delete-orphaned-segments", "--yes").out
    assert {line.removeprefix("deleted ") for line in printed.splitlines()} == expected
    assert ours(directory, 1) == ours(directory, 2) == set()
    assert len(ours(directory, 0)) == 2
    assert [path.name for path in (directory / "aerotape-quarantine").iterdir()] == ["0-5"]


@pytest.mark.parametrize("kind", [*OURS, "aerotape-quarantine/{}-5"])
def test_no_new_recording_gets_the_id_of_such_a_file(directory: Path, kind: str) -> None:
    """A catalog that was lost gives ids out again; it must not find another's index or mark."""
    kept = directory / kind.format(2)
    moved = kept.rename(directory.parent / "kept")
    for path in sorted(directory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    kept.parent.mkdir(exist_ok=True)
    moved.rename(kept)
    with Catalog.open(directory, create=True) as catalog:
        refresh(catalog, directory, now_ms=9)
        made = [add_entry(catalog, SegmentBuilder()) for _ in range(3)]
    assert made == [0, 1, 3]
    assert open_directory(directory).recording(3).suspect_notes == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: (d / "1-0.rec").write_bytes(b""),
        lambda d: (d / "1-0.rec.del").write_bytes(b""),
    ],
    ids=["segment", "deleted segment"],
)
def test_files_beside_segment_files_stay(directory: Path, spoil: Callable[[Path], object]) -> None:
    """A catalog that lost the entry of a recording does not cost its index and its quarantine."""
    with Catalog.open(directory) as catalog:
        catalog.compact([1])
    spoil(directory)
    tool(directory, "delete-orphaned-segments", "--yes", expect=None)
    assert len(ours(directory, 1)) == 2
    assert list(directory.glob("aerotape-quarantine/1-*"))
