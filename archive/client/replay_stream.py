"""A replay's stream as its reader sees it: messages until the end, and certainty which end it was.

A subscription alone cannot tell a replay that is complete from one that was aborted: both just
end. So a `ReplayStream` knows from the recording where it has to end, watches the image, and asks
the archive for the error that came with an early end. What it has to wait for it leaves, as
`Steps`, to the face that it is read through: `Replay` or `AsyncReplay`.
"""

from __future__ import annotations

import contextlib
import time
from typing import Final, Self

from aerotape import _native
from aerotape.archive.client.call import Call, Pause, Poll, Steps, nothing
from aerotape.archive.client.image_facts import ImageFacts
from aerotape.archive.client.query_requests import stop_position
from aerotape.archive.client.replay_requests import stop_request
from aerotape.archive.client.session import POLL_SLICE_NS, ControlSession
from aerotape.archive.protocol import NULL_POSITION, ErrorCode
from aerotape.backlog import Backlog
from aerotape.errors import AeronTimeoutError, ArchiveError, ClosedError, ReplayError
from aerotape.records import record

_FRAGMENT_LIMIT: Final = 512
_CONNECT_POLL_NS: Final = 1_000_000
_STOP_POLL_NS: Final = 10_000_000
# Between the end of a recording's stream and its stop position in the catalog.
_STOP_POSITION_GRACE_NS: Final = 1_000_000_000
# For what was sent before an error, when the stream does not tell that it has ended.
_AFTER_ERROR_NS: Final = 1_000_000_000


@record(frozen=True, slots=True)
class ReplayOrder:
    """What was asked for.

    Attributes:
        recording_id: the recording.
        start_position: where the replay begins, bytes.
        end_position: where it has to end, bytes; None when it follows a live recording, or a
            counter, as far as that goes.
        is_bounded: whether a counter bounds it.
        correlation_id: of the replay request; -1 when there was none.
        replay_session_id: as the archive gave it, None when it was not asked.
        session_id: of the replay's publication.
        recorded_as: session and stream id of the recording, which its messages have.
    """

    recording_id: int
    start_position: int
    end_position: int | None
    is_bounded: bool
    correlation_id: int
    replay_session_id: int | None
    session_id: int
    recorded_as: tuple[int, int] | None = None


