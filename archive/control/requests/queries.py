"""Handlers of requests for descriptors and positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.archive.control.listing import RangeListing, SingleListing, SubscriptionListing
from aerotape.archive.control.requests.handling import Handlers, is_known, may_list
from aerotape.codecs.generated import archive as codecs
from aerotape.protocol import NULL_POSITION, ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services


def _list_recordings(
    services: Services, session: ControlSession, request: codecs.ListRecordingsRequest
) -> None:
    if may_list(session, request.correlation_id):
        session.begin_listing(
            RangeListing(
                session,
                services.catalog,
                request.correlation_id,
                request.from_recording_id,
                request.record_count,
            )
        )


def _list_recordings_for_uri(
    services: Services, session: ControlSession, request: codecs.ListRecordingsForUriRequest
) -> None:
    if may_list(session, request.correlation_id):
        session.begin_listing(
            RangeListing(
                session,
                services.catalog,
                request.correlation_id,
                request.from_recording_id,
                request.record_count,
                stream_id=request.stream_id,
                channel_fragment=request.channel.encode("ascii"),
            )
        )


def _list_recording(
    services: Services, session: ControlSession, request: codecs.ListRecordingRequest
) -> None:
    if may_list(session, request.correlation_id):
        session.begin_listing(
            SingleListing(session, services.catalog, request.correlation_id, request.recording_id)
        )


def _list_recording_subscriptions(
    services: Services,
    session: ControlSession,
    request: codecs.ListRecordingSubscriptionsRequest,
) -> None:
    if not may_list(session, request.correlation_id):
        return
    subscriptions = services.recordings.subscriptions.listed()
    if request.subscription_count <= 0 or not 0 <= request.pseudo_index < len(subscriptions):
        session.send_subscription_unknown(request.correlation_id)
        return
    by_stream_id = request.apply_stream_id is codecs.BooleanType.TRUE
    listing = SubscriptionListing(
        session,
        request.correlation_id,
        (
            source
            for source in subscriptions[request.pseudo_index :]
            if request.channel in source.channel
            and (source.stream_id == request.stream_id or not by_stream_id)
        ),
        request.subscription_count,
    )
    session.begin_listing(listing)


def _find_last_matching(
    services: Services,
    session: ControlSession,
    request: codecs.FindLastMatchingRecordingRequest,
) -> None:
    if request.min_recording_id < 0:
        session.send_error(
            request.correlation_id,
            ErrorCode.UNKNOWN_RECORDING,
            f"minRecordingId={request.min_recording_id} < 0",
        )
        return
    recording_id = services.catalog.find_last(
        request.min_recording_id,
        request.session_id,
        request.stream_id,
        request.channel.encode("ascii"),
    )
    session.send_ok(request.correlation_id, recording_id)


def _start_position(
    services: Services, session: ControlSession, request: codecs.StartPositionRequest
) -> None:
    if is_known(services, session, request.correlation_id, request.recording_id):
        position = services.catalog.start_position(request.recording_id)
        session.send_ok(request.correlation_id, position)


def _stop_position(
    services: Services, session: ControlSession, request: codecs.StopPositionRequest
) -> None:
    if is_known(services, session, request.correlation_id, request.recording_id):
        position = services.catalog.stop_position(request.recording_id)
        session.send_ok(request.correlation_id, position)


def _recording_position(
    services: Services, session: ControlSession, request: codecs.RecordingPositionRequest
) -> None:
    if is_known(services, session, request.correlation_id, request.recording_id):
        recording = services.recordings.session(request.recording_id)
        position = NULL_POSITION if recording is None else recording.position
        session.send_ok(request.correlation_id, position)


def _max_recorded_position(
    services: Services, session: ControlSession, request: codecs.MaxRecordedPositionRequest
) -> None:
    if is_known(services, session, request.correlation_id, request.recording_id):
        recording = services.recordings.session(request.recording_id)
        if recording is not None:
            position = recording.position
        else:
            position = services.catalog.stop_position(request.recording_id)
        session.send_ok(request.correlation_id, position)


HANDLERS: Handlers = {
    codecs.ListRecordingsRequest: _list_recordings,
    codecs.ListRecordingsForUriRequest: _list_recordings_for_uri,
    codecs.ListRecordingRequest: _list_recording,
    codecs.ListRecordingSubscriptionsRequest: _list_recording_subscriptions,
    codecs.FindLastMatchingRecordingRequest: _find_last_matching,
    codecs.StartPositionRequest: _start_position,
    codecs.StopPositionRequest: _stop_position,
    codecs.RecordingPositionRequest: _recording_position,
    codecs.MaxRecordedPositionRequest: _max_recorded_position,
}
