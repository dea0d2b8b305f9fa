"""Attach detached segment files, and migrate segment files to another recording.

Nothing here changes the catalog. Each function states what an interruption leaves.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aerotape.catalog.descriptor import RecordingDescriptor, segment_base
from aerotape.catalog.durability import sync_directory
from aerotape.catalog.segment.data_extents import holds_data
from aerotape.catalog.segment_files import (
    make_blank_segment,
    segment_file_name,
    segment_file_size,
)
from aerotape.errors import StorageError, StorageErrors
from aerotape.frame_header import FRAME_ALIGNMENT, HEADER_LENGTH, FrameHeader, term_id_at
from aerotape.protocol import NULL_VALUE

_CHUNK_LENGTH = 256 * 1024


def base_positions(descriptor: RecordingDescriptor, position: int, end_position: int) -> range:
    """Return the base positions of the segments from that of `position` up to `end_position`.

    The one that begins at `end_position` is not among them.
    """
    first = segment_base(descriptor, position)
    return range(first, end_position, descriptor.segment_file_length)


# ---- attaching -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DetachedSegments:
    """Detached segment files before a recording's start that belong to it.

    Attributes:
        start_position: where the recording starts with them, bytes.
        count: how many there are.
        problem: why the search has ended, when it was not for want of a file; else empty.
    """

    start_position: int
    count: int
    problem: str = ""


def find_detached(archive_dir: Path, descriptor: RecordingDescriptor) -> DetachedSegments:
    """Find the segment files that precede a recording's start without a gap.

    Each must have the length of a segment, and its first frame the term and stream id that it has
    to have there. A file that begins with unwritten bytes is the first one of a recording that
    joined its stream late: the recording starts at its first frame.
    """
    segment_length = descriptor.segment_file_length
    start_position, count = descriptor.start_position, 0
    while start_position % descriptor.term_buffer_length == 0 and start_position >= segment_length:
        base_position = start_position - segment_length
        path = archive_dir / segment_file_name(descriptor.recording_id, base_position)
        if not path.exists():
            break
        try:
            start_position = base_position + _first_frame_offset(path, descriptor, base_position)
        except StorageError as error:
            return DetachedSegments(start_position, count, str(error))
        except OSError as error:
            return DetachedSegments(
                start_position, count, f"read failed on {path}: {error.strerror}"
            )
        count += 1
        if start_position != base_position:
            break
    return DetachedSegments(start_position, count)


def _first_frame_offset(path: Path, descriptor: RecordingDescriptor, base_position: int) -> int:
    """Return the offset of the first frame in a segment file, bytes.

    Raises:
        StorageError: the file has no frame in its first term, or one of another recording.
    """
    length = segment_file_size(path)
    if length != descriptor.segment_file_length:
        raise StorageError(
            f"fileLength={length} not equal to segmentLength={descriptor.segment_file_length}:"
            f" cannot attach {path}",
            path,
        )
    with path.open("rb", buffering=0) as file:
        offset = _find_frame(file.fileno(), descriptor.term_buffer_length)
        if offset < 0:
            raise StorageError(
                f"fragment not found in first term of segment {path}: it holds no frame", path
            )
        header = FrameHeader.decode(os.pread(file.fileno(), HEADER_LENGTH, offset))
    for name, found, wanted in (
        ("term id", header.term_id, term_id_at(descriptor, base_position)),
        ("stream id", header.stream_id, descriptor.stream_id),
    ):
        if found != wanted:
            raise StorageError(
                f"{name} does not match: actual={found} expected={wanted} in the first frame of"
                f" {path}",
                path,
            )
    return offset


def _find_frame(file_descriptor: int, term_length: int) -> int:
    """Return the offset of the first frame with a length in a file's first term, or -1."""
    for offset in range(0, term_length, _CHUNK_LENGTH):
        chunk = os.pread(file_descriptor, min(_CHUNK_LENGTH, term_length - offset), offset)
        unwritten = len(chunk) - len(chunk.lstrip(b"\0"))
        begin = unwritten - unwritten % FRAME_ALIGNMENT
        for at in range(begin, len(chunk) - HEADER_LENGTH + 1, FRAME_ALIGNMENT):
            if int.from_bytes(chunk[at : at + 4], "little", signed=True) > 0:
                return offset + at
    return -1


