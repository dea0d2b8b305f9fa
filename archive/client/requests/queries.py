"""Requests for recordings, recording subscriptions and positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, Generic, TypeVar, cast

from aerotape.archive.client import arguments
from aerotape.archive.client.requests.scopes import check_scope, listing_request
from aerotape.archive.client.session.client_session import ClientSession
from aerotape.archive.client.session.exchange import list_items
from aerotape.archive.client.session.request import (
    Call,
    Item,
    Listing,
    Request,
    relevant_id,
)
from aerotape.archive.waiting import Task
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.codecs.generated import archive as codecs

_MAX_COUNT: Final = (1 << 31) - 1

D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class RecordingSubscription:
    """A recording subscription of an archive, with or without a publisher (message id 23).

    Attributes:
        subscription_id: for `stop_recording_subscription`.
        stream_id: the stream.
        stripped_channel: the channel reduced to what identifies it.
    """

    subscription_id: int
    stream_id: int
    stripped_channel: str


@dataclass(eq=False)
class Pages(Generic[D]):
    """A listing that is requested page by page, so that other requests can be sent in between.

    Attributes:
        ask: returns the request for a page, given its first key and length.
        convert: converts an item for the caller.
        key_after: returns the key of the next page, from this one's key, last item, length.
        count: the maximum number of items; None: no limit.
    """

    page_length: ClassVar[int] = 100

    session: ClientSession
    ask: Callable[[int, int], Listing]
    convert: Callable[[Item], D]
    key_after: Callable[[int, D, int], int]
    key: int
    count: int | None

    def __post_init__(self) -> None:
        self._remaining = _MAX_COUNT if self.count is None else arguments.count("count", self.count)

    def next(self) -> Task[list[D]]:
        """Return the next page; an empty one is the end."""
        if self._remaining <= 0:
            return []
        length = min(self.page_length, self._remaining)
        found = yield from list_items(self.session, self.ask(self.key, length))
        page = [self.convert(item) for item in found]
        self._remaining -= len(page)
        if len(page) < length:
            self._remaining = 0
        if page:
            self.key = self.key_after(self.key, page[-1], len(page))
        return page


def list_recordings(
    session: ClientSession, from_recording_id: int, count: int | None, scope_id: int | None
) -> Pages[RecordingDescriptor]:
    """List the recordings in the order of their ids, page by page."""
    arguments.natural("from_recording_id", from_recording_id)
    scope = check_scope(session, scope_id)

    def ask(from_id: int, length: int) -> Listing:
        return Listing(listing_request(scope, from_id, length), "list recordings", length)

    return _recordings(session, ask, from_recording_id, count)


def list_recordings_for_uri(
    session: ClientSession,
    channel_fragment: str,
    stream_id: int,
    from_recording_id: int,
    count: int | None,
) -> Pages[RecordingDescriptor]:
    """As `list_recordings`, of one stream id and of channels that contain a text."""
    arguments.text("channel_fragment", channel_fragment)
    arguments.any_int32("stream_id", stream_id)
    arguments.natural("from_recording_id", from_recording_id)

    def ask(from_id: int, length: int) -> Listing:
        request = codecs.ListRecordingsForUriRequest(
            from_recording_id=from_id,
            record_count=length,
            stream_id=stream_id,
            channel=channel_fragment,
        )
        what = f"list recordings of {channel_fragment!r} stream {stream_id}"
        return Listing(request, what, length)

    return _recordings(session, ask, from_recording_id, count)


def list_recording(
    session: ClientSession, recording_id: int, scope_id: int | None = None
) -> Task[RecordingDescriptor | None]:
    """Return a recording's descriptor, None when there is no such recording."""
    arguments.natural("recording_id", recording_id)
    scope = check_scope(session, scope_id)
    request: Request = codecs.ListRecordingRequest(recording_id=recording_id)
    if scope is not None:
        request = listing_request(scope, recording_id, 1)
    found = yield from list_items(session, Listing(request, f"list recording {recording_id}", 1))
    descriptor = descriptor_of(found[0]) if found else None
    return descriptor if descriptor and descriptor.recording_id == recording_id else None


def list_recording_subscriptions(
    session: ClientSession,
    channel_fragment: str,
    stream_id: int | None,
    from_index: int,
    count: int | None,
) -> Pages[RecordingSubscription]:
    """List what the archive records or waits to record, page by page."""
    arguments.text("channel_fragment", channel_fragment)
    arguments.count("from_index", from_index)
    stream = 0 if stream_id is None else arguments.any_int32("stream_id", stream_id)

    def ask(index: int, length: int) -> Listing:
        request = codecs.ListRecordingSubscriptionsRequest(
            pseudo_index=index,
            subscription_count=length,
            apply_stream_id=codecs.BooleanType(stream_id is not None),
            stream_id=stream,
            channel=channel_fragment,
        )
        return Listing(request, "list recording subscriptions", length)

    return Pages(
        session, ask, _subscription, lambda index, _, length: index + length, from_index, count
    )


def start_position(recording_id: int) -> Call[int]:
    """Return where a recording starts, bytes."""
    return _position(codecs.StartPositionRequest, recording_id, "start position")


def stop_position(recording_id: int) -> Call[int]:
    """Return where a recording stopped, bytes; -1 while it is live."""
    return _position(codecs.StopPositionRequest, recording_id, "stop position")


def recording_position(recording_id: int) -> Call[int]:
    """Return how far a live recording has been written, bytes; -1 when it is not live."""
    return _position(codecs.RecordingPositionRequest, recording_id, "position")


def max_recorded_position(recording_id: int) -> Call[int]:
    """Return where a recording stopped or, while live, how far it has been written, bytes."""
    return _position(codecs.MaxRecordedPositionRequest, recording_id, "last position")


def _position(kind: Callable[..., Request], recording_id: int, what: str) -> Call[int]:
    request = kind(recording_id=arguments.natural("recording_id", recording_id))
    return Call(request, f"get the {what} of recording {recording_id}", relevant_id)


def _recordings(
    session: ClientSession,
    ask: Callable[[int, int], Listing],
    from_recording_id: int,
    count: int | None,
) -> Pages[RecordingDescriptor]:
    return Pages(
        session,
        ask,
        descriptor_of,
        lambda _, last, __: last.recording_id + 1,
        from_recording_id,
        count,
    )


def _subscription(item: Item) -> RecordingSubscription:
    message = cast(codecs.RecordingSubscriptionDescriptor, item)
    return RecordingSubscription(
        message.subscription_id, message.stream_id, message.stripped_channel
    )


def descriptor_of(item: Item) -> RecordingDescriptor:
    """Return the descriptor in a RecordingDescriptor message (message id 22)."""
    message = cast(codecs.RecordingDescriptor, item)
    return RecordingDescriptor(
        recording_id=message.recording_id,
        start_timestamp_ms=message.start_timestamp,
        stop_timestamp_ms=message.stop_timestamp,
        start_position=message.start_position,
        stop_position=message.stop_position,
        initial_term_id=message.initial_term_id,
        segment_file_length=message.segment_file_length,
        term_buffer_length=message.term_buffer_length,
        mtu_length=message.mtu_length,
        session_id=message.session_id,
        stream_id=message.stream_id,
        stripped_channel=message.stripped_channel,
        original_channel=message.original_channel,
        source_identity=message.source_identity,
    )
