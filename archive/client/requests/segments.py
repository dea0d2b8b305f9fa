"""Requests that detach, delete, attach and migrate the segment files of a recording.

A recording is stored in segment files of one length. Its start position may be moved to the start
of any of them: the preceding files are then *detached*, and stay in the directory until they are
deleted, moved away, or attached again. `segment_base_position` returns where a segment begins.
"""

from __future__ import annotations

from aerotape.archive.client import arguments
from aerotape.archive.client.requests.request import Call, nothing, relevant_id
from aerotape.codecs.generated import archive as codecs


def detach_segments(recording_id: int, new_start_position: int) -> Call[None]:
    """Move the start position of a recording; the files preceding it stay in the directory.

    Args:
        new_start_position: the beginning of a segment, bytes.

    Raises:
        UnknownRecordingError: there is no such recording.
        InvalidPositionError: no segment begins there, it precedes the start position, or replays
            or the recording itself have not reached it.
    """
    request = codecs.DetachSegmentsRequest(
        recording_id=arguments.natural("recording_id", recording_id),
        new_start_position=arguments.natural("new_start_position", new_start_position),
    )
    what = f"detach the segments of recording {recording_id} before {new_start_position}"
    return Call(request, what, nothing)


def delete_detached_segments(recording_id: int) -> Call[int]:
    """Delete the files of a recording that have been detached.

    Returns:
        The number of files to be deleted; a DELETE signal reports the end.

    Raises:
        UnknownRecordingError: there is no such recording.
    """
    request = codecs.DeleteDetachedSegmentsRequest(
        recording_id=arguments.natural("recording_id", recording_id)
    )
    return Call(request, f"delete the detached segments of recording {recording_id}", relevant_id)


def purge_segments(recording_id: int, new_start_position: int) -> Call[int]:
    """Move the start position of a recording and delete the preceding files.

    Args:
        new_start_position: as in `detach_segments`, with the same errors.

    Returns:
        The number of files to be deleted; a DELETE signal reports the end.
    """
    request = codecs.PurgeSegmentsRequest(
        recording_id=arguments.natural("recording_id", recording_id),
        new_start_position=arguments.natural("new_start_position", new_start_position),
    )
    what = f"purge the segments of recording {recording_id} before {new_start_position}"
    return Call(request, what, relevant_id)


def attach_segments(recording_id: int) -> Call[int]:
    """Move the start position of a recording back to its earliest detached file.

    Returns:
        How many files were attached.

    Raises:
        UnknownRecordingError: there is no such recording.
        ArchiveError: a file does not belong to the recording.
    """
    request = codecs.AttachSegmentsRequest(
        recording_id=arguments.natural("recording_id", recording_id)
    )
    return Call(request, f"attach the segments of recording {recording_id}", relevant_id)


def migrate_segments(src_recording_id: int, dst_recording_id: int) -> Call[int]:
    """Move the files of one recording to the front or the end of another.

    Both must have stopped, meet at a segment's boundary, and agree on initial term id, stream
    id, and the lengths of terms, segments and MTU. The source is left empty.

    Returns:
        How many files were moved.

    Raises:
        UnknownRecordingError: there is no such recording.
        ArchiveError: the source has not stopped, or the two do not fit together.
    """
    request = codecs.MigrateSegmentsRequest(
        src_recording_id=arguments.natural("src_recording_id", src_recording_id),
        dst_recording_id=arguments.natural("dst_recording_id", dst_recording_id),
    )
    what = f"migrate the segments of recording {src_recording_id} to {dst_recording_id}"
    return Call(request, what, relevant_id)
