"""What goes when a recording is cut back to a position: files, and the rest of the last segment.

The order makes a crash harmless. The stop position comes first; what then stands behind it is
nobody's, and goes when the recording is truncated again, extended or purged. Files go last first.
"""

from __future__ import annotations

import os
from pathlib import Path

from aerotape.catalog.descriptor import RecordingDescriptor, describe_problem, segment_base
from aerotape.catalog.recovery.quarantine import erase_tail
from aerotape.catalog.segment_files import (
    is_blank_from,
    list_files_to_delete,
    list_segment_files,
    segment_file_name,
)
from aerotape.errors import ArchiveError, StorageError
from aerotape.frame_header import FRAME_ALIGNMENT, HEADER_LENGTH, FrameHeader, is_frame_at
from aerotape.protocol import ErrorCode


def check_truncation(descriptor: RecordingDescriptor, position: int) -> None:
    """Check a truncation against the catalog as the reference does.

    Raises:
        ArchiveError: it cannot be, with the reference's error code.
    """
    start, stop = descriptor.start_position, descriptor.stop_position
    recording_id = descriptor.recording_id
    if descriptor.is_active:
        raise ArchiveError(
            f"cannot truncate active recording {recording_id}: it has no stop position",
            ErrorCode.ACTIVE_RECORDING,
        )
    problem = describe_problem(descriptor)
    if problem:
        raise ArchiveError(
            f"cannot truncate recording {recording_id}, its descriptor is damaged: {problem}",
            ErrorCode.GENERIC,
        )
    if not start <= position <= stop or position % FRAME_ALIGNMENT:
        raise ArchiveError(
            f"invalid position {position}: start={start} stop={stop} alignment={FRAME_ALIGNMENT},"
            f" recording {recording_id} cannot be truncated there",
            ErrorCode.INVALID_POSITION,
        )


def check_frame(archive_dir: Path, descriptor: RecordingDescriptor, position: int) -> None:
    """Check that a frame begins where a recording is to end, the rest having been checked.

    Raises:
        ArchiveError: none does.
        StorageError: the segment file cannot be read.
    """
    base = segment_base(descriptor, position)
    if position not in (descriptor.start_position, descriptor.stop_position, base):
        path = archive_dir / segment_file_name(descriptor.recording_id, base)
        _check_frame(path, position - base, descriptor, position)


def cut_back(archive_dir: Path, descriptor: RecordingDescriptor, position: int) -> list[Path]:
    """Turn what stands in the last segment behind the new end into zeros.

    Args:
        descriptor: the recording as it was before.

    Returns:
        The segment files further on, which are to be deleted in that order.

    Raises:
        StorageError: files cannot be listed, read or changed.
    """
    recording_id = descriptor.recording_id
    if position == descriptor.start_position:
        everything = list_files_to_delete(archive_dir, recording_id)
        return [each.path for each in reversed(everything)]
    base = segment_base(descriptor, position)
    behind = base if position == base else base + descriptor.segment_file_length
    # Also those behind the stop position: a truncation that was cut short has left them.
    segments = list_segment_files(archive_dir, recording_id)
    bases = {each.base_position for each in segments if each.base_position >= behind}
    last_base = segment_base(descriptor, descriptor.stop_position)
    if last_base >= behind:
        # Counted though it may not be there: where the recording ends on its boundary it is empty.
        bases.add(last_base)
    if position > base:
        path = archive_dir / segment_file_name(recording_id, base)
        if not is_blank_from(path, position - base):
            erase_tail(path, position - base)
    return [
        archive_dir / segment_file_name(recording_id, each) for each in sorted(bases, reverse=True)
    ]


def _check_frame(path: Path, offset: int, descriptor: RecordingDescriptor, position: int) -> None:
    try:
        with path.open("rb", buffering=0) as file:
            header = os.pread(file.fileno(), HEADER_LENGTH, offset)
    except OSError as error:
        raise StorageError(f"cannot read segment file {path}: {error.strerror}", path) from error
    if len(header) < HEADER_LENGTH:
        raise StorageError(f"segment file {path} ends before offset {offset}", path)
    if not is_frame_at(FrameHeader.decode(header), descriptor, position):
        raise ArchiveError(
            f"{position} position not aligned to a data header: recording"
            f" {descriptor.recording_id} cannot be truncated to position={position}, in {path} at"
            f" offset {offset}",
            ErrorCode.GENERIC,
        )
