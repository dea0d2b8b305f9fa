"""Replays that a client reads: opening, messages, and whether one ended completely.

A subscription alone does not distinguish a complete replay from an aborted one: both just end. So
a `ReplayStream` knows from the recording where it has to end, watches the image, and takes the
error of an early end from the session.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import Final

from aerotape import _native
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.channel_uri import with_session_id
from aerotape.client import arguments, channels
from aerotape.client.queries import (
    check_scope,
    list_recording,
    max_recorded_position,
    stop_position,
)
from aerotape.client.replay.requests import ReplayTarget, start_replay, stop_replay
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.exchange import exchange
from aerotape.driver_tasks import add_subscription, bind_port
from aerotape.errors import (
    AeronTimeoutError,
    AerotapeError,
    ArchiveError,
    ClosedError,
    ConfigurationError,
    InvalidPositionError,
    ReplayError,
    UnknownRecordingError,
)
from aerotape.formatting import shown
from aerotape.frame_header import to_int32
from aerotape.message import MessageBuffer
from aerotape.protocol import (
    NULL_POSITION,
    NULL_VALUE,
    REPLAY_ALL_AND_FOLLOW,
    REPLAY_ALL_AND_STOP,
    ErrorCode,
)
from aerotape.waiting import SLICE_NS, Fragments, Pause, Responses, Task

_FRAGMENT_LIMIT: Final = 512
_CONNECT_POLL_NS: Final = 1_000_000
_STOP_POLL_NS: Final = 10_000_000
# The most between the end of a recording's stream and its stop position in the catalog.
_STOP_POSITION_GRACE_NS: Final = 1_000_000_000


class ImageReader:
    """Base of the readers of an image."""

    def __init__(self, position: int) -> None:
        """Start at a position, without an image."""
        self._image: _native.Image | None = None
        self._last_position = position

    @property
    def image(self) -> _native.Image | None:
        """The image; None before it is available and after it was detached."""
        return self._image

    @property
    def position(self) -> int:
        """The position read so far, bytes: the end of the frames taken."""
        if self._image is not None:
            self._last_position = max(self._last_position, self._image.position)
        return self._last_position

    def _detach_image(self) -> _native.Image | None:
        """Detach and return the image, retaining its position."""
        self._last_position = self.position
        image, self._image = self._image, None
        return image


class ReplayStream(ImageReader):
    """A replay that is being read.

    Attributes:
        end_position: where it has to end, bytes; None when it follows a live recording.
        replay_session_id: from the archive; None while it is not requested.
        backlog: messages that were read and not returned yet.
        recorded_as: recording, session and stream id, which its messages have.
    """

    def __init__(
        self,
        session: ClientSession,
        recording: RecordingDescriptor,
        start_position: int,
        end_position: int | None,
        timeout_ns: int | None = None,
    ) -> None:
        """Create an empty replay; `open` requests it.

        Args:
            timeout_ns: how long its reader waits for the next message; None: no limit.
        """
        super().__init__(start_position)
        self.recording_id = recording.recording_id
        self.start_position = start_position
        self.end_position = end_position
        self.replay_session_id: int | None = None
        self.recorded_as = recording.recording_id, recording.session_id, recording.stream_id
        self.backlog = MessageBuffer()
        self._session = session
        self._timeout_ns = timeout_ns
        self._subscription: _native.Subscription | None = None
        self._correlation_id = NULL_VALUE
        self._is_bounded = False
        self._is_over = True

    @property
    def is_closed(self) -> bool:
        """Whether it has ended or was closed."""
        return self._subscription is None

    # -- opening -------------------------------------------------------------------------------

    def open(self, target: ReplayTarget) -> Task[None]:
        """Request the replay, and wait for its stream."""
        channel = arguments.channel("channel", target.channel)
        subscription_id: int | None = None
        try:
            # Such a request needs the subscription, or its bound port.
            if channels.is_response_channel(channel):
                subscription_id = (yield from self._subscribe(channel, target)).registration_id
            elif channels.has_wildcard_port(channel):
                subscription = yield from self._subscribe(channel, target)
                channel = yield from bind_port(subscription, channel, self._session.timeout_ns)
            end = self.end_position
            answer = yield from start_replay(
                self._session,
                self.recording_id,
                replace(target, channel=channel),
                position=self.start_position,
                length=None if end is None else max(end - self.start_position, 0),
                subscription_id=subscription_id,
            )
            self._is_over = False
            self._is_bounded = target.limit_counter_id is not None
            self._correlation_id = answer.correlation_id
            self.replay_session_id = answer.relevant_id
            session_id = to_int32(answer.relevant_id)
            if self._subscription is None:
                yield from self._subscribe(with_session_id(channel, session_id), target)
            yield from self._await_image(session_id)
        except BaseException:
            self.abandon()
            raise

    def _subscribe(self, channel: str, target: ReplayTarget) -> Task[_native.Subscription]:
        session = self._session
        self._subscription = yield from add_subscription(
            session.aeron, channel, target.stream_id, session.timeout_ns
        )
        return self._subscription

    def _await_image(self, session_id: int) -> Task[None]:
        """Wait for the replay's stream to appear."""
        subscription = self._subscription
        assert subscription is not None, "added before"
        deadline_ns = time.monotonic_ns() + self._session.timeout_ns
        replay = self._describe(self.start_position)
        while (image := subscription.image_by_session_id(session_id)) is None:
            yield Responses(self._session, f"begin {replay}", _CONNECT_POLL_NS)
            if time.monotonic_ns() >= deadline_ns:
                self._raise_error(self.start_position)
                raise AeronTimeoutError(
                    f"no stream for {replay} on {subscription.channel} stream "
                    f"{subscription.stream_id} within {self._session.timeout_ns / 1e9:g} s"
                )
        self._image = image

    # -- reading -------------------------------------------------------------------------------

    def fetch(self) -> Task[None]:
        """Read messages into the backlog; none at the end."""
        idle_since_ns = time.monotonic_ns()
        idle_position = self.position
        while self._subscription is not None:
            if self._is_complete():
                self.release()
                break
            yield Fragments(
                self._subscription, self.backlog, _FRAGMENT_LIMIT, SLICE_NS, self.recorded_as
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
        end = self.end_position
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
        if self._is_bounded:
            return  # it ends at the last value of the counter, known only to the archive
        deadline_ns = time.monotonic_ns() + _STOP_POSITION_GRACE_NS
        while True:
            stopped_at = yield from exchange(self._session, stop_position(self.recording_id))
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
        error = self._session.take_error(self._correlation_id)
        if error is not None:
            raise self._ended_by_archive(
                f"{self._describe(position)} was aborted: {error}", error.error_code, position
            ) from error

    def _ended_by_archive(self, message: str, code: int, position: int) -> ReplayError:
        self._is_over = True
        self.release()
        replay_session_id = self.replay_session_id
        return ReplayError(
            message,
            code,
            self._correlation_id,
            self.recording_id,
            -1 if replay_session_id is None else replay_session_id,
            position,
        )

    def _describe(self, position: int) -> str:
        end = self.end_position
        to = "" if end is None else f" of {end}"
        return f"the replay of recording {self.recording_id} at position {position}{to}"

    # -- the end -------------------------------------------------------------------------------

    def release(self) -> bool:
        """Close the stream; return whether the archive may still be replaying. Idempotent."""
        self._is_over = self._is_over or self._is_complete()
        self._is_over = self._is_over or (self._image is not None and self._has_ended())
        subscription, self._subscription = self._subscription, None
        image = self._detach_image()
        if image is not None:
            image.release()
        if subscription is not None:
            subscription.close()
        is_running, self._is_over = not self._is_over, True
        return is_running

    def stop(self) -> Task[None]:
        """Stop the replay if it has not ended, and close its subscription. Idempotent."""
        if self.release() and self.replay_session_id is not None:
            # An archive that is gone has stopped the replay too.
            with contextlib.suppress(ClosedError, AeronTimeoutError, ArchiveError):
                yield from exchange(self._session, stop_replay(self.replay_session_id))

    def abandon(self) -> None:
        """As `stop`, without waiting for the response."""
        if self.release() and self.replay_session_id is not None:
            self._session.send_unanswered(stop_replay(self.replay_session_id))


def open_replay(
    session: ClientSession,
    recording_id: int,
    target: ReplayTarget,
    *,
    position: int | None,
    length: int | None,
    follow: bool,
    timeout_ns: int | None,
) -> Task[ReplayStream]:
    """Replay a recording to a reader."""
    start = None
    if position not in (None, NULL_POSITION):
        start = arguments.natural("position", position)
    if length in (REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP):
        follow = follow and length == REPLAY_ALL_AND_FOLLOW
        length = None
    if length is not None and arguments.any_int64("length", length) < 0:
        raise ConfigurationError(f"a replay cannot have a length of {length} bytes", "length")
    check_scope(session, target.scope_id, target.limit_counter_id)
    is_refused = False
    while True:
        recording = yield from list_recording(session, recording_id, target.scope_id)
        if recording is None:
            unknown = ErrorCode.UNKNOWN_RECORDING
            raise UnknownRecordingError(
                f"cannot replay recording {recording_id}: there is no such recording "
                f"(error code {unknown} {unknown.name})",
                recording_id,
            )
        begin, end, is_live = yield from _range(session, recording, start, length, follow)
        if not is_live and begin == end:
            # An empty replay of the reference never ends, so it is not requested.
            return ReplayStream(session, recording, begin, end)
        wait_ns = timeout_ns
        if wait_ns is None and not is_live and target.limit_counter_id is None:
            wait_ns = session.timeout_ns
        stream = ReplayStream(session, recording, begin, end, wait_ns)
        try:
            yield from stream.open(target)
            return stream
        except InvalidPositionError:
            # The recording may have changed since it was looked up: stopped, lost segments, ...
            if is_refused:
                raise
            is_refused = True


def _range(
    session: ClientSession,
    recording: RecordingDescriptor,
    start: int | None,
    length: int | None,
    follow: bool,
) -> Task[tuple[int, int | None, bool]]:
    """Return begin and end of a replay, bytes, and whether it follows a live recording."""
    recording_id = recording.recording_id
    if start is None:
        start = recording.start_position
        if start < 0:
            raise AerotapeError(
                f"cannot replay recording {recording_id}: the archive reports the invalid "
                f"start position {start}; its catalog entry is damaged"
            )
    end = None if length is None else start + length
    stop = recording.stop_position
    is_live = stop == NULL_POSITION
    if is_live and not follow:
        stop = yield from exchange(session, max_recorded_position(recording_id))
        is_live = False
    if not is_live:
        end = stop if end is None else min(end, stop)
    return start, end, is_live


class ReplayProperties:
    """Properties of a replay, for either front end.

    Attributes:
        replay_session_id: for `stop_replay`; None for an empty replay, which is not
            requested from the archive.
        start_position: where it begins, bytes.
    """

    def __init__(self, stream: ReplayStream) -> None:
        self._stream = stream
        self.recording_id = stream.recording_id
        self.replay_session_id = stream.replay_session_id
        self.start_position = stream.start_position

    @property
    def position(self) -> int:
        """The position read so far, bytes: the end of the frames taken."""
        return self._stream.position

    @property
    def expected_length(self) -> int | None:
        """The length from start to end, bytes; None when it follows."""
        end = self._stream.end_position
        return None if end is None else end - self.start_position

    @property
    def is_closed(self) -> bool:
        """Whether it has ended or was closed."""
        return self._stream.is_closed

    def __repr__(self) -> str:
        return shown(self, "recording_id", "start_position", "expected_length", "position")
