"""The control requests that the archive answers: one handler each, in one table.

To add a request is to write its handler and enter it in `HANDLERS`. A handler is called for a
session that is active and that owns the image on which the request came; it answers at once or has
someone else answer. Requests of the schema that are not in the table are answered with an error
that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from aerotape.archive.listing import RangeListing, SingleListing
from aerotape.archive.protocol import NULL_POSITION, ErrorCode
from aerotape.codecs import archive as codecs
from aerotape.codecs.runtime import Message
from aerotape.errors import AerotapeError
from aerotape.replay.request import ReplayRequest

if TYPE_CHECKING:
    from aerotape.archive.conductor import Conductor
    from aerotape.archive.control_session import ControlSession

Handler = Callable[["Conductor", "ControlSession", Any], None]


def _archive_id(
    conductor: Conductor, session: ControlSession, request: codecs.ArchiveIdRequest
) -> None:
    session.send_ok(request.correlation_id, conductor.archive_id)


def _keep_alive(
    conductor: Conductor, session: ControlSession, request: codecs.KeepAliveRequest
) -> None:
    """Nothing to do or to answer: that it came was what it is for."""


# ---- recording -----------------------------------------------------------------------------------


def _start_recording(
    conductor: Conductor, session: ControlSession, request: codecs.StartRecordingRequest
) -> None:
    conductor.recordings.start(
        session,
        request.correlation_id,
        stream_id=request.stream_id,
        channel=request.channel,
        source_location=request.source_location,
        auto_stop=False,
    )


def _start_recording_2(
    conductor: Conductor, session: ControlSession, request: codecs.StartRecordingRequest2
) -> None:
    conductor.recordings.start(
        session,
        request.correlation_id,
        stream_id=request.stream_id,
        channel=request.channel,
        source_location=request.source_location,
        auto_stop=request.auto_stop is codecs.BooleanType.TRUE,
    )


def _stop_recording(
    conductor: Conductor, session: ControlSession, request: codecs.StopRecordingRequest
) -> None:
    if conductor.recordings.stop_channel(request.stream_id, request.channel):
        session.send_ok(request.correlation_id)
    else:
        session.send_error(
            request.correlation_id,
            ErrorCode.UNKNOWN_SUBSCRIPTION,
            f"nothing is being recorded for streamId={request.stream_id} channel={request.channel}",
        )


def _stop_recording_subscription(
    conductor: Conductor,
    session: ControlSession,
    request: codecs.StopRecordingSubscriptionRequest,
) -> None:
    if conductor.recordings.stop_subscription(request.subscription_id):
        session.send_ok(request.correlation_id)
    else:
        session.send_error(
            request.correlation_id,
            ErrorCode.UNKNOWN_SUBSCRIPTION,
            f"no recording has subscriptionId={request.subscription_id}",
        )


def _stop_recording_by_identity(
    conductor: Conductor, session: ControlSession, request: codecs.StopRecordingByIdentityRequest
) -> None:
    if _is_known(conductor, session, request.correlation_id, request.recording_id):
        found = conductor.recordings.stop_identity(request.recording_id)
        session.send_ok(request.correlation_id, int(found))


# ---- queries -------------------------------------------------------------------------------------


def _is_known(
    conductor: Conductor, session: ControlSession, correlation_id: int, recording_id: int
) -> bool:
    if conductor.catalog.has_recording(recording_id):
        return True
    session.send_error(
        correlation_id, ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}"
    )
    return False


def _may_list(session: ControlSession, correlation_id: int) -> bool:
    if session.listing is None:
        return True
    session.send_error(
        correlation_id, ErrorCode.ACTIVE_LISTING, "the session is still being sent a listing"
    )
    return False


def _list_recordings(
    conductor: Conductor, session: ControlSession, request: codecs.ListRecordingsRequest
) -> None:
    if _may_list(session, request.correlation_id):
        session.listing = RangeListing(
            session,
            conductor.catalog,
            request.correlation_id,
            request.from_recording_id,
            request.record_count,
        )


def _list_recordings_for_uri(
    conductor: Conductor, session: ControlSession, request: codecs.ListRecordingsForUriRequest
) -> None:
    if not _may_list(session, request.correlation_id):
        return
    catalog = conductor.catalog
    fragment = request.channel.encode("ascii")

    def accept(recording_id: int) -> bool:
        return catalog.matches(recording_id, request.stream_id, fragment)

    session.listing = RangeListing(
        session,
        catalog,
        request.correlation_id,
        request.from_recording_id,
        request.record_count,
        accept,
    )


def _list_recording(
    conductor: Conductor, session: ControlSession, request: codecs.ListRecordingRequest
) -> None:
    if _may_list(session, request.correlation_id):
        session.listing = SingleListing(
            session, conductor.catalog, request.correlation_id, request.recording_id
        )


def _find_last_matching(
    conductor: Conductor,
    session: ControlSession,
    request: codecs.FindLastMatchingRecordingRequest,
) -> None:
    if request.min_recording_id < 0:
        session.send_error(
            request.correlation_id,
            ErrorCode.UNKNOWN_RECORDING,
            f"minRecordingId={request.min_recording_id} is negative",
        )
        return
    recording_id = conductor.catalog.find_last(
        request.min_recording_id,
        request.session_id,
        request.stream_id,
        request.channel.encode("ascii"),
    )
    session.send_ok(request.correlation_id, recording_id)


def _start_position(
    conductor: Conductor, session: ControlSession, request: codecs.StartPositionRequest
) -> None:
    if _is_known(conductor, session, request.correlation_id, request.recording_id):
        position = conductor.catalog.start_position(request.recording_id)
        session.send_ok(request.correlation_id, position)


def _stop_position(
    conductor: Conductor, session: ControlSession, request: codecs.StopPositionRequest
) -> None:
    if _is_known(conductor, session, request.correlation_id, request.recording_id):
        position = conductor.catalog.stop_position(request.recording_id)
        session.send_ok(request.correlation_id, position)


def _recording_position(
    conductor: Conductor, session: ControlSession, request: codecs.RecordingPositionRequest
) -> None:
    if _is_known(conductor, session, request.correlation_id, request.recording_id):
        recording = conductor.recordings.session(request.recording_id)
        position = NULL_POSITION if recording is None else recording.position
        session.send_ok(request.correlation_id, position)


def _max_recorded_position(
    conductor: Conductor, session: ControlSession, request: codecs.MaxRecordedPositionRequest
) -> None:
    if _is_known(conductor, session, request.correlation_id, request.recording_id):
        recording = conductor.recordings.session(request.recording_id)
        if recording is not None:
            position = recording.position
        else:
            position = conductor.catalog.stop_position(request.recording_id)
        session.send_ok(request.correlation_id, position)


# ---- replay --------------------------------------------------------------------------------------


def _replay(conductor: Conductor, session: ControlSession, request: codecs.ReplayRequest) -> None:
    conductor.replays.start(
        session,
        request.correlation_id,
        ReplayRequest(
            recording_id=request.recording_id,
            position=request.position,
            length=request.length,
            stream_id=request.replay_stream_id,
            channel=request.replay_channel,
            file_io_max_length=request.file_io_max_length,
        ),
    )


def _bounded_replay(
    conductor: Conductor, session: ControlSession, request: codecs.BoundedReplayRequest
) -> None:
    conductor.replays.start(
        session,
        request.correlation_id,
        ReplayRequest(
            recording_id=request.recording_id,
            position=request.position,
            length=request.length,
            stream_id=request.replay_stream_id,
            channel=request.replay_channel,
            file_io_max_length=request.file_io_max_length,
            limit_counter_id=request.limit_counter_id,
        ),
    )


def _stop_replay(
    conductor: Conductor, session: ControlSession, request: codecs.StopReplayRequest
) -> None:
    conductor.replays.stop(request.replay_session_id)
    session.send_ok(request.correlation_id)


def _stop_all_replays(
    conductor: Conductor, session: ControlSession, request: codecs.StopAllReplaysRequest
) -> None:
    conductor.replays.stop_all(request.recording_id)
    session.send_ok(request.correlation_id)


HANDLERS: Mapping[type[Message], Handler] = {
    codecs.ArchiveIdRequest: _archive_id,
    codecs.KeepAliveRequest: _keep_alive,
    codecs.StartRecordingRequest: _start_recording,
    codecs.StartRecordingRequest2: _start_recording_2,
    codecs.StopRecordingRequest: _stop_recording,
    codecs.StopRecordingSubscriptionRequest: _stop_recording_subscription,
    codecs.StopRecordingByIdentityRequest: _stop_recording_by_identity,
    codecs.ListRecordingsRequest: _list_recordings,
    codecs.ListRecordingsForUriRequest: _list_recordings_for_uri,
    codecs.ListRecordingRequest: _list_recording,
    codecs.FindLastMatchingRecordingRequest: _find_last_matching,
    codecs.StartPositionRequest: _start_position,
    codecs.StopPositionRequest: _stop_position,
    codecs.RecordingPositionRequest: _recording_position,
    codecs.MaxRecordedPositionRequest: _max_recorded_position,
    codecs.ReplayRequest: _replay,
    codecs.BoundedReplayRequest: _bounded_replay,
    codecs.StopReplayRequest: _stop_replay,
    codecs.StopAllReplaysRequest: _stop_all_replays,
}


def handle(conductor: Conductor, session: ControlSession, request: Any) -> None:
    """Answer one request; nothing that goes wrong with it gets past this."""
    handler = HANDLERS.get(type(request))
    try:
        if handler is None:
            session.send_error(
                request.correlation_id,
                ErrorCode.GENERIC,
                f"not supported yet: {type(request).__name__}",
            )
        else:
            handler(conductor, session, request)
    except AerotapeError as error:
        session.send_error(request.correlation_id, ErrorCode.GENERIC, str(error))
    except Exception as error:
        name = type(request).__name__
        conductor.errors.record(f"{name} failed", error, exception=error)
        session.send_error(request.correlation_id, ErrorCode.GENERIC, f"{name} failed: {error}")
