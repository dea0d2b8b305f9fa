"""Handlers of requests for descriptors and positions, and for the archive's id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.archive.control import responses
from aerotape.archive.control.feature import Handlers
from aerotape.archive.control.listing import DescriptorListing
from aerotape.archive.control.requests.handling import check_known, check_no_listing
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ArchiveError, UnknownRecordingError
from aerotape.protocol import NULL_POSITION, ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services


def _list_recordings(
    services: Services,
    session: ControlSession,
    request: codecs.ListRecordingsRequest | codecs.ListRecordingsForUriRequest,
) -> None:
    check_no_listing(session)
    stream_id, channel = None, ""
    if isinstance(request, codecs.ListRecordingsForUriRequest):
        stream_id, channel = request.stream_id, request.channel
    session.begin_listing(
        DescriptorListing(
            session,
            services.catalog,
            request.correlation_id,
            request.from_recording_id,
            request.record_count,
            stream_id=stream_id,
            channel_fragment=channel.encode("ascii"),
        )
    )


def _list_recording(
    services: Services, session: ControlSession, request: codecs.ListRecordingRequest
) -> None:
    check_no_listing(session)
    recording_id, correlation_id = request.recording_id, request.correlation_id
    try:
        descriptor = services.catalog.wire_descriptor(recording_id)
    except UnknownRecordingError:
        session.send_recording_unknown(correlation_id, recording_id)
        return
    session.send(responses.descriptor(session.session_id, correlation_id, descriptor))


def _list_recording_subscriptions(
    services: Services,
    session: ControlSession,
    request: codecs.ListRecordingSubscriptionsRequest,
) -> None:
    check_no_listing(session)
    subscriptions = services.recordings.subscriptions.listed()
    if request.subscription_count <= 0 or not 0 <= request.pseudo_index < len(subscriptions):
        session.send_subscription_unknown(request.correlation_id)
        return
    by_stream_id = request.apply_stream_id is codecs.BooleanType.TRUE
    found = [
        source
        for source in subscriptions[request.pseudo_index :]
        if request.channel in source.channel
        and (source.stream_id == request.stream_id or not by_stream_id)
    ]
    for source in found[: request.subscription_count]:
        session.send(
            codecs.RecordingSubscriptionDescriptor(
                control_session_id=session.session_id,
                correlation_id=request.correlation_id,
                subscription_id=source.registration_id,
                stream_id=source.stream_id,
                stripped_channel=source.channel,
            ).encode()
        )
    if len(found) < request.subscription_count:
        session.send_subscription_unknown(request.correlation_id)


def _find_last_matching(
    services: Services,
    session: ControlSession,
    request: codecs.FindLastMatchingRecordingRequest,
) -> None:
    if request.min_recording_id < 0:
        raise ArchiveError(
            f"minRecordingId={request.min_recording_id} < 0", ErrorCode.UNKNOWN_RECORDING
        )
    recording_id = services.catalog.find_last(
        request.min_recording_id,
        request.session_id,
        request.stream_id,
        request.channel.encode("ascii"),
    )
    session.send_ok(request.correlation_id, recording_id)


def _position(
    services: Services,
    session: ControlSession,
    request: codecs.StartPositionRequest
    | codecs.StopPositionRequest
    | codecs.RecordingPositionRequest
    | codecs.MaxRecordedPositionRequest,
) -> None:
    recording_id = request.recording_id
    check_known(services, recording_id)
    recording = services.recordings.session(recording_id)
    position = NULL_POSITION
    if isinstance(request, codecs.StartPositionRequest):
        position = services.catalog.start_position(recording_id)
    elif isinstance(request, codecs.StopPositionRequest):
        position = services.catalog.stop_position(recording_id)
    elif recording is not None:
        # A client that receives a position finds the counter, as with the Java archive.
        if not (recording.is_starting and isinstance(request, codecs.RecordingPositionRequest)):
            position = recording.position
    elif isinstance(request, codecs.MaxRecordedPositionRequest):
        position = services.catalog.stop_position(recording_id)
    session.send_ok(request.correlation_id, position)


def _archive_id(
    services: Services, session: ControlSession, request: codecs.ArchiveIdRequest
) -> None:
    session.send_ok(request.correlation_id, services.archive_id)


def _keep_alive(
    services: Services, session: ControlSession, request: codecs.KeepAliveRequest
) -> None:
    """Has no response: receiving it has activated the session."""


HANDLERS: Handlers = {
    codecs.ArchiveIdRequest: _archive_id,
    codecs.KeepAliveRequest: _keep_alive,
    codecs.ListRecordingsRequest: _list_recordings,
    codecs.ListRecordingsForUriRequest: _list_recordings,
    codecs.ListRecordingRequest: _list_recording,
    codecs.ListRecordingSubscriptionsRequest: _list_recording_subscriptions,
    codecs.FindLastMatchingRecordingRequest: _find_last_matching,
    codecs.StartPositionRequest: _position,
    codecs.StopPositionRequest: _position,
    codecs.RecordingPositionRequest: _position,
    codecs.MaxRecordedPositionRequest: _position,
}
