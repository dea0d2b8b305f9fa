"""Requests that truncate or purge a recording, or move, delete or attach its segment files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.archive.control.feature import Handlers
from aerotape.archive.control.requests.handling import check_known, check_unprotected, respond_later
from aerotape.codecs.generated import archive as codecs

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services


def _truncate_recording(
    services: Services, session: ControlSession, request: codecs.TruncateRecordingRequest
) -> None:
    check_unprotected(services, request.recording_id)
    deletion = services.removals.truncate(request.recording_id, request.position)
    respond_later(services, session, request.correlation_id, deletion.begun())


def _purge_recording(
    services: Services, session: ControlSession, request: codecs.PurgeRecordingRequest
) -> None:
    check_unprotected(services, request.recording_id)
    deletion = services.removals.purge(request.recording_id)
    respond_later(services, session, request.correlation_id, deletion.begun())


def _detach_segments(
    services: Services, session: ControlSession, request: codecs.DetachSegmentsRequest
) -> None:
    check_unprotected(services, request.recording_id)
    services.removals.check_detach(request.recording_id, request.new_start_position)
    services.segments.detach(request.recording_id, request.new_start_position)
    session.send_ok(request.correlation_id)


def _delete_detached_segments(
    services: Services, session: ControlSession, request: codecs.DeleteDetachedSegmentsRequest
) -> None:
    check_known(services, request.recording_id)
    deletion = services.segments.delete_detached(request.recording_id)
    respond_later(services, session, request.correlation_id, deletion.begun())


def _purge_segments(
    services: Services, session: ControlSession, request: codecs.PurgeSegmentsRequest
) -> None:
    check_unprotected(services, request.recording_id)
    deletion = services.removals.purge_segments(request.recording_id, request.new_start_position)
    respond_later(services, session, request.correlation_id, deletion.begun())


def _attach_segments(
    services: Services, session: ControlSession, request: codecs.AttachSegmentsRequest
) -> None:
    check_known(services, request.recording_id)
    attaching = services.segments.attach(request.recording_id)
    respond_later(services, session, request.correlation_id, attaching)


def _migrate_segments(
    services: Services, session: ControlSession, request: codecs.MigrateSegmentsRequest
) -> None:
    for recording_id in (request.src_recording_id, request.dst_recording_id):
        check_unprotected(services, recording_id)
    moving = services.segments.migrate(request.src_recording_id, request.dst_recording_id)
    respond_later(services, session, request.correlation_id, moving)


HANDLERS: Handlers = {
    codecs.TruncateRecordingRequest: _truncate_recording,
    codecs.PurgeRecordingRequest: _purge_recording,
    codecs.DetachSegmentsRequest: _detach_segments,
    codecs.DeleteDetachedSegmentsRequest: _delete_detached_segments,
    codecs.PurgeSegmentsRequest: _purge_segments,
    codecs.AttachSegmentsRequest: _attach_segments,
    codecs.MigrateSegmentsRequest: _migrate_segments,
}
