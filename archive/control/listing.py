"""Listings of recordings: descriptors streamed to a client as fast as it takes them.

A listing of many sends its descriptors and, when there are fewer than were asked for, ends with a
RECORDING_UNKNOWN response that carries the next recording id. Recording subscriptions are listed
in the same way, with SUBSCRIPTION_UNKNOWN at the end.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from aerotape._native import Lookups
from aerotape.archive.control import responses
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import CatalogError
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    import mmap

    from aerotape._native import DescriptorIndex, Sending
    from aerotape.archive.recording.recording_session import RecordingSubscription
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.file.lookup import DescriptorRun

# Recordings that a listing looks at in a turn of the conductor: of all, those that no listing has
# looked at before, and of those that have to pass a filter, which Python looks at one by one.
MAX_SENT_PER_CYCLE = 4_096
MAX_NEW_PER_CYCLE = 1_024
MAX_FILTERED_PER_CYCLE = 256
# How soon a client that has no room is tried again, nanoseconds.
MIN_RETRY_NS = 2_000
MAX_RETRY_NS = 1_000_000


def native_lookups(index: DescriptorIndex) -> Lookups:
    """Make what answers requests for recordings that are in a catalog's index."""
    unknown = codecs.ControlResponseCode.RECORDING_UNKNOWN
    return Lookups(
        index,
        schema_id=codecs.SCHEMA_ID,
        one=codecs.ListRecordingRequest.TEMPLATE_ID,
        many=codecs.ListRecordingsRequest.TEMPLATE_ID,
        descriptor=responses.descriptor_prefix(0, 0),
        unknown=responses.control_response(0, 0, 0, unknown),
    )


class ListingSession(Protocol):
    """Where a listing sends to."""

    @property
    def is_done(self) -> bool: ...
    def send_descriptor(self, correlation_id: int, wire_descriptor: bytes) -> bool: ...
    def begin_sending(
        self,
        correlation_id: int,
        catalog_data: mmap.mmap,
        slices: array[int],
        *,
        is_last: bool,
    ) -> Sending | None: ...
    def note_sending(self, sending: Sending) -> int: ...
    def send_recording_unknown(self, correlation_id: int, recording_id: int) -> None: ...
    def send_subscription_descriptor(
        self, correlation_id: int, subscription_id: int, stream_id: int, channel: str
    ) -> bool: ...
    def send_subscription_unknown(self, correlation_id: int) -> None: ...
    def send_error(
        self, correlation_id: int, error_code: ErrorCode | int, message: str
    ) -> None: ...
    @property
    def max_message_length(self) -> int: ...


class _Listing:
    """What all kinds of listing share.

    Attributes:
        is_done: whether everything has been sent, or the listing has failed.
        retry_after_ns: when to go on: 0 at once, more while the client has no room.
        sending: what goes out while the conductor waits, which then goes on when that is over.
    """

    def __init__(self, session: ListingSession, correlation_id: int) -> None:
        self._session = session
        self._correlation_id = correlation_id
        self.is_done = False
        self.retry_after_ns = 0
        self.sending: Sending | None = None

    @property
    def is_sent(self) -> bool:
        """Whether all has gone out that was to be sent, and nothing is to follow."""
        return self.is_done

    def _note_progress(self, any_sent: bool) -> None:
        """Go on at once while the client takes something, else after longer and longer."""
        if any_sent:
            self.retry_after_ns = 0
        else:
            self.retry_after_ns = min(max(2 * self.retry_after_ns, MIN_RETRY_NS), MAX_RETRY_NS)


class _RecordingListing(_Listing):
    """What the listings of recordings share."""

    def __init__(self, session: ListingSession, catalog: Catalog, correlation_id: int) -> None:
        super().__init__(session, correlation_id)
        self._catalog = catalog

    def _refuse_if_too_long(self, recording_id: int, descriptor_length: int) -> bool:
        """End the listing at a descriptor that no message of the response channel has room for.

        Two channels of the greatest length are more than a response stream's smallest term can
        carry in a message. The reference loses the session over this.
        """
        length = responses.MESSAGE_HEADER_LENGTH + descriptor_length
        if length <= self._session.max_message_length:
            return False
        self._session.send_error(
            self._correlation_id,
            ErrorCode.GENERIC,
            f"the descriptor of recording {recording_id} takes a message of {length} bytes,"
            f" the response channel has room for {self._session.max_message_length}:"
            " connect with a greater term-length",
        )
        self.is_done = True
        return True


