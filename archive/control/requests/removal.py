"""Requests that truncate or purge a recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from aerotape.archive.control.requests.handling import (
    Handler,
    Handlers,
    check_known,
    check_no_ledger,
)
from aerotape.archive.recording.truncation import check_frame, check_truncation, cut_back
from aerotape.catalog.durability import force_names
from aerotape.catalog.indexes import remove_indexes
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.recovery.quarantine import clear_marks
from aerotape.catalog.segment.placement import sort_out
from aerotape.catalog.segment_files import list_files_to_delete
from aerotape.catalog.time_index.upkeep import cut_after
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ArchiveError, StorageError
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services
    from aerotape.archive.requester import Requester
    from aerotape.catalog.descriptor import RecordingDescriptor


def _of_client(handler: Handler) -> Handler:
    """Return the handler for clients, which may not change the recording of a ledger."""

    def handle(services: Services, session: ControlSession, request: Any) -> None:
        check_no_ledger(services, request.recording_id)
        handler(services, session, request)

    return handle


def truncate_recording(
    services: Services, session: Requester, request: codecs.TruncateRecordingRequest
) -> None:
    """Truncate a recording, also that of a ledger; respond as to a client."""
    correlation_id, recording_id = request.correlation_id, request.recording_id
    check_known(services, recording_id)
    descriptor = services.catalog.descriptor(recording_id)
    check_truncation(descriptor, request.position)
    if not services.deletions.allows(session, correlation_id, recording_id):
        return
    archive_dir, position = services.archive_dir, request.position
    check_frame(archive_dir, descriptor, position)
    services.catalog.set_stop_position(recording_id, position)
    services.deletions.delete(
        session,
        correlation_id,
        recording_id,
        lambda: _cut_back(archive_dir, descriptor, position),
        is_ready=services.replays.end_all(recording_id),
        # An extension must not meet files that a power cut has brought back.
        finish=lambda: force_names(archive_dir),
        end_position=descriptor.stop_position,
    )


def purge_recording(
    services: Services, session: Requester, request: codecs.PurgeRecordingRequest
) -> None:
    """Purge a recording, also that of a ledger; respond as to a client."""
    correlation_id, recording_id = request.correlation_id, request.recording_id
    check_known(services, recording_id)
    in_use = _why_in_use(services, recording_id)
    if in_use:
        raise ArchiveError(in_use, ErrorCode.ACTIVE_RECORDING)
    if not services.deletions.allows(session, correlation_id, recording_id):
        return
    archive_dir = services.archive_dir
    descriptor = services.catalog.entry(recording_id).descriptor
    left: list[str] = []

    def find_files() -> list[Path]:
        files = list_files_to_delete(archive_dir, recording_id)
        own, others = sort_out(descriptor, files[::-1])
        left.extend(others)
        return own

    services.catalog.change_state(recording_id, RecordingState.DELETED)
    services.deletions.delete(
        session,
        correlation_id,
        recording_id,
        find_files,
        finish=lambda: _forget(archive_dir, recording_id, left),
    )


def _why_in_use(services: Services, recording_id: int) -> str:
    """Return why a recording cannot be purged; empty when it can."""
    # Includes replays to another archive that replicates it.
    if services.replays.is_replayed(recording_id):
        return f"cannot purge recording with active replay {recording_id}"
    # Not by its stop position: a damaged recording without one can be purged.
    if services.recordings.session(recording_id) is not None:
        return f"cannot purge active recording {recording_id}"
    # It may have stopped while the source is queried.
    if recording_id in services.replications.recording_ids():
        return (
            f"cannot purge active recording {recording_id}: it is being replicated to;"
            " stop the replication"
        )
    return ""


def _cut_back(archive_dir: Path, descriptor: RecordingDescriptor, position: int) -> list[Path]:
    paths = cut_back(archive_dir, descriptor, position)
    cut_after(archive_dir, descriptor.recording_id, position)
    return paths


def _forget(archive_dir: Path, recording_id: int, left: list[str]) -> None:
    clear_marks(archive_dir, recording_id)
    remove_indexes(archive_dir, recording_id)
    if left:
        raise StorageError("; ".join(left), archive_dir)


HANDLERS: Handlers = {
    codecs.TruncateRecordingRequest: _of_client(truncate_recording),
    codecs.PurgeRecordingRequest: _of_client(purge_recording),
}
