"""Checks of whole segment files by native threads: their arguments and results.

Shared by verify, repair and export, which differ in their reactions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape import _native
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.segment_files import SegmentFile
from aerotape.errors import StorageError
from aerotape.frame_header import ChecksumName, max_frame_length

if TYPE_CHECKING:
    from aerotape._native import SegmentCheck

ByteProgress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in total."""


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """A segment file to be checked.

    Attributes:
        path: the file.
        start_offset: where its first frame begins, bytes.
        end_offset: where its frames must end, bytes.
        limit: offset up to which data after the end is searched for; none when it is not larger.
        base_position: position in the stream of its first byte.
        term_length: of the stream, bytes.
        initial_term_id: of the stream.
        stream_id: of the stream.
        max_frame_length: of a data frame, bytes.
        session_id: of the recording's last session, which frames without a checksum hold.
    """

    path: Path
    start_offset: int
    end_offset: int
    limit: int
    base_position: int
    term_length: int
    initial_term_id: int
    stream_id: int
    max_frame_length: int
    session_id: int


def segment_task(
    descriptor: RecordingDescriptor,
    segment: SegmentFile,
    end_position: int,
    *,
    past_end: bool = False,
) -> SegmentTask:
    """Describe the check of one of a recording's segments.

    Args:
        descriptor: the recording.
        segment: the file.
        end_position: where the recording ends.
        past_end: search for data after the end in this file, too.
    """
    length = descriptor.segment_file_length
    start = max(descriptor.start_position - segment.base_position, 0)
    end = max(min(end_position - segment.base_position, length), start)
    return SegmentTask(
        path=segment.path,
        start_offset=start,
        end_offset=end,
        limit=length if past_end else end,
        base_position=segment.base_position,
        term_length=descriptor.term_buffer_length,
        initial_term_id=descriptor.initial_term_id,
        stream_id=descriptor.stream_id,
        max_frame_length=max_frame_length(descriptor.mtu_length),
        session_id=descriptor.session_id,
    )


def check_segments(
    tasks: Sequence[SegmentTask],
    checksum: ChecksumName = "none",
    progress: ByteProgress | None = None,
) -> list[SegmentCheck]:
    """Check segment files on all processors; a file that cannot be read is an `error` of its check.

    Args:
        tasks: what to check.
        checksum: checksum of data frames, "none" to check none.
        progress: called some times a second.

    Returns:
        The results, in the order of the tasks.
    """
    total = sum(task.end_offset - task.start_offset for task in tasks)
    report = progress or (lambda done, of: None)
    return _native.check_segments(
        list(tasks), checksum=checksum, progress=lambda done: report(done, total)
    )


def check_recording(
    descriptor: RecordingDescriptor,
    segments: Sequence[SegmentFile],
    end_position: int,
    checksum: ChecksumName = "none",
    progress: ByteProgress | None = None,
) -> list[tuple[SegmentTask, SegmentCheck]]:
    """Check all segments of a recording up to `end_position` (StorageError)."""
    tasks = [
        segment_task(
            descriptor, segment, end_position, past_end=_holds(descriptor, segment, end_position)
        )
        for segment in segments
    ]
    checks = check_segments(tasks, checksum, progress)
    for task, check in zip(tasks, checks, strict=True):
        if check.error:
            raise StorageError(f"cannot read {task.path}: {check.error}", task.path)
    return list(zip(tasks, checks, strict=True))


def _holds(descriptor: RecordingDescriptor, segment: SegmentFile, position: int) -> bool:
    return 0 <= position - segment.base_position < descriptor.segment_file_length
