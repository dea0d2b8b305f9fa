"""Requests that start, extend and stop recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.archive.control.requests.handling import Handlers, is_known, may_list
from aerotape.channel_uri import ChannelUri, stripped_channel
from aerotape.codecs.generated import archive as codecs
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services


def _start_recording(
    services: Services, session: ControlSession, request: codecs.StartRecordingRequest
) -> None:
    services.recordings.start(
        session,
        request.correlation_id,
        stream_id=request.stream_id,
        channel=request.channel,
        source_location=request.source_location,
        auto_stop=False,
    )


def _start_recording_2(
    services: Services, session: ControlSession, request: codecs.StartRecordingRequest2
) -> None:
    services.recordings.start(
        session,
        request.correlation_id,
        stream_id=request.stream_id,
        channel=request.channel,
        source_location=request.source_location,
        auto_stop=request.auto_stop is codecs.BooleanType.TRUE,
    )


def _extend_recording(
    services: Services,
    session: ControlSession,
    request: codecs.ExtendRecordingRequest | codecs.ExtendRecordingRequest2,
) -> None:
    auto_stop = isinstance(request, codecs.ExtendRecordingRequest2) and (
        request.auto_stop is codecs.BooleanType.TRUE
    )
    services.recordings.extend(
        session,
        request.correlation_id,
        recording_id=request.recording_id,
        stream_id=request.stream_id,
        channel=request.channel,
        source_location=request.source_location,
        auto_stop=auto_stop,
    )


def _stop_recording(
    services: Services, session: ControlSession, request: codecs.StopRecordingRequest
) -> None:
    if services.recordings.stop_channel(request.stream_id, request.channel):
        session.send_ok(request.correlation_id)
    else:
        session.send_error(
            request.correlation_id,
            ErrorCode.UNKNOWN_SUBSCRIPTION,
            f"no recording found for streamId={request.stream_id} channel={request.channel}",
        )


def _stop_recording_subscription(
    services: Services,
    session: ControlSession,
    request: codecs.StopRecordingSubscriptionRequest,
) -> None:
    if services.recordings.stop_subscription(request.subscription_id):
        session.send_ok(request.correlation_id)
    else:
        session.send_error(
            request.correlation_id,
            ErrorCode.UNKNOWN_SUBSCRIPTION,
            f"no recording subscription found for subscriptionId={request.subscription_id}",
        )


def _stop_recording_by_identity(
    services: Services, session: ControlSession, request: codecs.StopRecordingByIdentityRequest
) -> None:
    if is_known(services, session, request.correlation_id, request.recording_id):
        found = services.recordings.stop_identity(request.recording_id)
        session.send_ok(request.correlation_id, int(found))


def _update_channel(
    services: Services, session: ControlSession, request: codecs.UpdateChannelRequest
) -> None:
    # It is answered in turn with listings, as the reference has it.
    if not may_list(session, request.correlation_id):
        return
    if not services.catalog.has_recording(request.recording_id):
        session.send_recording_unknown(request.correlation_id, request.recording_id)
        return
    stripped = stripped_channel(ChannelUri.parse(request.channel))
    services.catalog.replace_channel(
        request.recording_id, stripped_channel=stripped, original_channel=request.channel
    )
    session.send_ok(request.correlation_id)


HANDLERS: Handlers = {
    codecs.StartRecordingRequest: _start_recording,
    codecs.StartRecordingRequest2: _start_recording_2,
    codecs.ExtendRecordingRequest: _extend_recording,
    codecs.ExtendRecordingRequest2: _extend_recording,
    codecs.StopRecordingRequest: _stop_recording,
    codecs.StopRecordingSubscriptionRequest: _stop_recording_subscription,
    codecs.StopRecordingByIdentityRequest: _stop_recording_by_identity,
    codecs.UpdateChannelRequest: _update_channel,
}
