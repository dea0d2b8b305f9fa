"""What a control session sends to its client, and what it does when that cannot be sent.

A message that meets back pressure waits in a queue, and what comes after it too. When nothing could
be sent for the connect timeout, or too much waits, the session ends; so it does when the response
publication loses its subscriber.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Protocol

from aerotape._native import Sending
from aerotape.archive.control import responses
from aerotape.archive.protocol import ErrorCode
from aerotape.codecs.archive import ControlResponseCode, RecordingSignal

if TYPE_CHECKING:
    import mmap
    from array import array
    from collections.abc import Callable

    from aerotape._native import ExclusivePublication, Lookups

_SEND_ATTEMPTS = 3
# A client that asks and does not read must not fill the memory before its time is up.
MAX_QUEUED_LENGTH = 16 * 1024 * 1024
# Results of offer that no retry mends.
_NOT_CONNECTED = -1
_CLOSED = -4
_MAX_POSITION_EXCEEDED = -5

RESPONSE_NOT_CONNECTED = "control response publication is not connected"


class Listing(Protocol):
    """What a session streams to its client piece by piece."""

    @property
    def is_done(self) -> bool: ...
    @property
    def retry_after_ns(self) -> int: ...
    @property
    def sending(self) -> Sending | None: ...
    @property
    def is_sent(self) -> bool: ...
    def do_work(self) -> None: ...


class ResponseSender(ABC):
    """The sending half of a control session.

    Attributes:
        session_id: the control session id of the protocol.
        image_id: correlation id of the image on which the client's requests come.
        tell_others: called with this session's id and each encoded signal that it is sent, also
            when it has ended meanwhile; None where no other session is to know.
        listing: the listing in progress, if any; a session has one at a time.
    """

    def __init__(
        self, session_id: int, image_id: int, connect_timeout_ms: int, now_ms: int
    ) -> None:
        self.session_id = session_id
        self.image_id = image_id
        self.tell_others: Callable[[int, bytes], None] | None = None
        self._publication: ExclusivePublication | None = None
        self._connect_timeout_ms = connect_timeout_ms
        self._now_ms = now_ms
        # None while the client takes what it is sent.
        self._activity_deadline_ms: int | None = now_ms + connect_timeout_ms
        # Where the publication stood when it began not to.
        self._position_before = 0
        self._queue: deque[bytes] = deque()
        self._queued_length = 0
        self._listing: Listing | None = None
        # While this is set it answers for the session too: not while answers have to wait.
        self._lookups: Lookups | None = None
        self._list_rest: Callable[[int, int, int], Listing] | None = None

    @property
    @abstractmethod
    def is_done(self) -> bool:
        """Whether the session has ended."""

    @abstractmethod
    def abort(self, reason: str) -> None:
        """End the session."""

    @property
    def listing(self) -> Listing | None:
        return self._listing

    @listing.setter
    def listing(self, listing: Listing | None) -> None:
        self._answer_all()
        self._listing = listing

    @property
    def is_listing(self) -> bool:
        """Whether a listing is in progress, which is not so once all of it has gone out."""
        if self._lookups is not None:
            return self._lookups.is_listing(self.session_id)
        if self._listing is not None and self._listing.is_sent:
            self._go_on_listing()
        return self._listing is not None

    def _go_on_listing(self) -> None:
        if self._listing is not None:
            self._listing.do_work()
            if self._listing.is_done:
                self.listing = None

    def share(
        self, lookups: Lookups, list_rest: Callable[[int, int, int], Listing]
    ) -> Lookups | None:
        """Let requests that need no thinking be answered without this session, if that can be now.

        Args:
            list_rest: makes what goes on with a listing that was begun there, of a correlation id,
                from a recording id on, of so many recordings.

        Returns:
            What answers for the session, None while it has to do so itself.
        """
        if (
            self._lookups is None
            and self._publication is not None
            and not self.is_done
            and self._listing is None
            and not self._queue
        ):
            self._lookups, self._list_rest = lookups, list_rest
            lookups.serve(self.session_id, self.image_id, self._publication)
        return self._lookups

    def _answer_all(self) -> None:
        """Answer all requests here, and go on with the listing that is under way."""
        if self._lookups is not None:
            left = self._lookups.leave(self.session_id)
            self._lookups = None
            if left is not None:
                self.go_on_listing(*left)

    def go_on_listing(self, correlation_id: int, from_recording_id: int, count: int) -> None:
        """Send the rest of a listing that was begun elsewhere."""
        if self._list_rest is not None and not self.is_done:
            self.listing = self._list_rest(correlation_id, from_recording_id, count)

    @property
    def max_message_length(self) -> int:
        """The longest message that the response publication carries, bytes."""
        return 0 if self._publication is None else self._publication.max_message_length

    def send_ok(self, correlation_id: int, relevant_id: int = 0) -> None:
        """Answer a request with success and the id or position it asked for."""
        self._send_response(correlation_id, relevant_id, ControlResponseCode.OK)

    def ok_to_send(
        self, correlation_id: int, relevant_id: int
    ) -> tuple[ExclusivePublication, bytes] | None:
        """Return a success that another thread may send, and where; None while answers wait."""
        if self._queue or self._publication is None or self.is_done:
            return None
        message = responses.control_response(
            self.session_id, correlation_id, relevant_id, ControlResponseCode.OK
        )
        return self._publication, message

    def send_error(self, correlation_id: int, error_code: ErrorCode | int, message: str) -> None:
        """Answer a request with an error code and what is to be said about it."""
        self._send_response(correlation_id, error_code, ControlResponseCode.ERROR, message)

    def send_recording_unknown(self, correlation_id: int, recording_id: int) -> None:
        """Say that there is no (further) recording, which also ends a listing."""
        self._send_response(correlation_id, recording_id, ControlResponseCode.RECORDING_UNKNOWN)

    def send_subscription_unknown(self, correlation_id: int) -> None:
        """Say that there is no (further) recording subscription, which also ends a listing."""
        self._send_response(correlation_id, 0, ControlResponseCode.SUBSCRIPTION_UNKNOWN)

    def send_signal(
        self,
        correlation_id: int,
        recording_id: int,
        subscription_id: int,
        position: int,
        signal: RecordingSignal,
    ) -> None:
        """Tell the client what has happened to a recording by its request."""
        message = responses.recording_signal(
            self.session_id, correlation_id, recording_id, subscription_id, position, signal
        )
        self._send(message)
        if self.tell_others is not None:
            self.tell_others(self.session_id, message)

    def pass_on(self, message: bytes) -> None:
        """Send what has been encoded for this session elsewhere."""
        self._send(message)

    def send_descriptor(self, correlation_id: int, wire_descriptor: bytes) -> bool:
        """Send a recording's descriptor; False under back pressure: try again later."""
        if self._queue or self._publication is None or self.is_done:
            return False
        return self._offer(
            responses.recording_descriptor(self.session_id, correlation_id, wire_descriptor)
        )

    def begin_sending(
        self,
        correlation_id: int,
        catalog_data: mmap.mmap,
        slices: array[int],
        *,
        is_last: bool,
    ) -> Sending | None:
        """Return descriptors from the mapped catalog to be sent; None while answers have to wait.

        Args:
            slices: offset and length of each descriptor in the catalog file, bytes.
            is_last: whether the listing is done with them.
        """
        if self._queue or self._publication is None or self.is_done:
            return None
        return Sending(
            self._publication,
            responses.descriptor_prefix(self.session_id, correlation_id),
            catalog_data,
            slices,
            skip=responses.DESCRIPTOR_ADDRESS_LENGTH,
            is_last=is_last,
        )

    def note_sending(self, sending: Sending) -> int:
        """Return how many descriptors have gone out; the session may have ended over it."""
        if sending.failure is not None:
            self.abort(f"failed with exception: {sending.failure}")
        self._note_offer(sending.result, sending.sent > 0)
        return sending.sent

    def send_subscription_descriptor(
        self, correlation_id: int, subscription_id: int, stream_id: int, channel: str
    ) -> bool:
        """Send a recording subscription; False under back pressure: try again later."""
        if self._queue or self._publication is None or self.is_done:
            return False
        return self._offer(
            responses.subscription_descriptor(
                self.session_id, correlation_id, subscription_id, stream_id, channel
            )
        )

    def _send_response(
        self,
        correlation_id: int,
        relevant_id: int,
        code: ControlResponseCode,
        error_message: str = "",
    ) -> None:
        self._send(
            responses.control_response(
                self.session_id, correlation_id, relevant_id, code, error_message
            )
        )

    def _send(self, message: bytes) -> None:
        if self.is_done or self._publication is None:
            return
        if self._queue or not self._offer(message):
            self._queue.append(message)
            self._answer_all()
            self._queued_length += len(message)
            if self._queued_length > MAX_QUEUED_LENGTH:
                self.abort(f"{len(self._queue)} responses wait to be read, and no more are kept")

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
        """Draw the conclusions from what an offer has answered."""
        if any_sent:
            self._activity_deadline_ms = None
        if result == _NOT_CONNECTED:
            self.abort(RESPONSE_NOT_CONNECTED)
        elif result in (_CLOSED, _MAX_POSITION_EXCEEDED):
            self.abort(f"control response publication cannot send any more: {result}")
        elif result < 0 and not any_sent and self._activity_deadline_ms is None:
            self._activity_deadline_ms = self._now_ms + self._connect_timeout_ms
            if self._publication is not None:
                self._position_before = self._publication.position

    def _has_been_sent_to(self) -> bool:
        """Whether something has gone out, natively, since this session could send nothing."""
        publication = self._publication
        if publication is None or publication.position == self._position_before:
            return False
        self._activity_deadline_ms = None
        return True

    def _drain(self) -> None:
        """Send what waits, as far as it can be sent."""
        while self._queue and not self.is_done and self._offer(self._queue[0]):
            self._queued_length -= len(self._queue.popleft())