class RangeListing(_RecordingListing):
    """Up to `count` recordings from an id on, of those that a filter accepts; no damaged ones.

    Nobody could read a damaged descriptor, and an error would end the listing of the others: they
    are named when the archive starts, and to who asks for one of them alone.
    """

    def __init__(
        self,
        session: ListingSession,
        catalog: Catalog,
        correlation_id: int,
        from_recording_id: int,
        count: int,
        accept: Callable[[int], bool] | None = None,
    ) -> None:
        super().__init__(session, catalog, correlation_id)
        self._next_recording_id = from_recording_id
        self._remaining = count
        self._accept = accept
        self._run: DescriptorRun | None = None
        self.is_done = count <= 0

    def do_work(self) -> None:
        """Take note of what has been sent, and begin with what comes next."""
        sending, self.sending = self.sending, None
        if sending is not None and self._run is not None:
            self._note_sent(self._run, self._session.note_sending(sending))
        if self.is_done:
            return
        # Asked for anew each time: the catalog may have changed since.
        self._run = run = self._next_run()
        if not run.ids:
            self._note_progress(True)
            self._end_run(run)
            return
        self.sending = self._session.begin_sending(
            self._correlation_id,
            self._catalog.data,
            run.slices,
            is_last=self._remaining == len(run.ids),
        )
        self._note_progress(self.sending is not None)

    @property
    def is_sent(self) -> bool:
        """Whether all has gone out, which the session has not noted yet."""
        return self.sending is not None and self.sending.sent == self._remaining

    def _note_sent(self, run: DescriptorRun, sent: int) -> None:
        self._remaining -= sent
        if sent == len(run.ids):
            self._end_run(run)
            return
        self._next_recording_id = run.ids[sent]
        self.is_done = self._session.is_done
        if not self.is_done:
            self._refuse_if_too_long(run.ids[sent], run.slices[2 * sent + 1])

    def _end_run(self, run: DescriptorRun) -> None:
        self._next_recording_id = run.next_id
        if self._remaining == 0:
            self.is_done = True
        elif run.is_last and self._catalog.descriptors(run.next_id, 1).next_id == run.next_id:
            # Nor has any come while these were sent.
            self._session.send_recording_unknown(self._correlation_id, self._next_recording_id)
            self.is_done = True

    def _next_run(self) -> DescriptorRun:
        """Return what is next to be sent, no more than is asked for."""
        if self._accept is None:
            limit = min(self._remaining, MAX_SENT_PER_CYCLE)
            run = self._catalog.descriptors(self._next_recording_id, limit, MAX_NEW_PER_CYCLE)
            return run if len(run.ids) <= self._remaining else self._cut(run)
        run = self._catalog.descriptors(self._next_recording_id, MAX_FILTERED_PER_CYCLE)
        ids, slices = array("q"), array("q")
        for index, recording_id in enumerate(run.ids):
            if self._accept(recording_id):
                ids.append(recording_id)
                slices.extend(run.slices[2 * index : 2 * index + 2])
        run = replace(run, ids=ids, slices=slices)
        return run if len(ids) <= self._remaining else self._cut(run)

    def _cut(self, run: DescriptorRun) -> DescriptorRun:
        count = self._remaining
        return replace(run, ids=run.ids[:count], slices=run.slices[: 2 * count])


class SingleListing(_RecordingListing):
    """One recording by its id.

    Attributes:
        was_sent: whether its descriptor has been sent.
    """

    def __init__(
        self, session: ListingSession, catalog: Catalog, correlation_id: int, recording_id: int
    ) -> None:
        super().__init__(session, catalog, correlation_id)
        self._recording_id = recording_id
        self.was_sent = False

    def do_work(self) -> None:
        """Send the descriptor once it can be sent."""
        if self.is_done:
            return
        if not self._catalog.has_recording(self._recording_id):
            self._session.send_recording_unknown(self._correlation_id, self._recording_id)
            self.is_done = True
            return
        try:
            descriptor = self._catalog.wire_descriptor(self._recording_id)
        except CatalogError as error:
            self._session.send_error(self._correlation_id, ErrorCode.GENERIC, str(error))
            self.is_done = True
            return
        if self._refuse_if_too_long(self._recording_id, len(descriptor)):
            return
        self.was_sent = self._session.send_descriptor(self._correlation_id, descriptor)
        self._note_progress(self.was_sent)
        self.is_done = self.was_sent or self._session.is_done


class SubscriptionListing(_Listing):
    """Up to `count` recording subscriptions, of those with a stream id and a piece of a channel."""

    def __init__(
        self,
        session: ListingSession,
        correlation_id: int,
        subscriptions: Iterable[RecordingSubscription],
        count: int,
    ) -> None:
        """List `subscriptions`, none when `count` is not positive.

        Args:
            subscriptions: those that pass the filter, in the order of listing.
        """
        super().__init__(session, correlation_id)
        self._subscriptions = deque(subscriptions)
        self._remaining = max(count, 0)

    def do_work(self) -> None:
        """Send what can be sent now of the next subscriptions."""
        if self.is_done:
            return
        sent = 0
        while self._remaining and self._subscriptions and sent < MAX_FILTERED_PER_CYCLE:
            source = self._subscriptions[0]
            if not self._session.send_subscription_descriptor(
                self._correlation_id, source.registration_id, source.stream_id, source.channel
            ):
                self._note_progress(sent > 0)
                self.is_done = self._session.is_done
                return
            self._subscriptions.popleft()
            self._remaining -= 1
            sent += 1
        self._note_progress(True)
        if not self._remaining:
            self.is_done = True
        elif not self._subscriptions:
            self._session.send_subscription_unknown(self._correlation_id)
            self.is_done = True
