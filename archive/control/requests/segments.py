"""Requests that detach, delete, attach and migrate the segment files of recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.archive.control.requests.handling import Handlers, check_known, check_no_ledger
from aerotape.catalog.descriptor import segment_base
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ArchiveError
from aerotape.protocol import NULL_POSITION

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services


def _check_detach(services: Services, recording_id: int, position: int) -> None:
    """Refuse a new start position that is invalid or beyond data in use.

    Raises:
        ArchiveError: it is not a segment boundary, not after the first segment, or after the
            segment that is written to or replayed; or the recording is that of a ledger.
    """
    check_no_ledger(services, recording_id)
    descriptor = services.segments.descriptor(recording_id)

    def refuse(problem: str) -> ArchiveError:
        return ArchiveError(f"{problem} for recording {recording_id}")

    if position != segment_base(descriptor, position):
        raise refuse(f"invalid segment start: newStartPosition={position}")
    lower_bound = (
        segment_base(descriptor, descriptor.start_position) + descriptor.segment_file_length
    )
    if position < lower_bound:
        raise refuse(f"invalid detach: newStartPosition={position} lowerBound={lower_bound}")
    end_position = descriptor.stop_position
    if end_position == NULL_POSITION:
        recording = services.recordings.session(recording_id)
        if recording is None:
            raise refuse(
                f"invalid detach: newStartPosition={position} cannot be checked, the stop position"
                " is not known"
            )
        end_position = recording.position
    upper_bound = segment_base(descriptor, end_position)
    if position > upper_bound:
        raise refuse(
            f"invalid detach: in use, newStartPosition={position} upperBound={upper_bound}"
        )
    replay = services.replays.lowest(recording_id)
    if replay is not None and position > segment_base(descriptor, replay.position):
        raise refuse(
            f"invalid detach: replay in progress -  state={replay.state}"
            f" newStartPosition={position}"
            f" upperBound={segment_base(descriptor, replay.position)}"
            f" sessionId={replay.session_id}"
            f" streamId={replay.request.stream_id} channel={replay.channel}"
        )


def _detach_segments(
    services: Services, session: ControlSession, request: codecs.DetachSegmentsRequest
) -> None:
    _check_detach(services, request.recording_id, request.new_start_position)
    services.segments.detach(request.recording_id, request.new_start_position)
    session.send_ok(request.correlation_id)


def _delete_detached_segments(
    services: Services, session: ControlSession, request: codecs.DeleteDetachedSegmentsRequest
) -> None:
    check_known(services, request.recording_id)
    services.segments.delete_detached(session, request.correlation_id, request.recording_id)


def _purge_segments(
    services: Services, session: ControlSession, request: codecs.PurgeSegmentsRequest
) -> None:
    _check_detach(services, request.recording_id, request.new_start_position)
    services.segments.purge(
        session, request.correlation_id, request.recording_id, request.new_start_position
    )


def _attach_segments(
    services: Services, session: ControlSession, request: codecs.AttachSegmentsRequest
) -> None:
    check_known(services, request.recording_id)
    services.segments.attach(session, request.correlation_id, request.recording_id)


def _migrate_segments(
    services: Services, session: ControlSession, request: codecs.MigrateSegmentsRequest
) -> None:
    for recording_id in (request.src_recording_id, request.dst_recording_id):
        check_no_ledger(services, recording_id)
    services.segments.migrate(
        session, request.correlation_id, request.src_recording_id, request.dst_recording_id
    )


HANDLERS: Handlers = {
    codecs.DetachSegmentsRequest: _detach_segments,
    codecs.DeleteDetachedSegmentsRequest: _delete_detached_segments,
    codecs.PurgeSegmentsRequest: _purge_segments,
    codecs.AttachSegmentsRequest: _attach_segments,
    codecs.MigrateSegmentsRequest: _migrate_segments,
}
