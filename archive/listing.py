"""Listings of recordings: descriptors streamed to a client as fast as it takes them.

A listing of many sends its descriptors and, when there are fewer than were asked for, ends with a
RECORDING_UNKNOWN response that carries the next recording id.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from aerotape.archive import responses
from aerotape.archive.protocol import ErrorCode
from aerotape.errors import CatalogError

if TYPE_CHECKING:
    from aerotape.catalog.catalog import Catalog

MAX_SCANS_PER_CYCLE = 64


class ListingSession(Protocol):
    """Where a listing sends to."""

    @property
    def is_done(self) -> bool: ...
    def send_descriptor(self, correlation_id: int, wire_descriptor: bytes) -> bool: ...
    def send_recording_unknown(self, correlation_id: int, recording_id: int) -> None: ...
    def send_error(
        self, correlation_id: int, error_code: ErrorCode | int, message: str
    ) -> None: ...
    @property
    def max_message_length(self) -> int: ...


class _Listing:
    """What both kinds of listing share."""

    def __init__(self, session: ListingSession, catalog: Catalog, correlation_id: int) -> None:
        self._session = session
        self._catalog = catalog
        self._correlation_id = correlation_id
        self.is_done = False
        self.is_back_pressured = False

    def _send(self, recording_id: int) -> bool:
        """Send a descriptor; False when it cannot be sent now or, with `is_done`, at all."""
        descriptor = self._catalog.wire_descriptor(recording_id)
        length = responses.MESSAGE_HEADER_LENGTH + len(descriptor)
        if length > self._session.max_message_length:
            # Two channels of the greatest length are more than a response stream's smallest term
            # can carry in a message. The reference loses the session over this.
            self._session.send_error(
                self._correlation_id,
                ErrorCode.GENERIC,
                f"the descriptor of recording {recording_id} takes a message of {length} bytes,"
                f" the response channel has room for {self._session.max_message_length}:"
                " connect with a greater term-length",
            )
            self.is_done = True
            return False
        if self._session.send_descriptor(self._correlation_id, descriptor):
            self.is_back_pressured = False
            return True
        self.is_back_pressured = True
        self.is_done = self._session.is_done
        return False


class RangeListing(_Listing):
    """Up to `count` recordings from an id on, of those that a filter accepts; no damaged ones."""

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
        self.is_done = count <= 0

    def do_work(self) -> None:
        """Send what can be sent now, looking at no more than 64 recordings."""
        if self.is_done:
            return
        # Asked for anew each time: the catalog may have changed since.
        ids = list(
            islice(self._catalog.recording_ids(self._next_recording_id), MAX_SCANS_PER_CYCLE)
        )
        for recording_id in ids:
            try:
                if self._accept is None or self._accept(recording_id):
                    if not self._send(recording_id):
                        return
                    self._remaining -= 1
            except CatalogError:
                # Damaged: named when the archive started, and to who asks for it alone. No client
                # could read its descriptor, and an error would end the listing of the others.
                pass
            self._next_recording_id = recording_id + 1
            if self._remaining == 0:
                self.is_done = True
                return
        if len(ids) < MAX_SCANS_PER_CYCLE:
            self._session.send_recording_unknown(self._correlation_id, self._next_recording_id)
            self.is_done = True


class SingleListing(_Listing):
    """One recording by its id."""

    def __init__(
        self, session: ListingSession, catalog: Catalog, correlation_id: int, recording_id: int
    ) -> None:
        super().__init__(session, catalog, correlation_id)
        self._recording_id = recording_id

    def do_work(self) -> None:
        """Send the descriptor once it can be sent."""
        if self.is_done:
            return
        if not self._catalog.has_recording(self._recording_id):
            self._session.send_recording_unknown(self._correlation_id, self._recording_id)
            self.is_done = True
            return
        try:
            if self._send(self._recording_id):
                self.is_done = True
        except CatalogError as error:
            self._session.send_error(self._correlation_id, ErrorCode.GENERIC, str(error))
            self.is_done = True
