"""Requests that ask for descriptors and positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.archive.control import responses
from aerotape.archive.control.listing import RangeListing, SingleListing, SubscriptionListing
from aerotape.archive.control.requests.handling import Handlers, is_known
from aerotape.archive.protocol import NULL_POSITION, ErrorCode
from aerotape.codecs import archive as codecs

if TYPE_CHECKING:
    from aerotape._native import Lookups
    from aerotape.archive.conductor import Conductor
    from aerotape.archive.control.session import ControlSession
    from aerotape.catalog.catalog import Catalog

# Descriptors that are made ready together when one of them is asked for.
KEPT_BLOCK = 64


def _may_list(session: ControlSession, correlation_id: int) -> bool:
    if not session.is_listing:
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
    if not _may_list(session, request.correlation_id):
        return
    recording_id = request.recording_id
    listing = SingleListing(session, conductor.catalog, request.correlation_id, recording_id)
    listing.do_work()
    if not listing.is_done:
        session.listing = listing
    elif conductor.lookups is not None and listing.was_sent:
        _keep_answers(conductor.lookups, conductor.catalog, recording_id)
        session.share(conductor.lookups)


def _keep_answers(lookups: Lookups, catalog: Catalog, recording_id: int) -> None:
    """Leave the descriptor that was sent, and its neighbours, for answering natively.

    Who asks for one recording by its id mostly goes on to others, which cost little now. All ids
    of a block are kept together, so that in whatever order they are asked for, each block is
    kept once.
    """
    run = catalog.descriptors(recording_id - recording_id % KEPT_BLOCK, KEPT_BLOCK)
    for index, next_id in enumerate(run.ids):
        offset, length = run.slices[2 * index : 2 * index + 2]
        descriptor = catalog.data[offset : offset + length]
        lookups.keep(next_id, responses.recording_descriptor(0, 0, descriptor))


def _list_recording_subscriptions(
    conductor: Conductor,
    session: ControlSession,
    request: codecs.ListRecordingSubscriptionsRequest,
) -> None:
    if not _may_list(session, request.correlation_id):
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
