"""Requests for recordings, recording subscriptions and positions."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, Generic, TypeVar, cast

from aerotape.archive.client import arguments
from aerotape.archive.client.requests.request import (
    Call,
    Item,
    Listing,
    Request,
    Steps,
    relevant_id,
)
from aerotape.archive.client.requests.scopes import check_scope, listing_request
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
        ask: returns the request for a page, or steps that do, given its first key and length.
        convert: converts an item for the caller.
        key_after: returns the key of the next page, from this one's key, last item, length.
        count: the maximum number of items; None: no limit.
    """

    page_length: ClassVar[int] = 100

    ask: Callable[[int, int], Listing | Steps[Listing]]
    convert: Callable[[Item], D]
    key_after: Callable[[int, D, int], int]
    key: int
    count: int | None

    def __post_init__(self) -> None:
        self._remaining = _MAX_COUNT if self.count is None else arguments.count("count", self.count)

    def next(self) -> Steps[list[D]]:
        """Return the next page; an empty one is the end."""
        if self._remaining <= 0:
            return []
        length = min(self.page_length, self._remaining)
        asked = self.ask(self.key, length)
        listing = asked if isinstance(asked, Listing) else (yield from asked)
        found: list[Item] = yield listing
        page = [self.convert(item) for item in found]
        self._remaining -= len(page)
        if len(page) < length:
            self._remaining = 0
        if page:
            self.key = self.key_after(self.key, page[-1], len(page))
        return page


def list_recordings(
    from_recording_id: int = 0, count: int | None = None, *, scope_id: int | None = None
) -> Pages[RecordingDescriptor]:
    """Iterate over the recordings in the order of their ids, page by page.

    Args:
        from_recording_id: the first id to be listed.
        count: the maximum number; None: no limit.
        scope_id: list the recordings of this scope, which the archive has imported; None or 0:
            its own.

    Raises:
        IllegalOperationError: the archive knows no other scope than its own.
    """
    arguments.natural("from_recording_id", from_recording_id)

    def ask(from_id: int, length: int) -> Steps[Listing]:
        scope = yield from check_scope(scope_id)
        return Listing(listing_request(scope, from_id, length), "list recordings", length)

    return _recordings(ask, from_recording_id, count)


def list_recordings_for_uri(
    channel_fragment: str,
    stream_id: int,
    from_recording_id: int = 0,
    count: int | None = None,
) -> Pages[RecordingDescriptor]:
    """As `list_recordings`, of one stream id and of channels that contain a text.

    Args:
        channel_fragment: any part of the recording's channel without the parameters that
            do not identify the stream, for example ``endpoint=localhost:20121``.
    """
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

    return _recordings(ask, from_recording_id, count)


def list_recording(
    recording_id: int, *, scope_id: int | None = None
) -> Steps[RecordingDescriptor | None]:
    """Return a recording's descriptor, None when there is no such recording.

    Args:
        scope_id: as for `list_recordings`.

    Raises:
        IllegalOperationError: the archive knows no other scope than its own.
    """
    arguments.natural("recording_id", recording_id)
    scope = yield from check_scope(scope_id)
    request: Request = codecs.ListRecordingRequest(recording_id=recording_id)
    if scope is not None:
        request = listing_request(scope, recording_id, 1)
    found: list[Item] = yield Listing(request, f"list recording {recording_id}", 1)
    descriptor = descriptor_of(found[0]) if found else None
    return descriptor if descriptor and descriptor.recording_id == recording_id else None


def list_recording_subscriptions(
    channel_fragment: str = "",
    stream_id: int | None = None,
    *,
    from_index: int = 0,
    count: int | None = None,
) -> Pages[RecordingSubscription]:
    """Iterate over what the archive records or waits to record, page by page.

    Args:
        channel_fragment: any part of the channel, as in `list_recordings_for_uri`; empty: any.
        stream_id: None: any.
        from_index: how many matches to skip.
        count: the maximum number; None: no limit.
    """
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

    return Pages(ask, _subscription, lambda index, _, length: index + length, from_index, count)


def find_last_matching_recording(
    min_recording_id: int, channel_fragment: str, stream_id: int, session_id: int
) -> Call[int]:
    """Return the id of the last recording of a session, -1 when there is none.

    Args:
        min_recording_id: the least id that counts.
        channel_fragment: as in `list_recordings_for_uri`.
    """
    request = codecs.FindLastMatchingRecordingRequest(
        min_recording_id=arguments.natural("min_recording_id", min_recording_id),
        session_id=arguments.any_int32("session_id", session_id),
        stream_id=arguments.any_int32("stream_id", stream_id),
        channel=arguments.text("channel_fragment", channel_fragment),
    )
    what = f"find a recording of {channel_fragment!r} stream {stream_id}"
    return Call(request, what, relevant_id)


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


def get_archive_id() -> Call[int]:
    """Return the archive's id."""
    return Call(codecs.ArchiveIdRequest(), "get the archive's id", relevant_id)


def ping() -> Steps[int]:
    """Return the round-trip time of a request to the archive, nanoseconds."""
    begin_ns = time.monotonic_ns()
    yield get_archive_id()
    return time.monotonic_ns() - begin_ns


def _recordings(
    ask: Callable[[int, int], Listing | Steps[Listing]],
    from_recording_id: int,
    count: int | None,
) -> Pages[RecordingDescriptor]:
    return Pages(
        ask, descriptor_of, lambda _, last, __: last.recording_id + 1, from_recording_id, count
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
