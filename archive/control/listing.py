"""Listings of recordings: descriptors streamed to a client as fast as it takes them.

A listing of many sends its descriptors and, when there are fewer than requested, ends with a
RECORDING_UNKNOWN response that carries the next recording id. Recording subscriptions are listed
in the same way, with SUBSCRIPTION_UNKNOWN at the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from aerotape.archive.control import responses
from aerotape.errors import CatalogError
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from aerotape._native import Sending
    from aerotape.archive.control.response_sender import ResponseSender
    from aerotape.archive.recording.subscriptions import RecordingSubscription
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.file.lookup import DescriptorRun

# Descriptors that are copied from the catalog at once; the client gets them as of that moment.
MAX_PAGE_LENGTH = 4_096
# Recordings that a listing examines in a duty cycle of the conductor.
MAX_SCANNED_PER_CYCLE = 16_384
# Subscriptions that a listing sends in a duty cycle.
MAX_SUBSCRIPTIONS_PER_CYCLE = 256
# Pauses between attempts under back pressure, nanoseconds.
MIN_RETRY_NS = 2_000
MAX_RETRY_NS = 1_000_000


class Listing(ABC):
    """Base of all listings.

    Attributes:
        is_done: whether everything has been sent, or the listing has failed.
        retry_after_ns: the pause until the next attempt; 0 without back pressure.
        sending: descriptors that are offered while the conductor waits, if any.
    """

    def __init__(self, session: ResponseSender, correlation_id: int) -> None:
        self._session = session
        self._correlation_id = correlation_id
        self.is_done = False
        self.retry_after_ns = 0
        self.sending: Sending | None = None

    @property
    def is_sent(self) -> bool:
        """Whether everything has been sent."""
        return self.is_done

    @abstractmethod
    def do_work(self) -> None:
        """Send what can be sent now."""

    def _note_progress(self, any_sent: bool) -> None:
        """Continue at once while the client takes something, else after growing pauses."""
        if any_sent:
            self.retry_after_ns = 0
        else:
            self.retry_after_ns = min(max(2 * self.retry_after_ns, MIN_RETRY_NS), MAX_RETRY_NS)


class _RecordingListing(Listing):
    """Pages of descriptors, which are copied out of the mapped catalog and sent natively."""

    def __init__(
        self, session: ResponseSender, catalog: Catalog, correlation_id: int, count: int
    ) -> None:
        super().__init__(session, correlation_id)
        self._catalog = catalog
        self._remaining = count
        self._page: DescriptorRun | None = None
        self.is_done = count <= 0

    def do_work(self) -> None:
        """Account for what was sent of the page, and begin the next one when it is over."""
        if self.sending is not None and self._page is not None:
            sent = self._session.note_sending(self.sending)
            if not self.sending.is_over and not self._session.is_done:
                return
            self.sending = None
            self._take_note(self._page, sent)
        if self.is_done:
            return
        self._page = page = self._next_page()
        if page is None:
            return
        if not page.ids:
            self._note_progress(True)
            self._end_page(page, 0)
            return
        self.sending = self._session.begin_sending(
            self._correlation_id,
            self._catalog.data,
            page.slices,
            is_last=self._remaining == len(page.ids),
        )
        self._note_progress(self.sending is not None)

    @property
    def is_sent(self) -> bool:
        """Whether everything has been sent, which the session has not noted yet."""
        return self.sending is not None and self.sending.sent == self._remaining

    def _take_note(self, page: DescriptorRun, sent: int) -> None:
        self._remaining -= sent
        self.is_done = self._remaining == 0 or self._session.is_done
        if not self.is_done and sent < len(page.ids):
            self._refuse_if_too_long(page.ids[sent], page.slices[2 * sent + 1])
        if not self.is_done:
            self._end_page(page, sent)

    @abstractmethod
    def _next_page(self) -> DescriptorRun | None:
        """Return the next descriptors to send; None when the listing has ended instead."""

    def _end_page(self, page: DescriptorRun, sent: int) -> None:
        """Continue after a page of which `sent` descriptors were sent."""

    def _refuse_if_too_long(self, recording_id: int, descriptor_length: int) -> bool:
        """End the listing at a descriptor that no message of the response channel has room for.

        Two channels of the greatest length are more than a response stream's smallest term can
        carry in a message. The Java archive ends the session in this case.
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
    """Up to `count` recordings from an id on, optionally of a stream id and a channel fragment.

    Recordings with a damaged descriptor are left out: no client could decode it, and an error would
    end the listing of the others. The archive logs them when it starts.
    """

    def __init__(
        self,
        session: ResponseSender,
        catalog: Catalog,
        correlation_id: int,
        from_recording_id: int,
        count: int,
        *,
        stream_id: int | None = None,
        channel_fragment: bytes = b"",
    ) -> None:
        super().__init__(session, catalog, correlation_id, count)
        self._next_recording_id = from_recording_id
        self._stream_id = stream_id
        self._channel_fragment = channel_fragment

    def _next_page(self) -> DescriptorRun:
        return self._catalog.descriptors(
            self._next_recording_id,
            min(self._remaining, MAX_PAGE_LENGTH),
            scan_limit=MAX_SCANNED_PER_CYCLE,
            stream_id=self._stream_id,
            channel_fragment=self._channel_fragment,
        )

    def _end_page(self, page: DescriptorRun, sent: int) -> None:
        if sent < len(page.ids):
            self._next_recording_id = page.ids[sent]
            return
        self._next_recording_id = page.next_id
        if next(self._catalog.recording_ids(page.next_id), None) is None:
            self._session.send_recording_unknown(self._correlation_id, page.next_id)
            self.is_done = True


class SingleListing(_RecordingListing):
    """One recording by its id."""

    def __init__(
        self, session: ResponseSender, catalog: Catalog, correlation_id: int, recording_id: int
    ) -> None:
        super().__init__(session, catalog, correlation_id, 1)
        self._recording_id = recording_id

    def _next_page(self) -> DescriptorRun | None:
        if self._catalog.has_recording(self._recording_id):
            page = self._catalog.descriptors(self._recording_id, 1, scan_limit=1)
            if page.ids:
                return page
            try:
                self._catalog.wire_descriptor(self._recording_id)
            except CatalogError as error:
                self._session.send_error(self._correlation_id, ErrorCode.GENERIC, str(error))
        else:
            self._session.send_recording_unknown(self._correlation_id, self._recording_id)
        self.is_done = True
        return None


class SubscriptionListing(Listing):
    """Up to `count` recording subscriptions, of those with a stream id and a piece of a channel."""

    def __init__(
        self,
        session: ResponseSender,
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
        while self._remaining and self._subscriptions and sent < MAX_SUBSCRIPTIONS_PER_CYCLE:
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
