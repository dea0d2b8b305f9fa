"""The stream of a replay: its messages, and whether it ended completely or was aborted.

A subscription alone does not distinguish a complete replay from an aborted one: both just end. So
a `ReplayStream` knows from the recording where it has to end, watches the image, and takes the
error of an early end from the session.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Final, Self

from aerotape import _native
from aerotape.archive.client.replay.image_reader import ImageReader
from aerotape.archive.client.requests.queries import stop_position
from aerotape.archive.client.requests.replays import stop_replay
from aerotape.archive.client.session.client_session import ClientSession
from aerotape.archive.client.session.exchange import exchange
from aerotape.archive.waiting import SLICE_NS, Fragments, Pause, Responses, Task
from aerotape.errors import AeronTimeoutError, ArchiveError, ClosedError, ReplayError
from aerotape.message import MessageBuffer
from aerotape.protocol import NULL_POSITION, ErrorCode

_FRAGMENT_LIMIT: Final = 512
_CONNECT_POLL_NS: Final = 1_000_000
_STOP_POLL_NS: Final = 10_000_000
# The most between the end of a recording's stream and its stop position in the catalog.
_STOP_POSITION_GRACE_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ReplayParameters:
    """The parameters of a replay.

    Attributes:
        end_position: where it has to end, bytes; None when it follows a live recording.
        is_bounded: whether a counter bounds it.
        correlation_id: of the replay request; -1 when there was none.
        replay_session_id: from the archive; None when there was no request.
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


class ReplayStream(ImageReader):
    """The state of a replay that is being read; `backlog` has messages not returned yet."""

    def __init__(
        self,
        parameters: ReplayParameters,
        session: ClientSession,
        timeout_ns: int | None,
        subscription: _native.Subscription | None,
    ) -> None:
        """Read from this subscription, and close it at the end."""
        super().__init__(parameters.start_position)
        self.parameters = parameters
        self.backlog = MessageBuffer()
        self._session = session
        self._timeout_ns = timeout_ns
        self.subscription = subscription
        self._is_over = False

    @classmethod
    def empty(cls, session: ClientSession, recording_id: int, position: int) -> Self:
        """Return an empty replay."""
        parameters = ReplayParameters(recording_id, position, position, False, -1, None, 0)
        stream = cls(parameters, session, None, None)
        stream._is_over = True
        return stream

    @property
    def is_closed(self) -> bool:
        """Whether it has ended or was closed."""
        return self.subscription is None

    # -- reading -------------------------------------------------------------------------------

    def await_image(self) -> Task[None]:
        """Wait for the replay's stream to appear."""
        subscription = self.subscription
        assert subscription is not None, "set before"
        deadline_ns = time.monotonic_ns() + self._session.timeout_ns
        while (image := subscription.image_by_session_id(self.parameters.session_id)) is None:
            what = f"begin {self._describe(self.parameters.start_position)}"
            yield Responses(self._session, what, _CONNECT_POLL_NS)
            if time.monotonic_ns() >= deadline_ns:
                self._raise_error(self.parameters.start_position)
                raise AeronTimeoutError(
                    f"no stream for {self._describe(self.parameters.start_position)} on "
                    f"{subscription.channel} stream {subscription.stream_id} within "
                    f"{self._session.timeout_ns / 1e9:g} s"
                )
        self._image = image

    def fetch(self) -> Task[None]:
        """Read messages into the backlog; none at the end."""
        idle_since_ns = time.monotonic_ns()
        idle_position = self.position
        while self.subscription is not None:
            if self._is_complete():
                self.release()
                break
            yield Fragments(
                self.subscription,
                self.backlog,
                _FRAGMENT_LIMIT,
                SLICE_NS,
                self.parameters.recorded_as,
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
        end = self.parameters.end_position
        return end is not None and self.position >= end

    def _has_ended(self) -> bool:
        image = self._image
        return image is None or image.is_closed or image.is_end_of_stream

    def _check_alive(self, position: int, idle_since_ns: int) -> Task[None]:
        yield Responses(self._session, f"continue {self._describe(position)}")
        waited_ns = time.monotonic_ns() - idle_since_ns
        if self._timeout_ns is not None and waited_ns >= self._timeout_ns:
            self._raise_error(position)
            raise AeronTimeoutError(
                f"no message of {self._describe(position)} for {self._timeout_ns / 1e9:g} s"
            )

    def _check_early_end(self, position: int) -> Task[None]:
        """Raise unless the stream has ended where it may."""
        yield Responses(self._session, f"end {self._describe(position)}")
        self._raise_error(position)
        if self.parameters.is_bounded:
            return  # it ends at the last value of the counter, known only to the archive
        deadline_ns = time.monotonic_ns() + _STOP_POSITION_GRACE_NS
        while True:
            asked = stop_position(self.parameters.recording_id)
            stopped_at = yield from exchange(self._session, asked)
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

    def _raise_error(self, position: int) -> None:
        error = self._session.take_error(self.parameters.correlation_id)
        if error is not None:
            raise self._ended_by_archive(
                f"{self._describe(position)} was aborted: {error}", error.error_code, position
            ) from error

    def _ended_by_archive(self, message: str, code: int, position: int) -> ReplayError:
        self._is_over = True
        self.release()
        replay_session_id = self.parameters.replay_session_id
        return ReplayError(
            message,
            code,
            self.parameters.correlation_id,
            self.parameters.recording_id,
            -1 if replay_session_id is None else replay_session_id,
            position,
        )

    def _describe(self, position: int) -> str:
        end = self.parameters.end_position
        to = "" if end is None else f" of {end}"
        return f"the replay of recording {self.parameters.recording_id} at position {position}{to}"

    # -- the end -------------------------------------------------------------------------------

    def release(self) -> bool:
        """Close the stream; return whether the archive may still be replaying. Idempotent."""
        self._is_over = self._is_over or self._is_complete()
        self._is_over = self._is_over or (self._image is not None and self._has_ended())
        subscription, self.subscription = self.subscription, None
        image = self._detach_image()
        if image is not None:
            image.release()
        if subscription is not None:
            subscription.close()
        is_running, self._is_over = not self._is_over, True
        return is_running

    def stop(self) -> Task[None]:
        """Stop the replay if it has not ended, and close its subscription. Idempotent."""
        if self.release() and self.parameters.replay_session_id is not None:
            # An archive that is gone has stopped the replay too.
            with contextlib.suppress(ClosedError, AeronTimeoutError, ArchiveError):
                yield from exchange(self._session, stop_replay(self.parameters.replay_session_id))

    def abandon(self) -> None:
        """As `stop`, without waiting for the response."""
        if self.release() and self.parameters.replay_session_id is not None:
            self._session.send_unanswered(stop_replay(self.parameters.replay_session_id))