# ---- migrating -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SegmentMove:
    """A segment file under the names of two recordings.

    Attributes:
        source: its name.
        target: its other name.
        blank_length: length of the file without frames that has the other name before, which it
            loses; 0 when there is none.
    """

    source: Path
    target: Path
    blank_length: int = 0

    def begin(self) -> None:
        """Link the file under its other name."""
        if self.blank_length:
            self.target.unlink(missing_ok=True)
        os.link(self.source, self.target)

    def undo(self) -> None:
        """Undo `begin`, also where it has failed half way."""
        self.target.unlink(missing_ok=True)
        if self.blank_length:
            make_blank_segment(self.target, self.blank_length)


def plan_moves(
    archive_dir: Path,
    source: RecordingDescriptor,
    target_recording_id: int,
    target_stop_position: int = NULL_VALUE,
) -> list[SegmentMove]:
    """Return the moves that give all of a recording's segment files to another one.

    Args:
        archive_dir: the directory.
        source: the recording that loses them.
        target_recording_id: the other one.
        target_stop_position: where that ends. The empty next file that a recorder or a start has
            created there is replaced.

    Raises:
        StorageError: a file of the source is missing, or the other one has a file in its place.
            A second name of the very same file does not count: a migration that a crash cut short
            leaves such.
    """
    moves = []
    for base_position in base_positions(source, source.start_position, source.stop_position):
        move = SegmentMove(
            archive_dir / segment_file_name(source.recording_id, base_position),
            archive_dir / segment_file_name(target_recording_id, base_position),
        )
        if base_position == target_stop_position:
            move = replace(move, blank_length=_length_if_blank(move.target))
        if not move.source.exists():
            raise StorageError(
                f"cannot migrate: missing src segment file {move.source}", move.source
            )
        is_in_the_way = move.target.exists() and not move.blank_length
        if is_in_the_way and not move.target.samefile(move.source):
            raise StorageError(
                f"cannot migrate: preexisting dst segment file {move.target}, outside recording "
                f"{target_recording_id}; where a migration that was cut short has left it, first "
                f"`aerotape segments delete {target_recording_id}`; if it is after the end of the "
                "recording, where good frames are if that was lowered, move the file out of "
                "the directory and keep it",
                move.target,
            )
        moves.append(move)
    return moves


def _length_if_blank(path: Path) -> int:
    """Return the length of a file of zeros; 0 when it is missing or holds other bytes."""
    if not path.is_file() or holds_data(path):
        return 0
    return segment_file_size(path)


def begin_moves(moves: Sequence[SegmentMove], archive_dir: Path, *, sync: bool) -> None:
    """Link each file under its new name: all, or none.

    A crash leaves both recordings whole, and the one that was to get the files with some of them
    outside its range.

    Args:
        sync: have the names on storage before this returns.

    Raises:
        StorageError: one could not be given; those before it have been taken back.
    """
    done: list[SegmentMove] = []
    try:
        for move in moves:
            done.append(move)
            if move.blank_length or not move.target.exists():
                move.begin()
        if sync:
            sync_directory(archive_dir)
    except OSError as error:
        undo_moves(done)
        raise StorageError(
            f"cannot migrate segment files in {archive_dir}: {error.strerror}", archive_dir
        ) from error


def undo_moves(moves: Sequence[SegmentMove]) -> None:
    """Undo moves that were begun, as far as possible."""
    for move in moves:
        with contextlib.suppress(OSError):
            move.undo()


def finish_moves(moves: Sequence[SegmentMove]) -> None:
    """Remove the old names, from the last segment on.

    A crash leaves the source without some of its last files; the other recording has them all.

    Raises:
        StorageError: one could not be taken away.
    """
    for move in reversed(moves):
        with StorageErrors(f"migrated, but cannot remove {move.source}", move.source):
            move.source.unlink(missing_ok=True)
