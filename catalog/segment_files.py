"""Segment files: their names, and which one holds a position.

A recording's bytes lie in files of one fixed length, named ``<recordingId>-<basePosition>.rec``,
where the base position is the position in the stream of the file's first byte. The first file
begins on the boundary of the term that holds the start position; the others follow without gaps.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from aerotape.catalog.descriptor import (
    RecordingDescriptor,
    max_position,
    segment_base,
)
from aerotape.catalog.no_follow import open_no_follow
from aerotape.errors import StorageError, StorageErrors
from aerotape.units import MAX_LONG

SEGMENT_SUFFIX = ".rec"
# Appended to the name of a segment file that is about to be deleted, by older archives.
DELETE_SUFFIX = ".del"
_BLOCK_LENGTH = 4096
_LISTED = 5

# No leading zeros or signs: a name must be the one that its two numbers would be given.
_NAME = re.compile(r"(0|[1-9][0-9]{0,18})-(0|[1-9][0-9]{0,18})\.rec")


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment file.

    Attributes:
        path: the file.
        base_position: position in the stream of its first byte.
    """

    path: Path
    base_position: int


def segment_file_name(recording_id: int, base_position: int) -> str:
    """Name the segment file of a recording that begins at `base_position`."""
    return f"{recording_id}-{base_position}{SEGMENT_SUFFIX}"


def parse_segment_file_name(name: str) -> tuple[int, int] | None:
    """Return (recording id, base position), or None when `name` is not a segment file's name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    recording_id, base_position = int(match[1]), int(match[2])
    if recording_id > MAX_LONG or base_position > MAX_LONG:
        return None
    return recording_id, base_position


def parse_any_segment_file_name(name: str) -> tuple[int, int] | None:
    """As `parse_segment_file_name`, also for a segment file that is about to be deleted."""
    return parse_segment_file_name(name.removesuffix(DELETE_SUFFIX))


def list_segment_files(archive_dir: Path, recording_id: int) -> list[SegmentFile]:
    """List the segment files of one recording in the directory, by ascending base position.

    Raises:
        StorageError: the directory cannot be read.
    """
    return _list(archive_dir, recording_id, parse_segment_file_name)


def _list(
    archive_dir: Path, recording_id: int, parse: Callable[[str], tuple[int, int] | None]
) -> list[SegmentFile]:
    prefix = f"{recording_id}-"
    found = [
        SegmentFile(archive_dir / name, parsed[1])
        for name in file_names(archive_dir)
        if name.startswith(prefix) and (parsed := parse(name)) is not None
    ]
    return sorted(found, key=lambda segment: segment.base_position)


def list_files_to_delete(archive_dir: Path, recording_id: int) -> list[SegmentFile]:
    """As `list_segment_files`, with the files that are about to be deleted among them.

    Raises:
        StorageError: the directory cannot be read.
    """
    return _list(archive_dir, recording_id, parse_any_segment_file_name)


def index_segment_files(
    archive_dir: Path, names: Iterable[str] | None = None
) -> tuple[dict[int, list[SegmentFile]], list[Path]]:
    """List all segment files of the directory in one pass.

    Args:
        names: the names of all files in it; None to list a local directory.

    Returns:
        The files by recording id, each list by ascending base position; and the paths that end
        in ``.rec`` but are no segment file's name.

    Raises:
        StorageError: the directory cannot be read.
    """
    index: dict[int, list[SegmentFile]] = {}
    foreign: list[Path] = []
    for name in file_names(archive_dir) if names is None else names:
        if not name.endswith(SEGMENT_SUFFIX):
            continue
        parsed = parse_segment_file_name(name)
        if parsed is None:
            foreign.append(archive_dir / name)
        else:
            index.setdefault(parsed[0], []).append(SegmentFile(archive_dir / name, parsed[1]))
    for segments in index.values():
        segments.sort(key=lambda segment: segment.base_position)
    return index, sorted(foreign)


def segment_file_size(path: Path) -> int:
    """Return the length of a segment file, bytes.

    Raises:
        StorageError: it is not there, or is a directory, pipe or device rather than a file.
    """
    with StorageErrors(f"cannot read {path}", path):
        status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise StorageError(f"{path} is not a regular file", path)
    return status.st_size


def open_regular_file(path: Path) -> BinaryIO:
    """Open a file to read from; opening a pipe of that name would wait for a writer.

    Raises:
        OSError: it cannot be opened.
        StorageError: it is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StorageError(f"{path} is not a regular file: move it away", path)
    return os.fdopen(descriptor, "rb")


def read_whole_file(path: Path, what: str) -> bytes | None:
    """Return the content of a file, None when there is none.

    Args:
        what: the kind of file, for the error.

    Raises:
        StorageError: it cannot be read, or is not a regular file.
    """
    with StorageErrors(f"cannot read {what} {path}", path):
        try:
            with open_regular_file(path) as file:
                return file.read()
        except FileNotFoundError:
            return None
        except MemoryError:
            raise StorageError(f"{what} {path} is too long to be read: remove it", path) from None


