"""Segment files shared by two recordings, as a killed migration leaves them: changes to one of the
recordings do not affect the other."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.builders.built_archive import add_entry, fill
from support.builders.segment_builder import SegmentBuilder
from support.damage.overwriting import overwrite

from aerotape.archive.recording.extension import clear_stale_tail
from aerotape.archive.recording.truncation import cut_back
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.segment.hard_links import break_hard_link
from aerotape.errors import StorageError
from aerotape.replay.offline.directory import open_directory
from aerotape.tools._cli.main import main

KEPT, OTHER = 0, 1
SEGMENT_LENGTH = 131_072


class Shared:
    """Two recordings with the same files; the other one ends within its second segment."""

    def __init__(self, directory: Path) -> None:
        self.path = directory
        self.stream = fill(SegmentBuilder(recording_id=KEPT), 150)
        self.stream.write(directory)
        for path in list(directory.glob(f"{KEPT}-*.rec")):
            os.link(path, directory / path.name.replace(f"{KEPT}-", f"{OTHER}-", 1))
        self.end = next(
            m.position for m in self.stream.messages if m.position > 1.5 * SEGMENT_LENGTH
        )
        with Catalog.open(directory, create=True) as catalog:
            for stop_position in (self.stream.position, self.end):
                add_entry(catalog, self.stream, stop_position=stop_position)

    @property
    def other(self) -> RecordingDescriptor:
        return open_directory(self.path).recording(OTHER).descriptor

    def files(self, recording_id: int) -> dict[int, bytes]:
        return {
            int(path.stem.partition("-")[2]): path.read_bytes()
            for path in self.path.glob(f"{recording_id}-*.rec")
        }


@pytest.fixture
def shared(tmp_path: Path) -> Shared:
    return Shared(tmp_path)


def truncate(shared: Shared) -> None:
    cut_back(shared.path, shared.other, shared.end)


def prepare_extension(shared: Shared) -> None:
    clear_stale_tail(shared.path, shared.other, 1)


def repair(shared: Shared) -> None:
    assert main(["tool", str(shared.path), "repair", str(OTHER), "--cut"]) == 3


@pytest.mark.parametrize("change", [truncate, prepare_extension, repair])
def test_data_truncated_in_one_recording_remains_in_the_other(
    shared: Shared, change: Callable[[Shared], None]
) -> None:
    """Only the changed file is copied."""
    before = shared.files(KEPT)
    change(shared)
    assert shared.files(KEPT) == before
    messages = open_directory(shared.path).recording(KEPT).messages()
    assert [bytes(each.payload) for each in messages] == [
        each.payload for each in shared.stream.messages
    ]
    changed = shared.files(OTHER)
    offset = shared.end - SEGMENT_LENGTH
    assert changed[0] == before[0]
    assert changed[SEGMENT_LENGTH] == before[SEGMENT_LENGTH][:offset] + bytes(
        SEGMENT_LENGTH - offset
    )
    links = [(shared.path / f"{KEPT}-{base}.rec").stat().st_nlink for base in (0, SEGMENT_LENGTH)]
    assert links == [2, 1]


def test_padding_that_fills_a_gap_is_written_to_one_recording(shared: Shared) -> None:
    overwrite(shared.path / f"{KEPT}-0.rec", shared.stream.messages[3].position, b"\xff" * 32)
    before = shared.files(KEPT)
    assert main(["tool", str(shared.path), "repair", str(OTHER)]) == 3
    assert shared.files(KEPT) == before
    assert shared.files(OTHER)[0] != before[0]


def test_an_extension_writes_to_one_recording(shared: Shared) -> None:
    """The file is copied even when there is no stale data."""
    with Catalog.open(shared.path) as catalog:
        catalog.set_stop_position(OTHER, shared.stream.position)
    clear_stale_tail(shared.path, shared.other, 1)
    last = max(shared.files(KEPT))
    assert (shared.path / f"{KEPT}-{last}.rec").stat().st_nlink == 1
    assert shared.files(OTHER) == shared.files(KEPT)


def test_a_copy_retains_holes_time_and_mode(tmp_path: Path) -> None:
    path, other = tmp_path / "0-0.rec", tmp_path / "1-0.rec"
    with path.open("wb") as file:
        os.pwrite(file.fileno(), b"data" * 2048, 65_536)
        file.truncate(SEGMENT_LENGTH)
    path.chmod(0o640)
    os.utime(path, ns=(1, 1_600_000_000_123_456_789))
    os.link(path, other)
    before = path.stat()
    break_hard_link(path)
    after = path.stat()
    assert path.read_bytes() == other.read_bytes()
    assert (after.st_nlink, other.stat().st_nlink) == (1, 1)
    assert after.st_ino != before.st_ino == other.stat().st_ino
    assert (after.st_mode, after.st_mtime_ns, after.st_blocks) == (
        before.st_mode,
        before.st_mtime_ns,
        before.st_blocks,
    )
    break_hard_link(path)
    assert path.stat().st_ino == after.st_ino
    assert sorted(each.name for each in tmp_path.iterdir()) == ["0-0.rec", "1-0.rec"]


@pytest.mark.root
def test_a_copy_retains_the_owner(tmp_path: Path) -> None:
    """An archive of another user can still write to the copy."""
    path = tmp_path / "0-0.rec"
    path.write_bytes(b"data")
    path.chmod(0o640)
    os.chown(path, 65_534, 65_533)
    os.link(path, tmp_path / "1-0.rec")
    break_hard_link(path)
    made = path.stat()
    assert (made.st_nlink, made.st_uid, made.st_gid) == (1, 65_534, 65_533)
    assert made.st_mode & 0o777 == 0o640


def test_a_failed_copy_changes_nothing(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shared.files(OTHER)

    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fail)
        with pytest.raises(StorageError, match=r"cannot copy .*1-131072\.rec, .*No space left"):
            truncate(shared)
    assert shared.files(OTHER) == shared.files(KEPT) == before
    assert not list(shared.path.glob("*.del"))
