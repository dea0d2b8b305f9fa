"""Segment files found before a recording's start, and given to another recording."""

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
    SegmentMove,
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
    """A recording of whole terms on disk, each term one message and padding."""
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
    """Wherever it is in the first term, which may be read in several pieces."""
    term = 524_288
    builder = built(
        tmp_path, 1, start_position=term + offset, term_length=term, segment_length=term
    )
    found = find_detached(tmp_path, descriptor(builder, start_position=2 * term))
    assert found == DetachedSegments(term + offset, 1)


def test_a_start_within_a_term_has_nothing_before_it(tmp_path: Path) -> None:
    """Also when there is a file whose name fits by chance."""
    builder = built(tmp_path, 4, start_position=96)
    (tmp_path / f"0-{3 * SEGMENT + 96 - SEGMENT}.rec").write_bytes(bytes(SEGMENT))
    looked = find_detached(tmp_path, descriptor(builder, start_position=3 * SEGMENT + 96))
    assert looked == DetachedSegments(3 * SEGMENT + 96, 0)


def test_term_ids_wrap_around(tmp_path: Path) -> None:
    builder = SegmentBuilder(initial_term_id=0)
    builder.message(b"message")
    header = bytearray(builder.frames[0])
    # Two terms after the greatest id there is.
    header[20:24] = (-(2**31) + 1).to_bytes(4, "little", signed=True)
    (tmp_path / f"0-{SEGMENT}.rec").write_bytes(bytes(header).ljust(SEGMENT, b"\0"))
    source = descriptor(builder, initial_term_id=2**31 - 1, start_position=2 * SEGMENT)
    assert find_detached(tmp_path, source) == DetachedSegments(SEGMENT, 1)


def no_length(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def no_frame(path: Path) -> None:
    path.write_bytes(bytes(TERM) + path.read_bytes()[TERM:])


def no_positive_length(path: Path) -> None:
    path.write_bytes(b"\xff" * SEGMENT)


def no_file(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (no_length, f"fileLength={SEGMENT + 1} not equal to segmentLength={SEGMENT}"),
        (no_frame, "holds no frame"),
        (no_positive_length, "holds no frame"),
        (no_file, "not a regular file"),
        (a_directory, "not a regular file"),
    ],
)
def test_a_file_that_cannot_be_the_recordings(
    tmp_path: Path, spoil: Callable[[Path], None], problem: str
) -> None:
    """Those after it are found; it is named."""
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
    """Have a function of `os` fail from its call number `first` on."""
    calls: list[tuple[Any, ...]] = []
    real = getattr(os, name)

    def failing(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) > first:
            raise OSError(code, os.strerror(code))
        return real(*args, **options)

    monkeypatch.setattr(os, name, failing)
    return calls


@pytest.mark.parametrize("no_links", [None, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK])
@pytest.mark.parametrize("sync", [True, False])
def test_files_get_the_other_recordings_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_links: int | None, sync: bool
) -> None:
    """With both names for a time, or without where the file system has no hard links."""
    source = descriptor(built(tmp_path, 5))
    before = contents(tmp_path)
    if no_links is not None:
        fail_from(monkeypatch, "link", no_links)
    moves = plan_moves(tmp_path, source, 5)
    begin_moves(moves, tmp_path, sync=sync)
    both = renamed(before) if no_links else before | renamed(before)
    assert contents(tmp_path) == both
    finish_moves(moves)
    assert contents(tmp_path) == renamed(before)


@pytest.mark.parametrize("no_links", [False, True])
def test_a_failure_half_way_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_links: bool
) -> None:
    """Whether files were linked or renamed, all of them go back."""
    source = descriptor(built(tmp_path, 6))
    before = contents(tmp_path)
    if no_links:
        fail_from(monkeypatch, "link", errno.EPERM)
        renames = []
        real = Path.rename

        def rename(self: Path, target: Path) -> Path:
            renames.append(target)
            if len(renames) == 3:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(self, target)

        monkeypatch.setattr(Path, "rename", rename)
    else:
        fail_from(monkeypatch, "link", errno.ENOSPC, first=2)
    with pytest.raises(StorageError, match="cannot migrate"):
        begin_moves(plan_moves(tmp_path, source, 5), tmp_path, sync=False)
    assert contents(tmp_path) == before


def test_a_migration_that_was_cut_short_is_begun_again(tmp_path: Path) -> None:
    """Names that a crash has left count as given."""
    source = descriptor(built(tmp_path, 6))
    before = contents(tmp_path)
    os.link(tmp_path / "0-0.rec", tmp_path / "5-0.rec")
    moves = plan_moves(tmp_path, source, 5)
    begin_moves(moves, tmp_path, sync=False)
    finish_moves(moves)
    assert contents(tmp_path) == renamed(before)


