"""A control session: a request stream, a response stream, and what is matched between them.

One request is under way at a time, under a lock. What else comes on the response stream is
sorted: pings are dropped, recording signals and errors that answer no pending request (a replay
that failed after it had started) are kept for whoever asks.

An archive pings its clients ten times a second and drops those that do not read, which an idle
Python program would not. So a small thread reads the response stream while nobody else does.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections import deque
from typing import Final, Protocol

from aerotape import _native
from aerotape.archive.protocol import ErrorCode
from aerotape.codecs import archive as codecs
from aerotape.codecs.runtime import HEADER, Message
from aerotape.errors import AeronTimeoutError, ArchiveError, ClosedError, CodecError

# How long one look at the response stream may take, so that Ctrl-C and a close are seen.
POLL_SLICE_NS: Final = 50_000_000
_FRAGMENT_LIMIT: Final = 64
_KEPT: Final = 4096

_NOT_CONNECTED: Final = -1
_CLOSED: Final = -4
_MAX_POSITION_EXCEEDED: Final = -5

# The messages that matter to a client. A newer archive may send others: they are skipped.
_EXPECTED_TEMPLATES: Final = frozenset(
    {
        codecs.ControlResponse.TEMPLATE_ID,
        codecs.Challenge.TEMPLATE_ID,
        codecs.RecordingDescriptor.TEMPLATE_ID,
        codecs.RecordingSignalEvent.TEMPLATE_ID,
    }
)


class Request(Protocol):
    """A request of the control protocol: the session puts in who asks and for what answer."""

    control_session_id: int
    correlation_id: int

    def encode(self) -> bytes: ...


class ControlSession:
    """The state of one connection to an archive. Thread-safe."""

    def __init__(
        self,
        aeron: _native.AeronClient,
        publication: _native.ExclusivePublication,
        subscription: _native.Subscription,
        timeout_ns: int,
    ) -> None:
        self.control_session_id: int | None = None
        self.timeout_ns = timeout_ns
        self._aeron = aeron
        self._publication = publication
        self._subscription = subscription
        self._lock = threading.RLock()
        self._closed_because: str | None = None
        self._awaited: int | None = None
        self._answers: deque[codecs.ControlResponse | codecs.Challenge] = deque()
        self._descriptors: list[codecs.RecordingDescriptor] = []
        self._signals: deque[codecs.RecordingSignalEvent] = deque(maxlen=_KEPT)
        self._errors: deque[ArchiveError] = deque(maxlen=_KEPT)

    @property
    def publication(self) -> _native.ExclusivePublication:
        """The request stream."""
        return self._publication

    @property
    def subscription(self) -> _native.Subscription:
        """The response stream."""
        return self._subscription

    @property
    def is_closed(self) -> bool:
        """Whether the session is over, by `close` or since the archive went away."""
        return self._closed_because is not None

    # -- requests ------------------------------------------------------------------------------

    def request(self, message: Request, what: str) -> codecs.ControlResponse:
        """Send a request and return the answer, which is OK.

        Args:
            what: what is asked for, for error messages: "start recording".

        Raises:
            ArchiveError: the archive answered with an error.
            AeronTimeoutError: no answer in time.
            ClosedError: the session is closed or the archive went away.
        """
        with self._lock:
            correlation_id = self._send_request(message, what)
            answer = self._await_answer(correlation_id, what)
            self._check(answer, correlation_id, what)
            return answer

    def request_descriptors(
        self, message: Request, count: int, what: str
    ) -> list[codecs.RecordingDescriptor]:
        """Send a request that lists recordings and return up to `count` descriptors.

        The timeout runs anew with each descriptor. Raises as `request`.
        """
        with self._lock:
            self._descriptors = []
            correlation_id = self._send_request(message, what)
            deadline_ns = time.monotonic_ns() + self.timeout_ns
            seen = 0
            while len(self._descriptors) < count:
                answer = self._take_answer(correlation_id)
                if answer is not None:
                    if answer.code != codecs.ControlResponseCode.RECORDING_UNKNOWN:
                        self._check(answer, correlation_id, what)
                    break
                if len(self._descriptors) > seen:
                    seen = len(self._descriptors)
                    deadline_ns = time.monotonic_ns() + self.timeout_ns
                self._wait(deadline_ns, correlation_id, what)
            self._awaited = None
            return self._descriptors

    def send(self, message: bytes, what: str) -> None:
        """Send a message that has no answer. Raises as `request`, but for ArchiveError."""
        with self._lock:
            self._ensure_open(what)
            self._offer(message, what)

    def _send_request(self, message: Request, what: str) -> int:
        self._ensure_open(what)
        assert self.control_session_id is not None, "requests come after the handshake"
        correlation_id = self._aeron.next_correlation_id()
        message.control_session_id = self.control_session_id
        message.correlation_id = correlation_id
        self.expect(correlation_id)
        self._offer(message.encode(), what)
        return correlation_id

    def expect(self, correlation_id: int) -> None:
        """Let the answer to this request be kept, and that to an earlier one be dropped."""
        self._awaited = correlation_id
        self._answers.clear()

    def _offer(self, message: bytes, what: str) -> None:
        result = self._publication.offer(message)
        if result in (-2, -3):
            result = self._publication.offer_within(message, self.timeout_ns)
        if result > 0:
            return
        if result == _NOT_CONNECTED:
            raise self._gone(what, "its request stream has no subscriber any more")
        if result == _CLOSED:
            raise self._gone(what, "the request stream is closed")
        if result == _MAX_POSITION_EXCEEDED:
            raise self._gone(what, "the request stream is at its last position; connect again")
        raise AeronTimeoutError(
            f"cannot {what}: the archive at {self._publication.channel} has not read requests "
            f"for {self.timeout_ns / 1e9:g} s (back pressure)"
        )

    # -- answers -------------------------------------------------------------------------------

    def await_handshake(
        self, correlation_id: int, what: str, deadline_ns: int
    ) -> codecs.ControlResponse | codecs.Challenge:
        """Wait for the answer to a connect request or challenge response."""
        while True:
            for answer in self._answers:
                if answer.correlation_id == correlation_id:
                    self._answers.clear()
                    return answer
            self._wait(deadline_ns, correlation_id, what, must_be_connected=False)

    def _await_answer(self, correlation_id: int, what: str) -> codecs.ControlResponse:
        deadline_ns = time.monotonic_ns() + self.timeout_ns
        while True:
            answer = self._take_answer(correlation_id)
            if answer is not None:
                return answer
            self._wait(deadline_ns, correlation_id, what)

    def _take_answer(self, correlation_id: int) -> codecs.ControlResponse | None:
        while self._answers:
            answer = self._answers.popleft()
            is_ours = answer.correlation_id == correlation_id
            if is_ours and isinstance(answer, codecs.ControlResponse):
                self._awaited = None
                return answer
        return None

    def _wait(
        self, deadline_ns: int, correlation_id: int, what: str, must_be_connected: bool = True
    ) -> None:
        remaining_ns = deadline_ns - time.monotonic_ns()
        if remaining_ns <= 0:
            self._awaited = None
            raise AeronTimeoutError(
                f"cannot {what}: no answer from the archive at {self._publication.channel} "
                f"(stream {self._publication.stream_id}) within {self.timeout_ns / 1e9:g} s, "
                f"correlation id {correlation_id}"
            )
        timeout_ns = min(remaining_ns, POLL_SLICE_NS)
        if must_be_connected:
            self._poll_connected(what, timeout_ns)
        else:
            self._poll(timeout_ns)

    def _check(self, answer: codecs.ControlResponse, correlation_id: int, what: str) -> None:
        if answer.code != codecs.ControlResponseCode.OK:
            raise error_of(answer, f"cannot {what}")

    def _poll(self, timeout_ns: int) -> int:
        """Look at the response stream, wait for it, sort what comes; return how much it was."""
        messages = self._subscription.poll(_FRAGMENT_LIMIT, timeout_ns)
        for fields in messages:
            try:
                message = _decode(fields[0])
            except CodecError as error:
                # One bad message must not cost those that came with it.
                text = f"the archive sent what cannot be read: {error}"
                self._errors.append(ArchiveError(text))
                continue
            if message is not None:
                self._sort(message)
        return len(messages)

    def _sort(self, message: Message) -> None:
        if isinstance(message, codecs.ControlResponse):
            if self._is_other_session(message.control_session_id):
                return
            if message.correlation_id == self._awaited:
                self._answers.append(message)
            elif message.code == codecs.ControlResponseCode.ERROR:
                self._errors.append(error_of(message, "the archive reports an error"))
        elif isinstance(message, codecs.Challenge):
            self._answers.append(message)
        elif isinstance(message, codecs.RecordingDescriptor):
            if message.correlation_id == self._awaited:
                self._descriptors.append(message)
        elif isinstance(message, codecs.RecordingSignalEvent):
            self._keep_signal(message)

    def _keep_signal(self, signal: codecs.RecordingSignalEvent) -> None:
        if not self._is_other_session(signal.control_session_id):
            self._signals.append(signal)

    def _is_other_session(self, control_session_id: int) -> bool:
        return self.control_session_id not in (None, control_session_id)

    # -- what comes unasked --------------------------------------------------------------------

    def service(self, timeout_ns: int = 0, what: str = "go on") -> None:
        """Look at the response stream unless someone else is doing so.

        Args:
            timeout_ns: how long to wait for something to come.
            what: what the caller is at, for error messages.

        Raises:
            ClosedError: the archive went away.
        """
        if not self._lock.acquire(blocking=False):
            # Whoever has the lock is reading; do not turn the caller's loop into a busy one.
            time.sleep(timeout_ns / 1e9)
            return
        try:
            if self._closed_because is None:
                self._poll_connected(what, timeout_ns)
        finally:
            self._lock.release()

    def ensure_connected(self, what: str) -> None:
        """Raise ClosedError unless the archive is there."""
        with self._lock:
            self._ensure_open(what)
            self._poll_connected(what, 0)

    def _poll_connected(self, what: str, timeout_ns: int) -> None:
        if not self._poll(timeout_ns) and not self._subscription.is_connected:
            raise self._gone(what, "its response stream has ended")

    def take_errors(self) -> list[ArchiveError]:
        """Return and forget the errors that answered no request, oldest first."""
        with self._lock:
            errors = list(self._errors)
            self._errors.clear()
            return errors

    def take_error(self, correlation_id: int) -> ArchiveError | None:
        """Return and forget the error that came later for a request that had been answered."""
        with self._lock:
            for error in self._errors:
                if error.correlation_id == correlation_id:
                    self._errors.remove(error)
                    return error
            return None

    def take_signals(self) -> list[codecs.RecordingSignalEvent]:
        """Return and forget the recording signals, oldest first."""
        with self._lock:
            signals = list(self._signals)
            self._signals.clear()
            return signals

    # -- the end -------------------------------------------------------------------------------

    def _ensure_open(self, what: str) -> None:
        if self._closed_because is not None:
            raise ClosedError(f"cannot {what}: {self._closed_because}")

    def _gone(self, what: str, why: str) -> ClosedError:
        self._closed_because = (
            f"the archive at {self._publication.channel} (stream {self._publication.stream_id}) "
            f"went away: {why}"
        )
        return ClosedError(f"cannot {what}: {self._closed_because}")

    def close(self) -> None:
        """Tell the archive and close both streams. Idempotent."""
        with self._lock:
            if self._closed_because is None and self.control_session_id is not None:
                goodbye = codecs.CloseSessionRequest(control_session_id=self.control_session_id)
                with contextlib.suppress(ClosedError):  # the media driver went away before
                    self._publication.offer(goodbye.encode())
            if self._closed_because is None:
                self._closed_because = "the client is closed"
            self._publication.close()
            self._subscription.close()


class IdleReader:
    """The thread that reads a session's response stream while nobody else does."""

    def __init__(self, session: ControlSession, interval_ns: int) -> None:
        self._stop = threading.Event()
        # The thread must not keep a forgotten client alive.
        reference = weakref.ref(session, lambda _: self._stop.set())
        self._thread = threading.Thread(
            target=_read_while_idle,
            args=(reference, self._stop, interval_ns / 1e9),
            name="aerotape-archive-client",
            daemon=True,
        )
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()


def _read_while_idle(
    reference: weakref.ref[ControlSession], stop: threading.Event, interval_s: float
) -> None:
    while not stop.wait(interval_s):
        session = reference()
        if session is None or session.is_closed:
            return
        try:
            session.service()
        except ClosedError:
            return  # whoever uses the client next is told
        del session


def error_of(response: codecs.ControlResponse, what: str) -> ArchiveError:
    """Return the exception for a response that is not OK."""
    if response.code != codecs.ControlResponseCode.ERROR:
        text = f"{what}: unexpected response code {response.code.name}"
        return ArchiveError(text, ErrorCode.GENERIC, response.correlation_id)
    code = response.relevant_id
    name = ErrorCode(code).name if code in ErrorCode.__members__.values() else "unknown"
    return ArchiveError(
        f"{what}: {response.error_message} (error code {code} {name})",
        code,
        response.correlation_id,
    )


def _decode(payload: bytes) -> Message | None:
    if len(payload) >= HEADER.size:
        _, template_id, schema_id, _ = HEADER.unpack_from(payload)
        if schema_id == codecs.SCHEMA_ID and template_id not in _EXPECTED_TEMPLATES:
            return None
    return codecs.decode(payload)
