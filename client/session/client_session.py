"""A client's control session: request stream, response stream, and the requests pending on them.

It dispatches the messages of the response stream: responses and
listed items go to their requests, recording signals and errors that belong to no pending request
(a replay that failed after it had started) are stored for later calls. It blocks in `read` only,
where one thread at a time polls the response stream and the others wait for it.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from aerotape import _native, errors
from aerotape.aeron import ADMIN_ACTION, BACK_PRESSURED, CLOSED, NOT_CONNECTED
from aerotape.client.session.request import Call, Listing, PendingRequest
from aerotape.client.session.response_errors import error_of
from aerotape.client.session.signals import SignalQueue, signal_of
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated import ledger_control
from aerotape.codecs.runtime import HEADER, Message
from aerotape.message import MessageBuffer
from aerotape.protocol import NULL_VALUE
from aerotape.uninterrupted import call_uninterrupted

_FRAGMENT_LIMIT: Final = 64
_KEPT_ERRORS: Final = 4096

# The messages that a client handles. Others, of a newer archive, are skipped.
_EXPECTED_TEMPLATES: Final = frozenset(
    {
        codecs.ControlResponse.TEMPLATE_ID,
        codecs.Challenge.TEMPLATE_ID,
        codecs.RecordingDescriptor.TEMPLATE_ID,
        codecs.RecordingSubscriptionDescriptor.TEMPLATE_ID,
        codecs.RecordingSignalEvent.TEMPLATE_ID,
    }
)


class ClientSession:
    """The state of one connection to an archive. Thread-safe.

    Attributes:
        publication: the request stream.
        request_channel: of the archive, as the caller gave it.
        subscription: the response stream.
        control_session_id: the session's id at the archive, None during the handshake.
        archive_version: the protocol version of the archive, 0 while unknown.
        archive_id: the archive's id; -1 while unknown, or if it has none.
        knows_ledgers: whether the archive knows the requests for ledgers and scopes.
        timeout_ns: how long a request may take.
        was_closed_here: whether `close` was called.
        signals: the signals that were not taken yet.
        on_news: called after messages were dispatched and at the end, in the thread that reads.
    """

    def __init__(
        self,
        aeron: _native.AeronClient,
        publication: _native.ExclusivePublication,
        subscription: _native.Subscription,
        timeout_ns: int,
    ) -> None:
        self.control_session_id: int | None = None
        self.archive_version = 0
        self.archive_id = NULL_VALUE
        self.knows_ledgers = False
        self.timeout_ns = timeout_ns
        self.was_closed_here = False
        self.signals = SignalQueue()
        self.aeron = aeron
        self.publication = publication
        self.request_channel = publication.channel
        self.subscription = subscription
        self._send_lock = threading.Lock()
        # Guards all attributes below. Not a condition, for the reason in `uninterrupted`.
        self._lock = threading.RLock()
        # Each is acquired, and released when something was read.
        self._waiters: list[threading.Lock] = []
        self._reader_thread: int | None = None
        self._closed_because: str | None = None
        self._pending: dict[int, PendingRequest] = {}
        # The listing that the archive is sending, while it is pending.
        self._listing: PendingRequest | None = None
        # Read and not dispatched yet: after an interrupt the next reader continues with it.
        self._arrived = MessageBuffer()
        self._decoded: tuple[object, Message | None] | None = None
        self.on_news: Callable[[], None] = lambda: None
        self._signal_queues = [self.signals]
        self._errors: deque[errors.ArchiveError] = deque(maxlen=_KEPT_ERRORS)

    @property
    def is_closed(self) -> bool:
        """Whether the session has ended, by `close` or because the archive went away."""
        return self._closed_because is not None

    # -- sending -------------------------------------------------------------------------------

    def begin(self, request: Call[Any] | Listing) -> PendingRequest:
        """Prepare a request: collect the responses to it from now on."""
        message, what = request.message, request.what
        self.ensure_open(what)
        if message.SCHEMA_ID == ledger_control.SCHEMA_ID and not self.knows_ledgers:
            # It would not respond.
            raise errors.IllegalOperationError(
                f"{what}: ILLEGAL_OP: the archive speaks only Aeron's control protocol, which has "
                "no ledgers, and no scope other than that of the archive's own recordings"
            )
        assert self.control_session_id is not None, "requests come after the handshake"
        message.control_session_id = self.control_session_id
        message.correlation_id = self.aeron.next_correlation_id()
        count = request.count if isinstance(request, Listing) else 0
        pending = PendingRequest(message.correlation_id, what, message.encode(), count)
        return self.expect(pending)

    def expect(self, pending: PendingRequest) -> PendingRequest:
        """Collect the responses to a request until it is done, or `forget` is called."""
        with self._lock:
            self._pending[pending.correlation_id] = pending
        return pending

    def forget(self, pending: PendingRequest) -> None:
        """Drop further responses to a request. Idempotent."""
        with self._lock:
            self._pending.pop(pending.correlation_id, None)

    def take_turn(self, listing: PendingRequest) -> PendingRequest | None:
        """Claim the session's one listing; return the listing that has it, None once it is ours.

        An archive refuses a second listing of a session while one is active.
        """
        with self._lock:
            active = self._listing
            if active is not None and active.correlation_id in self._pending:
                return active
            self._listing = listing
            return None

    def abandon(self, pending: PendingRequest, call: Call[Any] | Listing) -> None:
        """Stop waiting for a request; if the archive grants it after all, undo it."""
        if not pending.is_sent:
            self.forget(pending)
            return
        if isinstance(call, Listing):
            return  # the archive sends it nevertheless, and the next listing waits for its end
        undo = call.undo
        if undo is None or pending.failure is not None:
            self.forget(pending)
            return

        def undo_granted() -> None:
            answer = pending.answer
            if not isinstance(answer, codecs.ControlResponse):
                return
            if answer.code == codecs.ControlResponseCode.OK:
                self.send_unanswered(undo(answer))

        with self._lock:
            if not pending.is_done:
                pending.on_done = undo_granted
                return
        undo_granted()

    def send_unanswered(self, call: Call[Any]) -> None:
        """Try to send a request, and ignore the response."""
        with contextlib.suppress(errors.ClosedError):
            pending = self.begin(call)
            if not self.offer(pending):
                self.forget(pending)

    def offer(
        self, message: PendingRequest, publication: _native.ExclusivePublication | None = None
    ) -> bool:
        """Try once to send a request; False when there is no room yet.

        Args:
            publication: another request stream than the session's.
        """
        self.ensure_open(message.what)
        if publication is not None:
            call_uninterrupted(message.results, publication.offer, message.data)
            return message.is_sent
        with self._send_lock:
            call_uninterrupted(message.results, self.publication.offer, message.data)
            return self._is_sent(message.results[-1], message.what)

    def back_pressure(
        self, what: str, publication: _native.ExclusivePublication | None = None
    ) -> errors.AeronTimeoutError:
        """Return the error for an archive that does not read requests."""
        channel = (publication or self.publication).channel
        return errors.AeronTimeoutError(
            f"cannot {what}: the archive at {channel} has not read requests "
            f"for {self.timeout_ns / 1e9:g} s (back pressure)"
        )

    def no_answer(self, pending: PendingRequest) -> errors.AeronTimeoutError:
        """Return the error for a missing response."""
        return errors.AeronTimeoutError(
            f"cannot {pending.what}: no response from the archive at {self.publication.channel} "
            f"(stream {self.publication.stream_id}) within {self.timeout_ns / 1e9:g} s, "
            f"correlation id {pending.correlation_id}"
        )

    def _is_sent(self, result: int, what: str) -> bool:
        if result > 0:
            return True
        if result in (BACK_PRESSURED, ADMIN_ACTION):
            return False
        if result == NOT_CONNECTED:
            raise self._gone(what, "its request stream has no subscriber")
        if result == CLOSED:
            raise self._gone(what, "the request stream is closed")
        raise self._gone(what, "the request stream is at its last position; connect again")

    # -- reading -------------------------------------------------------------------------------

    @property
    def has_pending(self) -> bool:
        """Whether a request is pending."""
        return bool(self._pending)

    def read(
        self, timeout_ns: int, is_enough: Callable[[], bool] = lambda: False, what: str = "continue"
    ) -> None:
        """Poll the response stream, or wait while another thread does, and dispatch its messages.

        Args:
            timeout_ns: how long to wait for a message.
            is_enough: returns whether there is nothing left to wait for.
            what: the caller's operation, for error messages.
        """
        this_thread = threading.get_ident()
        done: list[PendingRequest] = []
        waiter = None
        try:
            with self._lock:
                if is_enough():
                    return
                # This thread's own mark is left only by an interrupt.
                if self._reader_thread in (None, this_thread):
                    self._reader_thread = this_thread
                else:
                    waiter = threading.Lock()
                    waiter.acquire()
                    self._waiters.append(waiter)
            if waiter is not None:
                waiter.acquire(timeout=timeout_ns / 1e9)
                return
            if not self._arrived:
                self._arrived.take(self.subscription.poll, _FRAGMENT_LIMIT, timeout_ns)
            messages = self._sort_arrived(done)
        except errors.ClosedError:  # by another thread, just now
            self.ensure_open(what)
            raise
        finally:
            # No call before the mark is removed, so that no interrupt can occur before.
            with self._lock:
                if self._reader_thread == this_thread:
                    self._reader_thread = None
                    self._wake_waiters()
            _call_on_done(done)
        if messages:
            self.on_news()
        # Before its response to the connect request the archive may not be connected yet.
        has_begun = self.control_session_id is not None
        if has_begun and not messages and not self.subscription.is_connected:
            raise self._gone(what, "its response stream has ended")

    def service(self, timeout_ns: int = 0, what: str = "continue") -> None:
        """As `read`, unless the session has ended."""
        if self._closed_because is None:
            self.read(timeout_ns, what=what)

    def ensure_open(self, what: str) -> None:
        """Raise ClosedError when the session has ended."""
        if self._closed_because is not None:
            raise errors.ClosedError(f"cannot {what}: {self._closed_because}")

    def _wake_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.release()

    def _sort_arrived(self, done: list[PendingRequest]) -> list[Message]:
        """Dispatch the messages that were read; one that was interrupted is dispatched again."""
        messages = []
        while self._arrived:
            fields = self._arrived.oldest()
            if self._decoded is None or self._decoded[0] is not fields:
                self._decoded = fields, self._decode(fields[0])
            message = self._decoded[1]
            if message is not None:
                with self._lock:
                    self._sort(message, done)
                messages.append(message)
            self._arrived.drop_oldest()
        return messages

    def _decode(self, payload: bytes) -> Message | None:
        try:
            return decode_answer(payload)
        except errors.CodecError as error:
            # One invalid message must not lose the others of the batch.
            text = f"the archive sent an invalid message: {error}"
            self._errors.append(errors.ArchiveError(text))
            return None

    def _sort(self, message: Any, done: list[PendingRequest]) -> None:
        if self.control_session_id not in (None, message.control_session_id):
            return  # of another session
        if isinstance(message, codecs.RecordingSignalEvent):
            signal = signal_of(message)
            for queue in self._signal_queues:
                queue.put(signal)
            return
        pending = self._pending.get(message.correlation_id)
        if isinstance(message, codecs.ControlResponse | codecs.Challenge):
            if pending is not None:
                pending.answer = message
            elif (
                isinstance(message, codecs.ControlResponse)
                and message.code == codecs.ControlResponseCode.ERROR
            ):
                self._errors.append(error_of(message, "the archive reports an error"))
        elif pending is not None and (not pending.items or pending.items[-1] is not message):
            pending.items.append(message)
        if pending is not None and pending.is_done:
            done.append(pending)
            del self._pending[pending.correlation_id]

    # -- asynchronous messages --------------------------------------------------------------------

    def take_errors(self) -> list[errors.ArchiveError]:
        """Return and remove the errors that belong to no pending request, oldest first."""
        with self._lock:
            errors = list(self._errors)
            self._errors.clear()
            return errors

    def take_error(self, correlation_id: int) -> errors.ArchiveError | None:
        """Return and remove an error that arrived after the response to its request."""
        with self._lock:
            for error in self._errors:
                if error.correlation_id == correlation_id:
                    self._errors.remove(error)
                    return error
            return None

    def add_signal_queue(self, queue: SignalQueue) -> None:
        """Add a queue for the signals that arrive from now on."""
        with self._lock:
            self._signal_queues.append(queue)

    def remove_signal_queue(self, queue: SignalQueue) -> None:
        """Remove a queue. Idempotent."""
        with self._lock:
            if queue in self._signal_queues:
                self._signal_queues.remove(queue)

    # -- the end -------------------------------------------------------------------------------

    def _gone(self, what: str, why: str) -> errors.ClosedError:
        self._end(
            f"the archive at {self.publication.channel} (stream {self.publication.stream_id}) "
            f"went away: {why}"
        )
        return errors.ClosedError(f"cannot {what}: {self._closed_because}")

    def _end(self, because: str) -> None:
        """Refuse further requests, and fail the pending ones."""
        with self._lock:
            if self._closed_because is None:
                self._closed_because = because
            failed = list(self._pending.values())
            self._pending.clear()
            for pending in failed:
                pending.failure = errors.ClosedError(
                    f"cannot {pending.what}: {self._closed_because}"
                )
            self._wake_waiters()
        _call_on_done(failed)
        self.on_news()

    def close(self) -> None:
        """Close the session at the archive, and both streams. Idempotent."""
        if self._closed_because is None and self.control_session_id is not None:
            request = codecs.CloseSessionRequest(control_session_id=self.control_session_id)
            with self._send_lock, contextlib.suppress(errors.ClosedError):  # the driver may be gone
                self.publication.offer(request.encode())
        self.was_closed_here = True
        self._end("the client is closed")
        self.publication.close()
        self.subscription.close()


def _call_on_done(done: list[PendingRequest]) -> None:
    for pending in done:
        if pending.on_done is not None:
            pending.on_done()


def decode_answer(payload: bytes) -> Message | None:
    """Decode a message of an archive; None for messages that a client does not handle."""
    if len(payload) >= HEADER.size:
        _, template_id, schema_id, _ = HEADER.unpack_from(payload)
        if schema_id == ledger_control.SCHEMA_ID:
            return ledger_control.decode(payload)
        if schema_id == codecs.SCHEMA_ID and template_id not in _EXPECTED_TEMPLATES:
            return None
    return codecs.decode(payload)
