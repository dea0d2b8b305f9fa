"""Segment files: their names, and which one holds a position.

A recording's bytes lie in files of one fixed length, named ``<recordingId>-<basePosition>.rec``,
where the base position is the position in the stream of the file's first byte. The first file
begins on the boundary of the term that holds the start position; the others follow without gaps.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from aerotape.catalog.no_follow import open_no_follow
from aerotape.errors import ConfigurationError, StorageError
from aerotape.records import record

SEGMENT_SUFFIX = ".rec"
# Put behind the name of a segment file that is about to be deleted, by older archives.
DELETE_SUFFIX = ".del"
MIN_SEGMENT_LENGTH_BYTES = 64 * 1024
MAX_SEGMENT_LENGTH_BYTES = 1 << 30
DEFAULT_SEGMENT_LENGTH_BYTES = 128 * 1024 * 1024
FRAME_ALIGNMENT = 32
_BLOCK_LENGTH = 4096
MAX_LONG = (1 << 63) - 1

# No leading zeros or signs: a name must be the one that its two numbers would be given.
_NAME = re.compile(r"(0|[1-9][0-9]{0,18})-(0|[1-9][0-9]{0,18})\.rec")


@record(frozen=True, slots=True)
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
    """Return (recording id, base position), or None when `name` is no segment file's name."""
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


def segment_base_position(
    start_position: int, position: int, term_length: int, segment_length: int
) -> int:
    """Return the base position of the segment file that holds `position`.

    All arguments and the result are bytes; both lengths are powers of two.
    """
    first_base = start_position & -term_length
    return first_base + ((position - first_base) & -segment_length)


def validate_segment_length(segment_length: int, term_length: int | None = None) -> None:
    """Check a segment file length: a power of two from 64 KiB to 1 GiB, at least a term.

    Raises:
        ConfigurationError: it is not.
    """
    name = "aeron.archive.segment.file.length"
    power_of_two = segment_length > 0 and segment_length & (segment_length - 1) == 0
    if not power_of_two or not (
        MIN_SEGMENT_LENGTH_BYTES <= segment_length <= MAX_SEGMENT_LENGTH_BYTES
    ):
        raise ConfigurationError(
            f"segment file length {segment_length} is not a power of two from "
            f"{MIN_SEGMENT_LENGTH_BYTES} to {MAX_SEGMENT_LENGTH_BYTES} bytes",
            name,
        )
    if term_length is not None and segment_length < term_length:
        raise ConfigurationError(
            f"segment file length {segment_length} is less than the stream's term length "
            f"{term_length}: a segment must hold at least one term",
            name,
        )


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


def index_segment_files(archive_dir: Path) -> tuple[dict[int, list[SegmentFile]], list[Path]]:
    """List all segment files of the directory in one pass.

    Returns:
        The files by recording id, each list by ascending base position; and the paths that end
        in ``.rec`` but are no segment file's name.

    Raises:
        StorageError: the directory cannot be read.
    """
    index: dict[int, list[SegmentFile]] = {}
    foreign: list[Path] = []
    for name in file_names(archive_dir):
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
    try:
        status = path.stat()
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}", path) from error
    if not stat.S_ISREG(status.st_mode):
        raise StorageError(f"{path} is not a regular file", path)
    return status.st_size


def open_regular_file(path: Path) -> BinaryIO:
    """Open a file to read from; a pipe of that name would wait for somebody to write to it.

    Raises:
        OSError: it cannot be opened.
        StorageError: it is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StorageError(f"{path} is not a regular file: move it away", path)
    return os.fdopen(descriptor, "rb")


def lacks_blank_segment(path: Path) -> bool:
    """Whether a file is to be made: it is not there, or a crash came while it was being made."""
    try:
        status = path.lstat()
    except OSError:
        return True
    return stat.S_ISREG(status.st_mode) and status.st_size == 0


def make_blank_segment(path: Path, segment_length: int) -> None:
    """Make a segment file without frames, and force it to storage; its name is not (OSError)."""
    with open(path, "ab", opener=open_no_follow) as file:
        file.truncate(segment_length)
        os.fsync(file.fileno())


def is_blank_from(path: Path, offset: int) -> bool:
    """Whether nothing was ever written to a file from `offset` on.

    No file looks like that to a file system that does not know holes: such a one is erased in
    vain, which costs little. A file that is not there is blank.

    Raises:
        StorageError: it cannot be read.
    """
    rest = -offset % _BLOCK_LENGTH
    try:
        with path.open("rb", buffering=0) as file:
            if any(os.pread(file.fileno(), rest, offset)):
                return False
            with contextlib.suppress(OSError):
                os.lseek(file.fileno(), offset + rest, os.SEEK_DATA)
                return False
    except FileNotFoundError:
        return True
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}", path) from error
    return True


def file_names(archive_dir: Path) -> Iterator[str]:
    """Iterate the names of all that is in the directory (StorageError)."""
    try:
        with os.scandir(archive_dir) as entries:
            for entry in entries:
                yield entry.name
    except OSError as error:
        raise StorageError(
            f"cannot list directory {archive_dir}: {error.strerror}", archive_dir
        ) from error
