"""Responses of a control session: its messages, and the queue under back pressure.

Messages that meet back pressure are queued, in order. When nothing could be sent for the connect
timeout, or the queue is too long, the session ends; so it does when the response publication loses
its subscriber.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING

from aerotape._native import BulkOffer
from aerotape.aeron import CLOSED, MAX_POSITION_EXCEEDED, NOT_CONNECTED
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode, RecordingSignal
from aerotape.protocol import PROTOCOL_VERSION, ErrorCode

if TYPE_CHECKING:
    import mmap
    from array import array
    from collections.abc import Callable

    from aerotape._native import ExclusivePublication
    from aerotape.archive.control.listing import DescriptorListing

_SEND_ATTEMPTS = 3
# Bounds the memory for a client that sends requests and does not read.
MAX_QUEUED_LENGTH = 16 * 1024 * 1024

RESPONSE_NOT_CONNECTED = "control response publication is not connected"
_CANNOT_SEND = {
    CLOSED: "control response publication is closed",
    MAX_POSITION_EXCEEDED: "control response publication is at max position",
}

# Texts quote what clients sent, which may be long; every response channel fits this length.
MAX_ERROR_MESSAGE_LENGTH = 2_000

_HEADER = struct.Struct("<HHHH")
MESSAGE_HEADER_LENGTH = _HEADER.size
_SESSION = struct.Struct("<q")
_SESSION_AND_CORRELATION = struct.Struct("<qq")
DESCRIPTOR_ADDRESS_LENGTH = _SESSION_AND_CORRELATION.size

_DESCRIPTOR_HEADER = _HEADER.pack(
    codecs.RecordingDescriptor.BLOCK_LENGTH,
    codecs.RecordingDescriptor.TEMPLATE_ID,
    codecs.RecordingDescriptor.SCHEMA_ID,
    codecs.RecordingDescriptor.SCHEMA_VERSION,
)


class ResponseSender(ABC):
    """The sending half of a control session.

    Attributes:
        session_id: the control session id of the protocol.
        image_id: correlation id of the image on which the client's requests come.
        broadcast: called with this session's id and each encoded signal that it is sent, also
            after its end; None unless other sessions receive the signals.
        on_work: called with this session's id when the next duty cycle has to advance it.
        listing: the listing in progress, if any; a session has one at a time.
    """

    def __init__(
        self, session_id: int, image_id: int, connect_timeout_ms: int, now_ms: int
    ) -> None:
        self.session_id = session_id
        self.image_id = image_id
        self.broadcast: Callable[[int, bytes], None] | None = None
        self.on_work: Callable[[int], None] = lambda _: None
        self._publication: ExclusivePublication | None = None
        self._connect_timeout_ms = connect_timeout_ms
        self._now_ms = now_ms
        # None while offers succeed.
        self._activity_deadline_ms: int | None = now_ms + connect_timeout_ms
        # Position of the publication when offers began to fail.
        self._position_before = 0
        self._queue: deque[bytes] = deque()
        self._queued_length = 0
        self.listing: DescriptorListing | None = None

    @property
    @abstractmethod
    def is_done(self) -> bool:
        """Whether the session has ended."""

    @abstractmethod
    def abort(self, reason: str) -> None:
        """End the session."""

    @property
    def is_listing(self) -> bool:
        """Whether a listing is in progress: some of it has not been sent yet."""
        if self.listing is not None and self.listing.is_sent:
            self._advance_listing()
        return self.listing is not None

    def begin_listing(self, listing: DescriptorListing) -> None:
        """Start a listing and send of it what can be sent at once."""
        self.listing = listing
        self.on_work(self.session_id)
        self._advance_listing()

    def _advance_listing(self) -> None:
        if self.listing is not None:
            self.listing.do_work()
            if self.listing.is_done:
                self.listing = None

    def send_ok(self, correlation_id: int, relevant_id: int = 0) -> None:
        """Respond OK to a request, with the id or position that it requested."""
        self._send_response(correlation_id, relevant_id, ControlResponseCode.OK)

    def deferred_ok(
        self, correlation_id: int, relevant_id: int
    ) -> tuple[ExclusivePublication, bytes] | None:
        """Return an OK for another thread to send, and where; None while responses are queued."""
        if self._queue or self._publication is None or self.is_done:
            return None
        message = control_response(
            self.session_id, correlation_id, relevant_id, ControlResponseCode.OK
        )
        return self._publication, message

    def send_error(self, correlation_id: int, error_code: ErrorCode | int, message: str) -> None:
        """Respond to a request with an error code and a message."""
        self._send_response(correlation_id, error_code, ControlResponseCode.ERROR, message)

    def send_recording_unknown(self, correlation_id: int, recording_id: int) -> None:
        """Respond that there is no (further) recording, which also ends a listing."""
        self._send_response(correlation_id, recording_id, ControlResponseCode.RECORDING_UNKNOWN)

    def send_subscription_unknown(self, correlation_id: int) -> None:
        """Respond that there is no (further) recording subscription, which also ends a listing."""
        self._send_response(correlation_id, 0, ControlResponseCode.SUBSCRIPTION_UNKNOWN)

    def send_signal(
        self,
        correlation_id: int,
        recording_id: int,
        subscription_id: int,
        position: int,
        signal: RecordingSignal,
    ) -> None:
        """Send the client a signal of a recording that its request has changed."""
        message = recording_signal(
            self.session_id, correlation_id, recording_id, subscription_id, position, signal
        )
        self.send(message)
        if self.broadcast is not None:
            self.broadcast(self.session_id, message)

    def begin_bulk_offer(
        self,
        correlation_id: int,
        catalog_data: mmap.mmap,
        slices: array[int],
        *,
        is_last: bool,
    ) -> BulkOffer | None:
        """Return descriptors to be sent while the conductor waits; None while responses are queued.

        Args:
            correlation_id: of the request.
            catalog_data: the mapped catalog, from which the descriptors are copied.
            slices: offset and length of each descriptor in the catalog file, bytes.
            is_last: whether the listing ends with them.
        """
        if self._queue or self._publication is None or self.is_done:
            return None
        bulk_offer = BulkOffer(
            self._publication,
            descriptor_prefix(self.session_id, correlation_id),
            catalog_data,
            slices,
            skip=DESCRIPTOR_ADDRESS_LENGTH,
            is_last=is_last,
        )
        bulk_offer.offer()
        return bulk_offer

    def note_bulk_offer(self, bulk_offer: BulkOffer) -> int:
        """Return the number of descriptors sent so far; end the session if no more can be sent."""
        if bulk_offer.failure is not None:
            self.abort(f"failed with exception: {bulk_offer.failure}")
        self._note_offer(bulk_offer.result, any_sent=bulk_offer.is_over and bulk_offer.sent > 0)
        return bulk_offer.sent

    def _send_response(
        self,
        correlation_id: int,
        relevant_id: int,
        code: ControlResponseCode,
        error_message: str = "",
    ) -> None:
        self.send(
            control_response(self.session_id, correlation_id, relevant_id, code, error_message)
        )

    def send(self, message: bytes) -> None:
        """Send an encoded message, after those that are queued."""
        if self.is_done or self._publication is None:
            return
        if self._queue or not self._offer(message):
            self._queue.append(message)
            self._queued_length += len(message)
            self.on_work(self.session_id)
            if self._queued_length > MAX_QUEUED_LENGTH:
                self.abort(f"{len(self._queue)} responses are queued and the client does not read")

    def _offer(self, message: bytes) -> bool:
        publication = self._publication
        assert publication is not None
        for _ in range(_SEND_ATTEMPTS):
            result = publication.offer(message)
            self._note_offer(result, result > 0)
            if result > 0 or self.is_done:
                return result > 0
        return False

    def _note_offer(self, result: int, any_sent: bool) -> None:
        """Evaluate the result of an offer."""
        if any_sent:
            self._activity_deadline_ms = None
        if result == NOT_CONNECTED:
            self.abort(RESPONSE_NOT_CONNECTED)
        elif result in _CANNOT_SEND:
            self.abort(_CANNOT_SEND[result])
        elif result < 0 and not any_sent and self._activity_deadline_ms is None:
            self._activity_deadline_ms = self._now_ms + self._connect_timeout_ms
            if self._publication is not None:
                self._position_before = self._publication.position

    def _has_been_sent_to(self) -> bool:
        """Whether anything was sent natively since the last offer that failed."""
        publication = self._publication
        if publication is None or publication.position == self._position_before:
            return False
        self._activity_deadline_ms = None
        return True

    def _drain(self) -> None:
        """Send queued responses, as many as can be sent."""
        while self._queue and not self.is_done and self._offer(self._queue[0]):
            self._queued_length -= len(self._queue.popleft())


def control_response(
    control_session_id: int,
    correlation_id: int,
    relevant_id: int,
    code: codecs.ControlResponseCode,
    error_message: str = "",
    version: int = PROTOCOL_VERSION,
) -> bytes:
    """Return a ControlResponse; a very long error message is truncated.

    Args:
        relevant_id: the id or position that the request queries, or the error code for ERROR.
    """
    if len(error_message) > MAX_ERROR_MESSAGE_LENGTH:
        error_message = error_message[: MAX_ERROR_MESSAGE_LENGTH - 3] + "..."
    return codecs.ControlResponse(
        control_session_id=control_session_id,
        correlation_id=correlation_id,
        relevant_id=relevant_id,
        code=code,
        version=version,
        # The field is ASCII; channels that clients sent may not be.
        error_message=error_message.encode("ascii", "replace").decode("ascii"),
    ).encode()


def descriptor_prefix(control_session_id: int, correlation_id: int) -> bytes:
    """Return the bytes that precede byte DESCRIPTOR_ADDRESS_LENGTH of a descriptor in a message.

    A descriptor is sent as stored in the catalog except for its first two fields, control session
    and correlation id, which have values only on the wire.
    """
    return _DESCRIPTOR_HEADER + _SESSION_AND_CORRELATION.pack(control_session_id, correlation_id)


def descriptor(control_session_id: int, correlation_id: int, stored: bytes) -> bytes:
    """Return a RecordingDescriptor with the values of one stored in the catalog."""
    return (
        descriptor_prefix(control_session_id, correlation_id) + stored[DESCRIPTOR_ADDRESS_LENGTH:]
    )


def recording_signal(
    control_session_id: int,
    correlation_id: int,
    recording_id: int,
    subscription_id: int,
    position: int,
    signal: codecs.RecordingSignal,
) -> bytes:
    """Return a RecordingSignalEvent."""
    return codecs.RecordingSignalEvent(
        control_session_id=control_session_id,
        correlation_id=correlation_id,
        recording_id=recording_id,
        subscription_id=subscription_id,
        position=position,
        signal=signal,
    ).encode()


def readdressed(message: bytes, control_session_id: int) -> bytes:
    """Return the message with the id of another control session."""
    # The control session id is the first field of every response.
    end = MESSAGE_HEADER_LENGTH + _SESSION.size
    return message[:MESSAGE_HEADER_LENGTH] + _SESSION.pack(control_session_id) + message[end:]
