"""Requests for recordings, recording subscriptions and positions.

A scope is that of the archive's own recordings, or one that it has imported. Aeron's control
protocol has no scopes: requests for own recordings are Aeron's, and the session does not send
others to an archive that knows no other scopes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar, cast

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.scope_layout import scope_of_archive, unsigned
from aerotape.client import arguments
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.exchange import exchange, list_items
from aerotape.client.session.request import Call, Item, Listing, Request, relevant_id
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated import ledger_control
from aerotape.errors import ConfigurationError
from aerotape.qualified_id import signed
from aerotape.units import MAX_INT
from aerotape.waiting import Task

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
        self._remaining = MAX_INT if self.count is None else arguments.count("count", self.count)

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


    def all(self) -> Task[list[D]]:
        """Return the items of all pages."""
        found: list[D] = []
        while page := (yield from self.next()):
            found += page
        return found


def check_scope(
    session: ClientSession, scope_id: int | None, limit_counter_id: int | None = None
) -> int | None:
    """Return a scope other than the archive's own, in two's complement; None for the own one.

    A counter can only limit the replay of a recording of the archive itself.
    """
    if not scope_id:
        return None
    wanted = unsigned(scope_id)
    if wanted == scope_of_archive(session.archive_id):
        return None
    if limit_counter_id is not None:
        raise ConfigurationError(
            "a recording of another scope is complete: no counter limits its replay",
            "limit_counter_id",
        )
    return signed(wanted)


def list_scopes(session: ClientSession) -> Task[list[int]]:
    """Return the scopes that have recordings or ledgers, ascending and unsigned."""
    found = {scope_of_archive(session.archive_id)}
    scope_id = 0
    while True:
        request = ledger_control.NextScopeRequest(scope_id=scope_id)
        scope_id = yield from exchange(session, Call(request, "list scopes", relevant_id))
        if scope_id == 0:
            return sorted(found)
        found.add(unsigned(scope_id))


def listing_request(scope_id: int | None, from_recording_id: int, count: int) -> Request:
    """Return the message that lists recordings of a scope, which `check_scope` returned."""
    if scope_id is None:
        return codecs.ListRecordingsRequest(from_recording_id=from_recording_id, record_count=count)
    return ledger_control.ListScopedRecordingsRequest(
        scope_id=scope_id, from_recording_id=from_recording_id, record_count=count
    )


def recording_pages(
    session: ClientSession,
    ask: Callable[[int, int], Request],
    what: str,
    from_recording_id: int,
    count: int | None,
) -> Pages[RecordingDescriptor]:
    """Return the recordings that a request lists, in the order of their ids.

    Args:
        ask: returns the request, given the first id and the number of a page.
    """
    return Pages(
        session,
        lambda from_id, length: Listing(ask(from_id, length), what, length),
        descriptor_of,
        lambda _, last, __: last.recording_id + 1,
        arguments.natural("from_recording_id", from_recording_id),
        count,
    )


def recording_pages_for_uri(
    session: ClientSession,
    channel_fragment: str,
    stream_id: int,
    from_recording_id: int = 0,
    count: int | None = None,
) -> Pages[RecordingDescriptor]:
    """Return the recordings of a stream id whose channel contains a text."""
    arguments.text("channel_fragment", channel_fragment)
    arguments.any_int32("stream_id", stream_id)

    def ask(from_id: int, length: int) -> Request:
        return codecs.ListRecordingsForUriRequest(
            from_recording_id=from_id,
            record_count=length,
            stream_id=stream_id,
            channel=channel_fragment,
        )

    what = f"list recordings of {channel_fragment!r} stream {stream_id}"
    return recording_pages(session, ask, what, from_recording_id, count)


def find_last_matching_recording(
    min_recording_id: int, channel_fragment: str, stream_id: int, session_id: int
) -> Call[int]:
    """Return the id of the last recording of a session, -1 when there is none."""
    request = codecs.FindLastMatchingRecordingRequest(
        min_recording_id=arguments.natural("min_recording_id", min_recording_id),
        session_id=arguments.any_int32("session_id", session_id),
        stream_id=arguments.any_int32("stream_id", stream_id),
        channel=arguments.text("channel_fragment", channel_fragment),
    )
    what = f"find a recording of {channel_fragment!r} stream {stream_id}"
    return Call(request, what, relevant_id)


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


def get_position(kind: Callable[..., Request], recording_id: int, what: str) -> Call[int]:
    """Return a position of a recording, bytes.

    Args:
        kind: the class of the request.
        what: the position, for error messages: "start position".
    """
    request = kind(recording_id=arguments.natural("recording_id", recording_id))
    return Call(request, f"get the {what} of recording {recording_id}", relevant_id)


def start_position(recording_id: int) -> Call[int]:
    """Return the start position of a recording, bytes."""
    return get_position(codecs.StartPositionRequest, recording_id, "start position")


def stop_position(recording_id: int) -> Call[int]:
    """Return the stop position of a recording, bytes; -1 while it is live."""
    return get_position(codecs.StopPositionRequest, recording_id, "stop position")


def recording_position(recording_id: int) -> Call[int]:
    """Return the recorded position of a live recording, bytes; -1 when it is not live."""
    return get_position(codecs.RecordingPositionRequest, recording_id, "position")


def max_recorded_position(recording_id: int) -> Call[int]:
    """Return the stop position of a recording or, while it is live, the recorded one, bytes."""
    return get_position(codecs.MaxRecordedPositionRequest, recording_id, "last position")


def stop_recording_by_identity(recording_id: int) -> Call[bool]:
    """Stop a live recording by its id; the result is False when it was not live."""
    request = codecs.StopRecordingByIdentityRequest(
        recording_id=arguments.natural("recording_id", recording_id)
    )
    what = f"stop recording {recording_id}"
    return Call(request, what, lambda answer: answer.relevant_id != 0)


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


def subscription_of(item: Item) -> RecordingSubscription:
    """Return the subscription in a RecordingSubscriptionDescriptor message."""
    message = cast(codecs.RecordingSubscriptionDescriptor, item)
    return RecordingSubscription(
        message.subscription_id, message.stream_id, message.stripped_channel
    )