def test_files_in_the_way(tmp_path: Path) -> None:
    """One that is missing, and one that is there already, are named."""
    source = descriptor(built(tmp_path, 4))
    obstacle = tmp_path / f"5-{SEGMENT}.rec"
    obstacle.write_bytes(b"another")
    with pytest.raises(StorageError, match=obstacle.name):
        plan_moves(tmp_path, source, 5)
    obstacle.unlink()
    (tmp_path / "0-0.rec").unlink()
    with pytest.raises(StorageError, match="missing src segment file"):
        plan_moves(tmp_path, source, 5)


@pytest.mark.parametrize("no_links", [None, errno.EPERM])
@pytest.mark.parametrize("data", [b"", b"\0"], ids=["hole", "zeros"])
def test_the_blank_file_that_the_other_recording_would_go_on_in_makes_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_links: int | None, data: bytes
) -> None:
    """Where the two meet, and only there; if not all can be moved it is there again."""
    source = descriptor(built(tmp_path, 6), start_position=SEGMENT)
    (tmp_path / "0-0.rec").unlink()
    before = contents(tmp_path)
    blank = tmp_path / f"5-{SEGMENT}.rec"
    with blank.open("xb") as file:
        file.write(data * SEGMENT)
        file.truncate(SEGMENT)
    for elsewhere in (-1, 0, 2 * SEGMENT):
        with pytest.raises(StorageError, match="preexisting dst segment file"):
            plan_moves(tmp_path, source, 5, elsewhere)
    moves = plan_moves(tmp_path, source, 5, SEGMENT)
    if no_links is not None:
        fail_from(monkeypatch, "link", no_links)
    for first in range(2):
        with monkeypatch.context() as patch:
            if no_links is None:
                fail_from(patch, "link", errno.EIO, first=first)
            else:
                patch.setattr(SegmentMove, "begin", failing_begin(first))
            with pytest.raises(StorageError, match="cannot migrate"):
                begin_moves(moves, tmp_path, sync=False)
        assert contents(tmp_path) == before | {blank.name: bytes(SEGMENT)}
    begin_moves(plan_moves(tmp_path, source, 5, SEGMENT), tmp_path, sync=True)
    finish_moves(moves)
    assert contents(tmp_path) == renamed(before)


def failing_begin(first: int) -> Callable[[SegmentMove], None]:
    """Fail with the move number `first`."""
    begun: list[SegmentMove] = []
    real = SegmentMove.begin

    def begin(move: SegmentMove) -> None:
        if len(begun) == first:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        begun.append(move)
        real(move)

    return begin


def test_a_file_with_frames_where_the_other_recording_would_go_on(tmp_path: Path) -> None:
    """Even one byte of another recording does not make way."""
    source = descriptor(built(tmp_path, 6), start_position=SEGMENT)
    obstacle = tmp_path / f"5-{SEGMENT}.rec"
    obstacle.write_bytes(bytes(SEGMENT - 1) + b"\1")
    with pytest.raises(StorageError, match="preexisting dst segment file"):
        plan_moves(tmp_path, source, 5, SEGMENT)
    obstacle.unlink()
    obstacle.mkdir()
    with pytest.raises(StorageError, match="preexisting dst segment file"):
        plan_moves(tmp_path, source, 5, SEGMENT)


def test_the_way_out_when_a_file_in_the_way_is_behind_the_other_recording(tmp_path: Path) -> None:
    """As a crash leaves it that was followed by a change to the source: it has its own copy now.

    Or as `verify` leaves it, with good frames in it: so nothing is advised that loses them.
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
        moved, kept = tmp_path / f"5-{base}.rec", away / f"5-{base}.rec"
        assert moved.read_bytes() == kept.read_bytes()


def test_a_damaged_stop_position_is_no_work(tmp_path: Path) -> None:
    """However many segments a recording claims: the first that is missing ends it."""
    source = descriptor(built(tmp_path, 2), stop_position=1 << 46)
    with pytest.raises(StorageError, match="missing src segment file"):
        plan_moves(tmp_path, source, 5)


def test_old_names_that_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said to be so: the files are where they should be all the same."""
    source = descriptor(built(tmp_path, 4))
    moves = plan_moves(tmp_path, source, 5)
    begin_moves(moves, tmp_path, sync=False)
    fail_from(monkeypatch, "unlink", errno.EIO)
    with pytest.raises(StorageError, match="migrated, but cannot remove"):
        finish_moves(moves)
    assert (tmp_path / "5-0.rec").exists()
