"""What has to hold for a stopped recording to go on, and what has to go from behind its end.

The checks and their codes are the reference's. An extended recording is written over whatever
stands behind its stop position: what is left of a truncation that was cut short, say. That goes
first, since after a crash in the middle of the extension nothing could tell it from what had been
recorded anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.archive.protocol import ErrorCode
from aerotape.archive.recording.storage_space import Refusal
from aerotape.catalog.descriptor import describe_problem, segment_base
from aerotape.catalog.durability import force_names
from aerotape.catalog.segments import (
    DELETE_SUFFIX,
    is_blank_from,
    list_segment_files,
)
from aerotape.catalog.suspect import erase_tail
from aerotape.errors import StorageError

if TYPE_CHECKING:
    from aerotape._native import Image
    from aerotape.catalog.catalog import Catalog
    from aerotape.catalog.descriptor import RecordingDescriptor


def refuse_request(
    catalog: Catalog,
    recording_id: int,
    stream_id: int,
    *,
    is_recorded: bool,
    deleted_to: int | None,
) -> Refusal | None:
    """Say why a recording cannot be extended as things stand; None when it can.

    Args:
        is_recorded: it is in progress.
        deleted_to: base position of the last of its segments that are being deleted, if any are.
    """
    if not catalog.has_recording(recording_id):
        return ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}"
    descriptor = catalog.descriptor(recording_id)
    cannot = f"recording {recording_id} cannot be extended"
    if stream_id != descriptor.stream_id:
        return ErrorCode.UNKNOWN_RECORDING, (
            f"{cannot} with streamId={stream_id}: it has streamId={descriptor.stream_id}"
        )
    if is_recorded:
        return ErrorCode.ACTIVE_RECORDING, f"{cannot}: it is being recorded"
    if deleted_to is not None and deleted_to >= descriptor.stop_position:
        return ErrorCode.GENERIC, (
            f"{cannot} while segments at its end are being deleted: wait for the DELETE signal"
        )
    problem = describe_problem(descriptor)
    if problem:
        return ErrorCode.GENERIC, f"{cannot}, its descriptor is damaged: {problem}"
    return None


def refuse_image(image: Image, descriptor: RecordingDescriptor) -> Refusal | None:
    """Say why an image cannot go on where a recording has stopped; None when it can."""
    for name, value, wanted in (
        ("join position", image.join_position, descriptor.stop_position),
        ("initial term id", image.initial_term_id, descriptor.initial_term_id),
        ("term length", image.term_buffer_length, descriptor.term_buffer_length),
        ("MTU", image.mtu_length, descriptor.mtu_length),
    ):
        if value != wanted:
            return ErrorCode.INVALID_EXTENSION, (
                f"recording {descriptor.recording_id} cannot be extended by an image with"
                f" {name}={value}: it has {wanted}"
            )
    return None


def clear_behind(archive_dir: Path, descriptor: RecordingDescriptor) -> None:
    """Make the files of a stopped recording end at its stop position.

    Bytes behind it in its last segment become zeros. Segment files further on, also one that
    begins right there, get the name of files that are about to be deleted; blank ones go at once.
    All this is on storage when it returns: a power cut during the extension could bring back what
    no start could tell from what had been recorded anew.

    Raises:
        StorageError: they cannot be changed.
    """
    from aerotape.catalog.own_copy import make_own

    recording_id, end = descriptor.recording_id, descriptor.stop_position
    base = segment_base(descriptor, end)
    is_changed = False
    for segment in list_segment_files(archive_dir, recording_id):
        path = segment.path
        if segment.base_position > base or segment.base_position == end:
            # A blank one too: the recorder would have to read all of it to know.
            _put_aside(path)
            is_changed = True
        elif segment.base_position == base:
            # What is going to be recorded there is not for another recording of the same file.
            make_own(path)
            if not is_blank_from(path, end - base):
                erase_tail(path, end - base)
    if is_changed:
        force_names(archive_dir)


def _put_aside(path: Path) -> None:
    try:
        if is_blank_from(path, 0):
            path.unlink()
        else:
            path.rename(path.with_name(path.name + DELETE_SUFFIX))
    except OSError as error:
        raise StorageError(
            f"cannot take {path} away, which is behind the end of its recording: {error.strerror}",
            path,
        ) from error
