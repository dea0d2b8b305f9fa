"""Conditions for recording and extending, and the files of a recording before it is extended.

The checks and their codes are the reference's. An extended recording overwrites data after its
stop position: the rest of an interrupted truncation, or frames after a stop position that `verify`
has lowered. That data is quarantined first, because after a crash during the extension it could not
be distinguished from new frames.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.archive.recording.storage import Refusal
from aerotape.catalog.descriptor import describe_problem, segment_base
from aerotape.catalog.durability import force_names
from aerotape.catalog.forcing import force_segments
from aerotape.catalog.segment_files import list_segment_files
from aerotape.catalog.time_index.file import Provenance
from aerotape.catalog.time_index_upkeep import prepare_extension
from aerotape.clock import epoch_ms
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from aerotape._native import Image
    from aerotape.archive.recording.recordings import Recordings
    from aerotape.archive.recording.subscriptions import RecordedSubscription
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.catalog.file.catalog import Catalog

LOGGER = logging.getLogger(__name__)


def too_many(count: int, limit: int) -> Refusal | None:
    """Return the refusal to add a recording to `count` others; None when one can be added."""
    if count < limit:
        return None
    return (
        ErrorCode.MAX_RECORDINGS,
        f"max concurrent recordings reached at {limit}: stop one, or raise"
        " aeron.archive.max.concurrent.recordings",
    )


def refuse_request(
    catalog: Catalog,
    recording_id: int,
    stream_id: int,
    *,
    is_recorded: bool,
    deleted_to: int | None,
) -> Refusal | None:
    """Return the refusal to extend a recording now; None when it can be extended.

    Args:
        is_recorded: it is in progress.
        deleted_to: base position of the last of its segments that is being deleted, if any.
    """
    if not catalog.has_recording(recording_id):
        return ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}"
    descriptor = catalog.descriptor(recording_id)
    cannot = f"cannot extend recording {recording_id}"
    if stream_id != descriptor.stream_id:
        return ErrorCode.UNKNOWN_RECORDING, (
            f"{cannot} with streamId={stream_id} for existing streamId={descriptor.stream_id}"
        )
    if is_recorded:
        return ErrorCode.ACTIVE_RECORDING, f"cannot extend active recording {recording_id}"
    if deleted_to is not None and deleted_to >= descriptor.stop_position:
        return ErrorCode.GENERIC, (
            f"{cannot} due to an outstanding delete operation: wait for the DELETE signal"
        )
    problem = describe_problem(descriptor)
    if problem:
        return ErrorCode.GENERIC, f"{cannot}, its descriptor is damaged: {problem}"
    return None


def refuse_image(image: Image, descriptor: RecordingDescriptor) -> Refusal | None:
    """Return the refusal to extend a recording by an image; None when it can be extended."""
    for name, value, wanted_name, wanted in (
        ("joinPosition", image.join_position, "stopPosition", descriptor.stop_position),
        ("initialTermId", image.initial_term_id, "initialTermId", descriptor.initial_term_id),
        (
            "termBufferLength",
            image.term_buffer_length,
            "termBufferLength",
            descriptor.term_buffer_length,
        ),
        ("mtuLength", image.mtu_length, "mtuLength", descriptor.mtu_length),
    ):
        if value != wanted:
            return ErrorCode.INVALID_EXTENSION, (
                f"cannot extend recording {descriptor.recording_id}"
                f" image.{name}={value} != rec.{wanted_name}={wanted}"
            )
    return None


def preparation(
    recordings: Recordings, subscription: RecordedSubscription, image: Image, recording_id: int
) -> Callable[[], None]:
    """Return a call that prepares the files of a recording, which have to end at its stop position.

    It may be made in any thread, and raises StorageError.
    """
    archive_dir, entry = recordings.archive_dir, recordings.catalog.entry(recording_id)
    has_time_index = bool(recordings.config.time_index_interval_ns)
    extended = replace(
        Provenance.of(entry),
        control_session_id=subscription.observer.session_id,
        correlation_id=subscription.observer.correlation_id,
        session_id=image.session_id,
    )
    now_ms = epoch_ms()

    def prepare() -> None:
        for moved in clear_stale_tail(archive_dir, entry.descriptor, now_ms):
            LOGGER.warning("recording %d is extended: %s", recording_id, moved)
        if subscription.durability is not None:
            # What precedes the extension is counted as durable.
            force_segments(archive_dir, recording_id)
        problem = prepare_extension(archive_dir, entry, extended) if has_time_index else ""
        if problem:
            LOGGER.warning("recording %d: %s", recording_id, problem)

    return prepare


def clear_stale_tail(archive_dir: Path, descriptor: RecordingDescriptor, now_ms: int) -> list[str]:
    """Remove the data after the stop position of a stopped recording.

    Bytes after it in its last segment become zeros. Segment files at or after it are removed. What
    is not zero is copied to quarantine first. All changes are durable on return, so that a power
    cut during the extension cannot bring old frames back.

    Args:
        now_ms: epoch milliseconds.

    Returns:
        A text for each quarantined piece; usually empty.

    Raises:
        StorageError: files cannot be changed or quarantined; then nothing is lost.
    """
    from aerotape.catalog.recovery.stale_tail import StaleTail
    from aerotape.catalog.segment.hard_links import break_hard_link

    recording_id, end = descriptor.recording_id, descriptor.stop_position
    base = segment_base(descriptor, end)
    tail = StaleTail(archive_dir, recording_id, end, now_ms)
    quarantined = []
    is_changed = False
    for segment in list_segment_files(archive_dir, recording_id):
        path = segment.path
        if segment.base_position > base or segment.base_position == end:
            # A blank one too: to find out, the recorder would have to read all of it.
            quarantined.append(tail.remove_segment(path, segment.base_position))
            is_changed = True
        elif segment.base_position == base:
            quarantined.append(tail.clear_tail(path, base))
            # Another recording may share the file by a hard link.
            break_hard_link(path)
    if is_changed:
        force_names(archive_dir)
    return [each for each in quarantined if each]
