"""The stop position of a recording without one whose segment files are in remote storage.

`aerotape.catalog.recovery.stop_position` decides. Reading a whole segment would take long, so the
last written term is searched for, by the header at each term's start, and judged as if it were a
recording by itself, in an unnamed copy of the fetched bytes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.recovery.stop_position import find_recording_end, walk
from aerotape.catalog.remote.object_folder import ObjectFile, ObjectFolder
from aerotape.catalog.segment_files import SegmentFile
from aerotape.errors import StorageError
from aerotape.frame_header import HEADER_LENGTH

_CHUNK_LENGTH: Final = 4 << 20


def find_remote_end(
    folder: ObjectFolder, descriptor: RecordingDescriptor, segments: Sequence[SegmentFile]
) -> int:
    """Return the position after the last frame that is provably whole.

    Args:
        folder: the archive directory.
        descriptor: a recording without a stop position.
        segments: its segment files, ascending.

    Raises:
        StorageError: a file cannot be read, or was removed after it was listed.
    """
    for index in reversed(range(len(segments))):
        segment = segments[index]
        with _opened(folder, segment) as file:
            offset = _last_written_term(file, descriptor, segment)
            if offset is not None:
                return _end_in_term(file, descriptor, segment, offset)
        before = segment.base_position - descriptor.segment_file_length
        if index == 0 or segments[index - 1].base_position != before:
            return max(descriptor.start_position, segment.base_position)
        # A segment without frames counts only after a full one, which shows the end.
    return descriptor.start_position


@contextmanager
def _opened(folder: ObjectFolder, segment: SegmentFile) -> Iterator[ObjectFile]:
    try:
        with folder.open(segment.path.name) as file:
            yield file
    except FileNotFoundError:
        raise StorageError(
            f"cannot read {segment.path}: it is gone since the directory was listed", segment.path
        ) from None


def _last_written_term(
    file: ObjectFile, descriptor: RecordingDescriptor, segment: SegmentFile
) -> int | None:
    """Return the offset of the last term that has a frame at its start, None when none has.

    Terms are written in order, so a binary search finds it.
    """
    term = descriptor.term_buffer_length
    length = min(file.length, descriptor.segment_file_length)

    def is_written(index: int) -> bool:
        at = max(index * term, descriptor.start_position - segment.base_position)
        return any(file.read_at(at, 4))

    low, high = 0, -(-length // term)
    while low < high:
        middle = (low + high) // 2
        if is_written(middle):
            low = middle + 1
        else:
            high = middle
    return None if low == 0 else (low - 1) * term


def _end_in_term(
    file: ObjectFile, descriptor: RecordingDescriptor, segment: SegmentFile, offset: int
) -> int:
    """Find the end of a recording that is known to end in the term at `offset`, or with it."""
    term = descriptor.term_buffer_length
    base = segment.base_position + offset
    available = max(0, min(term, file.length - offset))
    alone = replace(
        descriptor,
        start_position=max(descriptor.start_position, base),
        segment_file_length=term,
    )
    with unnamed_file(available) as (number, path):
        copy = SegmentFile(path, base)
        fetched = 0
        while fetched < available:
            data = file.read_at(offset + fetched, min(_CHUNK_LENGTH, available - fetched))
            if not data:
                break
            os.pwrite(number, data, fetched)
            fetched += len(data)
            if fetched >= HEADER_LENGTH and walk(alone, copy, limit=fetched).end == "unwritten":
                break
        return find_recording_end(alone, [copy]).position


@contextmanager
def unnamed_file(length: int) -> Iterator[tuple[int, Path]]:
    """Create a sparse file without a name.

    Yields:
        Its descriptor, and a path under which this process can open it.
    """
    with tempfile.TemporaryFile() as file:
        file.truncate(length)
        yield file.fileno(), Path(f"/proc/self/fd/{file.fileno()}")