class ReplayStream(ImageFacts):
    """The state of a replay that is being read.

    Attributes:
        order: what was asked for.
        backlog: messages that were read and not given out yet.
    """

    def __init__(self, order: ReplayOrder, session: ControlSession, timeout_ns: int | None) -> None:
        """Begin; `attach` gives the stream to read."""
        super().__init__(order.start_position)
        self.order = order
        self.backlog = Backlog()
        self._session = session
        self._timeout_ns = timeout_ns
        self._subscription: _native.Subscription | None = None
        self._is_over = False
        self._error: ArchiveError | None = None
        # How far the stream was when it was last seen to move, the error being known.
        self._quiet_position = -1
        self._quiet_since_ns = 0

    @classmethod
    def empty(cls, session: ControlSession, recording_id: int, position: int) -> Self:
        """Return a replay that has nothing to replay."""
        stream = cls(
            ReplayOrder(recording_id, position, position, False, -1, None, 0), session, None
        )
        stream._is_over = True
        return stream

    def attach(self, subscription: _native.Subscription) -> None:
        """Read from this subscription, and close it at the end."""
        self._subscription = subscription

    @property
    def is_closed(self) -> bool:
        """Whether it has ended or was closed."""
        return self._subscription is None

    # -- reading -------------------------------------------------------------------------------

    def await_image(self) -> Steps[None]:
        """Wait for the replay's stream to appear."""
        subscription = self._subscription
        if subscription is None:
            return
        deadline_ns = time.monotonic_ns() + self._session.timeout_ns
        while (image := subscription.image_by_session_id(self.order.session_id)) is None:
            yield Pause(_CONNECT_POLL_NS, f"begin {self._describe(self.order.start_position)}")
            self._raise_error_at_length(self.order.start_position)
            if time.monotonic_ns() >= deadline_ns:
                self._raise_error(self.order.start_position)
                raise AeronTimeoutError(
                    f"no stream for {self._describe(self.order.start_position)} on "
                    f"{subscription.channel} stream {subscription.stream_id} within "
                    f"{self._session.timeout_ns / 1e9:g} s"
                )
        self._image = image

    def fetch(self) -> Steps[None]:
        """Have messages in the backlog; none at the end."""
        idle_since_ns = time.monotonic_ns()
        idle_position = self.position
        while self._subscription is not None:
            if self._is_complete():
                self.release()
                break
            yield Poll(
                self._subscription,
                _FRAGMENT_LIMIT,
                POLL_SLICE_NS,
                self.backlog,
                self.order.recorded_as,
            )
            if self.backlog:
                return
            position = self.position
            if position > idle_position:  # padding, or fragments of a message yet incomplete
                idle_position, idle_since_ns = position, time.monotonic_ns()
            elif self._has_ended():
                yield from self._check_early_end(position)
                self._is_over = True
                self.release()
            else:
                yield from self._check_alive(position, idle_since_ns)

    def _is_complete(self) -> bool:
        end = self.order.end_position
        return end is not None and self.position >= end

    def _has_ended(self) -> bool:
        image = self._image
        return image is None or image.is_closed or image.is_end_of_stream

    def _check_alive(self, position: int, idle_since_ns: int) -> Steps[None]:
        yield Pause(0, f"go on with {self._describe(position)}")
        self._raise_error_at_length(position)
        waited_ns = time.monotonic_ns() - idle_since_ns
        if self._timeout_ns is not None and waited_ns >= self._timeout_ns:
            self._raise_error(position)
            raise AeronTimeoutError(
                f"no message of {self._describe(position)} for {self._timeout_ns / 1e9:g} s"
            )

    def _check_early_end(self, position: int) -> Steps[None]:
        """Raise unless the stream has ended where it may."""
        yield Pause(0, f"end {self._describe(position)}")
        self._raise_error(position)
        if self.order.is_bounded:
            return  # it ends where the counter last stood, which only the archive saw
        deadline_ns = time.monotonic_ns() + _STOP_POSITION_GRACE_NS
        while True:
            stopped_at: int = yield stop_position(self.order.recording_id)
            if stopped_at != NULL_POSITION or time.monotonic_ns() >= deadline_ns:
                break
            yield Pause(_STOP_POLL_NS)
        if stopped_at != NULL_POSITION and position >= stopped_at:
            return
        self._raise_error(position)
        raise self._ended_by_archive(
            f"{self._describe(position)} ended early: it was stopped or aborted",
            ErrorCode.GENERIC,
            position,
        )

    def _heard_error(self) -> ArchiveError | None:
        if self._error is None:
            self._error = self._session.take_error(self.order.correlation_id)
        return self._error

    def _raise_error_at_length(self, position: int) -> None:
        """Raise the archive's error once nothing comes of what it had sent before.

        The error takes another way than the stream, and may be here first.
        """
        if self._heard_error() is None:
            return
        now_ns = time.monotonic_ns()
        if position > self._quiet_position:
            self._quiet_position, self._quiet_since_ns = position, now_ns
        elif now_ns >= self._quiet_since_ns + _AFTER_ERROR_NS:
            self._raise_error(position)

    def _raise_error(self, position: int) -> None:
        error = self._heard_error()
        if error is not None:
            raise self._ended_by_archive(
                f"{self._describe(position)} was aborted: {error}", error.error_code, position
            ) from error

    def _ended_by_archive(self, message: str, code: int, position: int) -> ReplayError:
        self._is_over = True
        self.release()
        replay_session_id = self.order.replay_session_id
        return ReplayError(
            message,
            code,
            self.order.correlation_id,
            self.order.recording_id,
            -1 if replay_session_id is None else replay_session_id,
            position,
        )

    def _describe(self, position: int) -> str:
        end = self.order.end_position
        to = "" if end is None else f" of {end}"
        return f"the replay of recording {self.order.recording_id} at position {position}{to}"

    # -- the end -------------------------------------------------------------------------------

    def release(self) -> bool:
        """Give up the stream; return whether the archive may still be replaying. Idempotent."""
        self._is_over = self._is_over or self._is_complete()
        self._is_over = self._is_over or (self._image is not None and self._has_ended())
        subscription, self._subscription = self._subscription, None
        image = self._give_up_image()
        if image is not None:
            image.release()
        if subscription is not None:
            subscription.close()
        is_running, self._is_over = not self._is_over, True
        return is_running

    def stop(self) -> Steps[None]:
        """Stop the replay if it has not ended, and close its subscription. Idempotent."""
        if self.release():
            # An archive that is gone has stopped the replay too.
            with contextlib.suppress(ClosedError, AeronTimeoutError, ArchiveError):
                yield self._stop_call()

    def abandon(self) -> None:
        """As `stop`, without waiting for the archive's answer."""
        if self.release():
            call = self._stop_call()
            self._session.tell(call.message, call.what)

    def _stop_call(self) -> Call[None]:
        replay_session_id = self.order.replay_session_id
        assert replay_session_id is not None, "an empty replay is over from the start"
        return Call(stop_request(replay_session_id), f"stop replay {replay_session_id}", nothing)
