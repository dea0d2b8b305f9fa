"""Truncation of a recording: its checks, the end of the last segment, the files to delete.

The order makes a crash harmless: first the stop position is set, then files are deleted, the last
first. Data past it is removed when the recording is truncated again, extended or purged.
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
        ArchiveError: it is refused, with the reference's error code.
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
            f"cannot truncate recording {recording_id}, its descriptor is damaged: {problem}"
        )
    if not start <= position <= stop or position % FRAME_ALIGNMENT:
        raise ArchiveError(
            f"invalid position {position}: start={start} stop={stop} alignment={FRAME_ALIGNMENT},"
            f" recording {recording_id} cannot be truncated there",
            ErrorCode.INVALID_POSITION,
        )


def check_frame(archive_dir: Path, descriptor: RecordingDescriptor, position: int) -> None:
    """Check that a frame begins at the new stop position, after `check_truncation`.

    Raises:
        ArchiveError: no frame begins there.
        StorageError: the segment file cannot be read.
    """
    base = segment_base(descriptor, position)
    if position in (descriptor.start_position, descriptor.stop_position, base):
        return
    path, offset = archive_dir / segment_file_name(descriptor.recording_id, base), position - base
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
            f" offset {offset}"
        )


def cut_back(archive_dir: Path, descriptor: RecordingDescriptor, position: int) -> list[Path]:
    """Fill the last segment with zeros from the new stop position.

    Args:
        descriptor: the recording before the truncation.

    Returns:
        The segment files to delete, in that order.

    Raises:
        StorageError: files cannot be listed, read or changed.
    """
    recording_id = descriptor.recording_id
    if position == descriptor.start_position:
        everything = list_files_to_delete(archive_dir, recording_id)
        return [each.path for each in reversed(everything)]
    base = segment_base(descriptor, position)
    next_base = base if position == base else base + descriptor.segment_file_length
    # Also those past the stop position, which an incomplete truncation has left.
    segments = list_segment_files(archive_dir, recording_id)
    bases = {each.base_position for each in segments if each.base_position >= next_base}
    last_base = segment_base(descriptor, descriptor.stop_position)
    if last_base >= next_base:
        # Counted even if missing, as it may be when the recording ends at its boundary.
        bases.add(last_base)
    if position > base:
        path = archive_dir / segment_file_name(recording_id, base)
        if not is_blank_from(path, position - base):
            erase_tail(path, position - base)
    return [
        archive_dir / segment_file_name(recording_id, each) for each in sorted(bases, reverse=True)
    ]
