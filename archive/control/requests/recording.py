"""Requests that start, extend and stop recordings."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.archive.control.feature import Handlers
from aerotape.archive.control.requests.handling import check_known, check_no_listing
from aerotape.channel_uri import ChannelUri, stripped_channel
from aerotape.codecs.generated import archive as codecs
from aerotape.durability import durability_of
from aerotape.errors import ArchiveError
from aerotape.protocol import ErrorCode
from aerotape.waiting import Task, Until

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services
    from aerotape.archive.recording.recordings import IsOver
    from aerotape.codecs.generated.archive import RecordingSignal

# Much less than clients wait for a response: one that a network keeps from ending is stopped too.
_STOP_RESPONSE_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ClientObserver:
    """Sends a client the progress of the recording or replication that it has requested."""

    session: ControlSession
    correlation_id: int

    @property
    def session_id(self) -> int:
        """The control session's id."""
        return self.session.session_id

    def on_subscribed(self, subscription_id: int) -> None:
        """Respond OK to the request."""
        self.session.send_ok(self.correlation_id, subscription_id)

    def on_signal(
        self, recording_id: int, subscription_id: int, position: int, signal: RecordingSignal
    ) -> None:
        """Pass a signal on."""
        self.session.send_signal(
            self.correlation_id, recording_id, subscription_id, position, signal
        )

    def on_failed(self, error_code: int, message: str) -> None:
        """Send an error."""
        self.session.send_error(self.correlation_id, error_code, message)


def _start_recording(
    services: Services,
    session: ControlSession,
    request: codecs.StartRecordingRequest
    | codecs.StartRecordingRequest2
    | codecs.ExtendRecordingRequest
    | codecs.ExtendRecordingRequest2,
) -> None:
    # Only requests to extend have a recording id, and only the newer requests auto-stop.
    extends = getattr(request, "recording_id", None)
    channel, stream_id = request.channel, request.stream_id
    durability = durability_of(channel)
    if extends is None:
        services.features.check_channel(channel, stream_id)
    elif services.catalog.has_recording(extends):
        services.features.check_recording(extends)
        recorded = services.catalog.descriptor(extends)
        services.features.check_change(recorded, channel)
        # The durability of the first request holds for the whole recording.
        durability = durability_of(recorded.original_channel) or durability
    services.recordings.start(
        ClientObserver(session, request.correlation_id),
        stream_id=stream_id,
        channel=channel,
        source_location=request.source_location,
        auto_stop=getattr(request, "auto_stop", None) is codecs.BooleanType.TRUE,
        extends=extends,
        durability=durability,
    )


def _stop_recording(
    services: Services, session: ControlSession, request: codecs.StopRecordingRequest
) -> None:
    is_over = services.recordings.stop_channel(request.stream_id, request.channel)
    if is_over is None:
        raise ArchiveError(
            f"no recording found for streamId={request.stream_id} channel={request.channel}",
            ErrorCode.UNKNOWN_SUBSCRIPTION,
        )
    services.tasks.start(_ok_once(is_over, session, request.correlation_id))


def _stop_recording_subscription(
    services: Services,
    session: ControlSession,
    request: codecs.StopRecordingSubscriptionRequest,
) -> None:
    is_over = services.recordings.stop_subscription(request.subscription_id)
    if is_over is None:
        raise ArchiveError(
            f"no recording subscription found for subscriptionId={request.subscription_id}",
            ErrorCode.UNKNOWN_SUBSCRIPTION,
        )
    services.tasks.start(_ok_once(is_over, session, request.correlation_id))


def _stop_recording_by_identity(
    services: Services, session: ControlSession, request: codecs.StopRecordingByIdentityRequest
) -> None:
    check_known(services, request.recording_id)
    is_over = services.recordings.stop_identity(request.recording_id)
    if is_over is None:
        session.send_ok(request.correlation_id, 0)
    else:
        services.tasks.start(_ok_once(is_over, session, request.correlation_id, 1))


def _ok_once(
    is_over: IsOver, session: ControlSession, correlation_id: int, relevant_id: int = 0
) -> Task[None]:
    """Respond once all is recorded: the next request of a client finds the stop position."""
    if not is_over():
        yield Until(is_over, time.monotonic_ns() + _STOP_RESPONSE_NS)
    session.send_ok(correlation_id, relevant_id)


def _update_channel(
    services: Services, session: ControlSession, request: codecs.UpdateChannelRequest
) -> None:
    # As in the reference, not during a listing.
    check_no_listing(session)
    if not services.catalog.has_recording(request.recording_id):
        session.send_recording_unknown(request.correlation_id, request.recording_id)
        return
    services.features.check_recording(request.recording_id)
    recorded = services.catalog.descriptor(request.recording_id)
    services.features.check_change(recorded, request.channel)
    stripped = stripped_channel(ChannelUri.parse(request.channel))
    services.catalog.replace_channel(
        request.recording_id, stripped_channel=stripped, original_channel=request.channel
    )
    session.send_ok(request.correlation_id)


HANDLERS: Handlers = {
    codecs.StartRecordingRequest: _start_recording,
    codecs.StartRecordingRequest2: _start_recording,
    codecs.ExtendRecordingRequest: _start_recording,
    codecs.ExtendRecordingRequest2: _start_recording,
    codecs.StopRecordingRequest: _stop_recording,
    codecs.StopRecordingSubscriptionRequest: _stop_recording_subscription,
    codecs.StopRecordingByIdentityRequest: _stop_recording_by_identity,
    codecs.UpdateChannelRequest: _update_channel,
}