def first_segment_base(descriptor: RecordingDescriptor) -> int:
    """Return the base position of a recording's first segment file."""
    return descriptor.start_position & -descriptor.term_buffer_length


def segment_ranges(
    folder: Path, descriptor: RecordingDescriptor, begin: int, end: int
) -> Iterator[tuple[SegmentFile, int, int]]:
    """Iterate the segment files of a range of positions, with its offset and end in each, bytes."""
    position = begin
    while position < end:
        base = segment_base(descriptor, position)
        limit = min(end, base + descriptor.segment_file_length)
        path = folder / segment_file_name(descriptor.recording_id, base)
        yield SegmentFile(path, base), position - base, limit - base
        position = limit


def belongs(descriptor: RecordingDescriptor, base_position: int) -> bool:
    """Whether a segment file of the recording can begin at `base_position`."""
    offset = base_position - first_segment_base(descriptor)
    return offset % descriptor.segment_file_length == 0 and base_position < max_position(descriptor)


def own_segments(
    descriptor: RecordingDescriptor, segments: Sequence[SegmentFile]
) -> list[SegmentFile]:
    """Leave out files that were detached, or that cannot be this recording's."""
    first_base = first_segment_base(descriptor)
    return [
        segment
        for segment in segments
        if segment.base_position >= first_base and belongs(descriptor, segment.base_position)
    ]


def why_none_fits(descriptor: RecordingDescriptor, segments: Sequence[SegmentFile]) -> str:
    """Say what is wrong where files are named for a recording and none can be its own; else "".

    Only a recording that is known to be empty may begin where the last of its files has ended.

    Args:
        descriptor: the recording; no recorder is at work on it.
        segments: the files that are named for it, ascending.
    """
    if not segments or own_segments(descriptor, segments):
        return ""
    start, last = descriptor.start_position, segments[-1]
    next_base = last.base_position + descriptor.segment_file_length
    if descriptor.stop_position == start and next_base == first_segment_base(descriptor):
        return ""
    return (
        f"no segment file of a recording that starts at position {start} can be one of the "
        f"{len(segments)} that are there, the last of which is {last.path.name}: is its start "
        "position right?"
    )


def missing_base_positions(
    descriptor: RecordingDescriptor,
    segments: Sequence[SegmentFile],
    stop_position: int,
) -> tuple[int, list[int]]:
    """Find which segment files are not there between a recording's start and `stop_position`.

    Returns:
        How many, and the base positions of the first five. Cheap for any stop position, for a
        damaged one may lie very far away.
    """
    if stop_position <= descriptor.start_position:
        return 0, []
    last = segment_base(descriptor, stop_position - 1)
    bases = range(first_segment_base(descriptor), last + 1, descriptor.segment_file_length)
    present = {segment.base_position for segment in segments if segment.base_position in bases}
    missing = (base for base in bases if base not in present)
    return len(bases) - len(present), list(itertools.islice(missing, _LISTED))


def describe_missing(count: int, missing: Sequence[int]) -> str:
    """Name the missing segment files, from the result of `missing_base_positions`."""
    return f"{count} segment files are missing, with base positions {listed(missing, count)}"


def listed(positions: Sequence[int], count: int) -> str:
    """List the first few of `count` positions."""
    few = positions[:_LISTED]
    return ", ".join(map(str, few)) + (" …" if count > len(few) else "")


def lacks_blank_segment(path: Path) -> bool:
    """Whether a file must be created: it does not exist, or has no bytes because of a crash."""
    try:
        status = path.lstat()
    except OSError:
        return True
    return stat.S_ISREG(status.st_mode) and status.st_size == 0


def make_blank_segment(path: Path, segment_length: int) -> None:
    """Create a segment file without frames. Its data is forced, its name is not (OSError)."""
    with open(path, "ab", opener=open_no_follow) as file:
        file.truncate(segment_length)
        os.fsync(file.fileno())


def is_blank_from(path: Path, offset: int) -> bool:
    """Whether nothing was ever written to a file from `offset` on.

    False for a file of zeros on a file system without holes: its caller then overwrites zeros with
    zeros. True for a file that does not exist.

    Raises:
        StorageError: it cannot be read.
    """
    rest = -offset % _BLOCK_LENGTH
    with (
        StorageErrors(f"cannot read {path}", path),
        contextlib.suppress(FileNotFoundError),
        path.open("rb", buffering=0) as file,
    ):
        if any(os.pread(file.fileno(), rest, offset)):
            return False
        with contextlib.suppress(OSError):
            os.lseek(file.fileno(), offset + rest, os.SEEK_DATA)
            return False
    return True


def file_names(archive_dir: Path) -> Iterator[str]:
    """Iterate the names of all that is in the directory (StorageError)."""
    errors = StorageErrors(f"cannot list directory {archive_dir}", archive_dir)
    with errors, os.scandir(archive_dir) as entries:
        for entry in entries:
            yield entry.name
