"""Detached segment files below a recording's start, and their migration to another recording."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.segment.migrate import (
    DetachedSegments,
    begin_moves,
    find_detached,
    finish_moves,
    plan_moves,
)
from aerotape.errors import StorageError

TERM = 65_536
SEGMENT = 131_072


def descriptor(builder: SegmentBuilder, **changes: Any) -> RecordingDescriptor:
    fields: dict[str, Any] = {
        "recording_id": builder.recording_id,
        "start_timestamp_ms": 1,
        "stop_timestamp_ms": 2,
        "start_position": builder.start_position,
        "stop_position": builder.position,
        "initial_term_id": builder.initial_term_id,
        "segment_file_length": builder.segment_length,
        "term_buffer_length": builder.term_length,
        "mtu_length": builder.mtu_length,
        "session_id": builder.session_id,
        "stream_id": builder.stream_id,
        "stripped_channel": "aeron:ipc",
        "original_channel": "aeron:ipc",
        "source_identity": "aeron:ipc",
    }
    return RecordingDescriptor(**{**fields, **changes})


def built(archive_dir: Path, terms: int, **options: Any) -> SegmentBuilder:
    """A recording of whole terms on disk, each with one message and padding."""
    builder = SegmentBuilder(**options)
    for _ in range(terms):
        builder.message(b"message")
        builder.pad_term()
    builder.write(archive_dir)
    return builder


# ---- detached ------------------------------------------------------------------------------------


def test_all_files_up_to_a_gap_are_found(tmp_path: Path) -> None:
    builder = built(tmp_path, 10)
    (tmp_path / f"0-{SEGMENT}.rec").unlink()
    for start, found in [(5, (2, 3)), (3, (2, 1)), (2, (2, 0)), (1, (0, 1)), (0, (0, 0))]:
        looked = find_detached(tmp_path, descriptor(builder, start_position=start * SEGMENT))
        assert looked == DetachedSegments(found[0] * SEGMENT, found[1])


@pytest.mark.parametrize("offset", [32, 4096, 262_144 - 32, 262_144, 262_144 + 32])
def test_the_first_frame_of_a_stream_that_was_joined_late(tmp_path: Path, offset: int) -> None:
    """At any offset in the first term, which may be read in several pieces."""
    term = 524_288
    builder = built(
        tmp_path, 1, start_position=term + offset, term_length=term, segment_length=term
    )
    found = find_detached(tmp_path, descriptor(builder, start_position=2 * term))
    assert found == DetachedSegments(term + offset, 1)


def test_a_start_within_a_term_has_no_detached_files(tmp_path: Path) -> None:
    """Also when there is a file whose name matches by chance."""
    builder = built(tmp_path, 4, start_position=96)
    (tmp_path / f"0-{3 * SEGMENT + 96 - SEGMENT}.rec").write_bytes(bytes(SEGMENT))
    looked = find_detached(tmp_path, descriptor(builder, start_position=3 * SEGMENT + 96))
    assert looked == DetachedSegments(3 * SEGMENT + 96, 0)


def test_term_ids_wrap_around(tmp_path: Path) -> None:
    builder = SegmentBuilder(initial_term_id=0)
    builder.message(b"message")
    header = bytearray(builder.frames[0])
    # Two terms after the maximum term id.
    header[20:24] = (-(2**31) + 1).to_bytes(4, "little", signed=True)
    (tmp_path / f"0-{SEGMENT}.rec").write_bytes(bytes(header).ljust(SEGMENT, b"\0"))
    source = descriptor(builder, initial_term_id=2**31 - 1, start_position=2 * SEGMENT)
    assert find_detached(tmp_path, source) == DetachedSegments(SEGMENT, 1)


def no_length(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def no_frame(path: Path) -> None:
    path.write_bytes(bytes(TERM) + path.read_bytes()[TERM:])


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (no_length, f"fileLength={SEGMENT + 1} not equal to segmentLength={SEGMENT}"),
        (no_frame, "holds no frame"),
    ],
)
def test_a_file_that_is_not_a_valid_segment(
    tmp_path: Path, spoil: Callable[[Path], None], problem: str
) -> None:
    """The files after it are found, and it is reported."""
    builder = built(tmp_path, 6)
    spoil(tmp_path / "0-0.rec")
    looked = find_detached(tmp_path, descriptor(builder, start_position=2 * SEGMENT))
    assert (looked.start_position, looked.count) == (SEGMENT, 1)
    assert problem in looked.problem
    assert "0-0.rec" in looked.problem


# ---- moved ---------------------------------------------------------------------------------------


def contents(archive_dir: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in archive_dir.iterdir()}


def renamed(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name.replace("0-", "5-", 1): data for name, data in files.items()}


def fail_from(
    monkeypatch: pytest.MonkeyPatch, name: str, code: int, first: int = 0
) -> list[tuple[Any, ...]]:
    """Make a function of `os` fail from its call number `first` on."""
    calls: list[tuple[Any, ...]] = []
    real = getattr(os, name)

    def failing(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) > first:
            raise OSError(code, os.strerror(code))
        return real(*args, **options)

    monkeypatch.setattr(os, name, failing)
    return calls


@pytest.mark.parametrize("sync", [True, False])
def test_files_are_renamed_for_the_other_recording(tmp_path: Path, sync: bool) -> None:
    """With both names for a time."""
    source = descriptor(built(tmp_path, 5))
    before = contents(tmp_path)
    moves = plan_moves(tmp_path, source, 5)
    begin_moves(moves, tmp_path, sync=sync)
    assert contents(tmp_path) == before | renamed(before)
    finish_moves(moves)
    assert contents(tmp_path) == renamed(before)


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSPC])
def test_a_failure_during_a_migration_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """All changes are reverted, also where the file system has no hard links."""
    source = descriptor(built(tmp_path, 6))
    before = contents(tmp_path)
    fail_from(monkeypatch, "link", code, first=2)
    with pytest.raises(StorageError, match="cannot migrate"):
        begin_moves(plan_moves(tmp_path, source, 5), tmp_path, sync=False)
    assert contents(tmp_path) == before


def test_an_interrupted_migration_can_be_repeated(tmp_path: Path) -> None:
    """Names that a crash left are accepted."""
    source = descriptor(built(tmp_path, 6))
    before = contents(tmp_path)
    os.link(tmp_path / "0-0.rec", tmp_path / "5-0.rec")
    moves = plan_moves(tmp_path, source, 5)
    begin_moves(moves, tmp_path, sync=False)
    finish_moves(moves)
    assert contents(tmp_path) == renamed(before)


def test_missing_and_existing_files(tmp_path: Path) -> None:
    """A missing source file and an existing target file are reported."""
    source = descriptor(built(tmp_path, 4))
    obstacle = tmp_path / f"5-{SEGMENT}.rec"
    obstacle.write_bytes(b"another")
    with pytest.raises(StorageError, match=obstacle.name):
        plan_moves(tmp_path, source, 5)
    obstacle.unlink()
    (tmp_path / "0-0.rec").unlink()
    with pytest.raises(StorageError, match="missing src segment file"):
        plan_moves(tmp_path, source, 5)


@pytest.mark.parametrize("data", [b"", b"\0"], ids=["hole", "zeros"])
def test_the_blank_next_segment_of_the_target_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    """Only at the position where the two recordings meet; it is restored if a move fails."""
    source = descriptor(built(tmp_path, 6), start_position=SEGMENT)
    (tmp_path / "0-0.rec").unlink()
    before = contents(tmp_path)
    blank = tmp_path / f"5-{SEGMENT}.rec"
    with blank.open("xb") as file:
        file.write(data * SEGMENT)
        file.truncate(SEGMENT)
    for position in (-1, 0, 2 * SEGMENT):
        with pytest.raises(StorageError, match="preexisting dst segment file"):
            plan_moves(tmp_path, source, 5, position)
    moves = plan_moves(tmp_path, source, 5, SEGMENT)
    for first in range(2):
        with monkeypatch.context() as patch:
            fail_from(patch, "link", errno.EIO, first=first)
            with pytest.raises(StorageError, match="cannot migrate"):
                begin_moves(moves, tmp_path, sync=False)
        assert contents(tmp_path) == before | {blank.name: bytes(SEGMENT)}
    begin_moves(plan_moves(tmp_path, source, 5, SEGMENT), tmp_path, sync=True)
    finish_moves(moves)
    assert contents(tmp_path) == renamed(before)


def test_a_next_segment_with_data_in_the_target_is_not_replaced(tmp_path: Path) -> None:
    """Even one byte of another recording prevents the migration."""
    source = descriptor(built(tmp_path, 6), start_position=SEGMENT)
    obstacle = tmp_path / f"5-{SEGMENT}.rec"
    obstacle.write_bytes(bytes(SEGMENT - 1) + b"\1")
    with pytest.raises(StorageError, match="preexisting dst segment file"):
        plan_moves(tmp_path, source, 5, SEGMENT)


def test_the_advice_for_an_existing_file_after_the_end_of_the_target(tmp_path: Path) -> None:
    """A crash followed by a change to the source leaves a separate copy in the target.

    Also, `verify` can leave a file with good frames: the error must not advise their deletion.
    """
    whole = built(tmp_path, 6)
    source = descriptor(whole, start_position=SEGMENT)
    for base in (0, SEGMENT, 2 * SEGMENT):
        (tmp_path / f"5-{base}.rec").write_bytes((tmp_path / f"0-{base}.rec").read_bytes())
    away = tmp_path / "away"
    away.mkdir()
    for base in (SEGMENT, 2 * SEGMENT):
        with pytest.raises(StorageError, match="move the file out of the directory") as refused:
            plan_moves(tmp_path, source, 5, SEGMENT)
        assert "truncate" not in str(refused.value)
        assert refused.value.path == tmp_path / f"5-{base}.rec"
        refused.value.path.rename(away / refused.value.path.name)
    moves = plan_moves(tmp_path, source, 5, SEGMENT)
    begin_moves(moves, tmp_path, sync=False)
    finish_moves(moves)
    assert (tmp_path / "5-0.rec").exists()
    for base in (SEGMENT, 2 * SEGMENT):
        moved, saved = tmp_path / f"5-{base}.rec", away / f"5-{base}.rec"
        assert moved.read_bytes() == saved.read_bytes()


def test_old_names_that_cannot_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error reports them; the files already have their new names."""
    source = descriptor(built(tmp_path, 4))
    moves = plan_moves(tmp_path, source, 5)
    begin_moves(moves, tmp_path, sync=False)
    fail_from(monkeypatch, "unlink", errno.EIO)
    with pytest.raises(StorageError, match="migrated, but cannot remove"):
        finish_moves(moves)
    assert (tmp_path / "5-0.rec").exists()
