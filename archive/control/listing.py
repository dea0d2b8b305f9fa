"""Listings of recordings: descriptors streamed to a client as fast as it takes them.

A listing sends its descriptors and, when there are fewer than requested, ends with a
RECORDING_UNKNOWN response that carries the next recording id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from aerotape._native import BulkOffer
    from aerotape.archive.control.responses import ResponseSender
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.file.lookup import DescriptorRun

# Descriptors that are copied from the catalog at once; the client gets them as of that moment.
MAX_PAGE_LENGTH = 4_096
# Recordings that a listing examines in a duty cycle of the conductor.
MAX_SCANNED_PER_CYCLE = 16_384


class DescriptorListing:
    """Up to `count` recordings from an id on, optionally of a stream id and a channel fragment.

    Pages of descriptors are copied out of the mapped catalog and sent natively. Recordings with a
    damaged descriptor are left out: no client could decode it, and an error would end the listing
    of the others. The archive logs them when it starts.

    Attributes:
        is_done: whether everything has been sent, or the listing has failed.
        bulk_offer: descriptors that are offered while the conductor waits, if any.
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
        self._session = session
        self._catalog = catalog
        self._correlation_id = correlation_id
        self._next_recording_id = from_recording_id
        self._remaining = count
        self._stream_id = stream_id
        self._channel_fragment = channel_fragment
        self._page: DescriptorRun | None = None
        self.is_done = count <= 0
        self.bulk_offer: BulkOffer | None = None

    @property
    def is_sent(self) -> bool:
        """Whether everything has been sent, which the session has not noted yet."""
        return self.bulk_offer is not None and self.bulk_offer.sent == self._remaining

    def do_work(self) -> None:
        """Account for what was sent of the page, and begin the next one when it is over."""
        if self.bulk_offer is not None and self._page is not None:
            sent = self._session.note_bulk_offer(self.bulk_offer)
            if not self.bulk_offer.is_over and not self._session.is_done:
                return
            self._take_note(self._page, self.bulk_offer, sent)
            self.bulk_offer = None
        if self.is_done:
            return
        self._page = page = self._catalog.descriptors(
            self._next_recording_id,
            min(self._remaining, MAX_PAGE_LENGTH),
            scan_limit=MAX_SCANNED_PER_CYCLE,
            stream_id=self._stream_id,
            channel_fragment=self._channel_fragment,
        )
        if not page.ids:
            self._end_page(page)
            return
        self.bulk_offer = self._session.begin_bulk_offer(
            self._correlation_id,
            self._catalog.data,
            page.slices,
            is_last=self._remaining == len(page.ids),
        )

    def _take_note(self, page: DescriptorRun, bulk_offer: BulkOffer, sent: int) -> None:
        self._remaining -= sent
        self.is_done = self._remaining == 0 or self._session.is_done
        if self.is_done:
            return
        if sent == len(page.ids):
            self._end_page(page)
            return
        self._next_recording_id = page.ids[sent]
        if bulk_offer.result == 0:
            # Two channels of the greatest length are more than the smallest term can carry in a
            # message. The Java archive ends the session in this case.
            self._session.send_error(
                self._correlation_id,
                ErrorCode.GENERIC,
                f"the descriptor of recording {page.ids[sent]} is longer than a message of the"
                " response channel: connect with a greater term-length",
            )
            self.is_done = True

    def _end_page(self, page: DescriptorRun) -> None:
        self._next_recording_id = page.next_id
        if next(self._catalog.recording_ids(page.next_id), None) is None:
            self._session.send_recording_unknown(self._correlation_id, page.next_id)
            self.is_done = True
