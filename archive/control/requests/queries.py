"""Requests that ask for descriptors and positions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from aerotape.archive.control.listing import RangeListing, SingleListing, SubscriptionListing
from aerotape.archive.control.requests.handling import Handlers, is_known, may_list
from aerotape.archive.protocol import NULL_POSITION, ErrorCode
from aerotape.codecs import archive as codecs

if TYPE_CHECKING:
    from aerotape._native import Lookups
    from aerotape.archive.conductor import Conductor
    from aerotape.archive.control.session import ControlSession

# Recordings whose descriptors are looked for when one or many are asked for, beyond these.
MAX_INDEXED = 256


def _list_recordings(
    conductor: Conductor, session: ControlSession, request: codecs.ListRecordingsRequest
) -> None:
    if may_list(session, request.correlation_id):
        wanted = (request.correlation_id, request.from_recording_id, request.record_count)
        lookups = _shared(conductor, session)
        if lookups is None or not lookups.list(session.session_id, *wanted):
            session.listing = RangeListing(session, conductor.catalog, *wanted)


def _shared(conductor: Conductor, session: ControlSession) -> Lookups | None:
    """Have further requests for descriptors answered natively, from more and more of the catalog.

    Who asks for one recording by its id mostly goes on to others, and who lists all does it again.

    Returns:
        What answers them for this session, None where that cannot be for now.
    """
    if conductor.lookups is None:
        return None
    conductor.catalog.index_descriptors(MAX_INDEXED)
    return session.share(conductor.lookups, partial(RangeListing, session, conductor.catalog))


def _list_recordings_for_uri(
    conductor: Conductor, session: ControlSession, request: codecs.ListRecordingsForUriRequest
) -> None:
    if not may_list(session, request.correlation_id):
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
    if not may_list(session, request.correlation_id):
        return
    recording_id = request.recording_id
    listing = SingleListing(session, conductor.catalog, request.correlation_id, recording_id)
    listing.do_work()
    if not listing.is_done:
        session.listing = listing
    elif listing.was_sent:
        _shared(conductor, session)


def _list_recording_subscriptions(
    conductor: Conductor,
    session: ControlSession,
    request: codecs.ListRecordingSubscriptionsRequest,
) -> None:
    if not may_list(session, request.correlation_id):
        return
    subscriptions = conductor.recordings.subscriptions.listed()
    if request.subscription_count <= 0 or not 0 <= request.pseudo_index < len(subscriptions):
        session.send_subscription_unknown(request.correlation_id)
        return
    by_stream_id = request.apply_stream_id is codecs.BooleanType.TRUE
    session.listing = SubscriptionListing(
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


def _find_last_matching(
    conductor: Conductor,
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
    if is_known(conductor, session, request.correlation_id, request.recording_id):
        position = conductor.catalog.start_position(request.recording_id)
        session.send_ok(request.correlation_id, position)


def _stop_position(
    conductor: Conductor, session: ControlSession, request: codecs.StopPositionRequest
) -> None:
    if is_known(conductor, session, request.correlation_id, request.recording_id):
        position = conductor.catalog.stop_position(request.recording_id)
        session.send_ok(request.correlation_id, position)


def _recording_position(
    conductor: Conductor, session: ControlSession, request: codecs.RecordingPositionRequest
) -> None:
    if is_known(conductor, session, request.correlation_id, request.recording_id):
        recording = conductor.recordings.session(request.recording_id)
        position = NULL_POSITION if recording is None else recording.position
        session.send_ok(request.correlation_id, position)


def _max_recorded_position(
    conductor: Conductor, session: ControlSession, request: codecs.MaxRecordedPositionRequest
) -> None:
    if is_known(conductor, session, request.correlation_id, request.recording_id):
        recording = conductor.recordings.session(request.recording_id)
        if recording is not None:
            position = recording.position
        else:
            position = conductor.catalog.stop_position(request.recording_id)
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
