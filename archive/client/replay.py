"""A replay as its reader sees it: messages until the end, and certainty which end it was.

A subscription alone cannot tell a replay that is complete from one that was aborted: both just
end. So a `Replay` knows from the recording where it has to end, watches the image, and asks the
archive for the error that came with an early end.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from aerotape import _native
from aerotape.archive.client.session import POLL_SLICE_NS, ControlSession
from aerotape.archive.protocol import NULL_POSITION, ErrorCode
from aerotape.errors import AeronTimeoutError, ArchiveError, ClosedError, ReplayError
from aerotape.message import Message

_FRAGMENT_LIMIT: Final = 512
_CONNECT_POLL_NS: Final = 1_000_000
# Between the end of a recording's stream and its stop position in the catalog.
_STOP_POSITION_GRACE_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ReplayOrder:
    """What was asked for.

    Attributes:
        recording_id: the recording.
        start_position: where the replay begins, bytes.
        end_position: where it has to end, bytes; None when it follows a live recording, or a
            counter, as far as that goes.
        is_bounded: whether a counter bounds it.
        correlation_id: of the replay request.
        replay_session_id: as the archive gave it.
        session_id: of the replay's publication.
    """

    recording_id: int
    start_position: int
    end_position: int | None
    is_bounded: bool
    correlation_id: int
    replay_session_id: int
    session_id: int


class Replay(Iterator[Message]):
    """The messages of a replay, in order. Iterate it once, in one thread.

    The iteration stops at the end of what was asked for: the recording's stop position or the
    given length; a replay of a live recording follows it until it stops. A message of which the
    replay holds only a part (begun before the start, or cut by the length) is left out.

    Iterating raises `ReplayError` when the archive aborts the replay, `AeronTimeoutError` when
    nothing comes for the timeout (iterate again to wait on) and `ClosedError` when the archive
    goes away. Leaving the `with` block, or `close`, stops the replay.

    Attributes:
        recording_id: the recording.
        replay_session_id: for `ArchiveClient.stop_replay`; None of an empty replay, which the
            archive is not asked for.
        start_position: where it begins, bytes.
    """

    def __init__(
        self,
        order: ReplayOrder,
        session: ControlSession,
        subscription: _native.Subscription,
        *,
        stop_replay: Callable[[int], None],
        stop_position: Callable[[int], int],
        timeout_ns: int | None,
    ) -> None:
        """Wait for the replay's stream. Made by `ArchiveClient.replay`."""
        self.recording_id = order.recording_id
        self.replay_session_id: int | None = order.replay_session_id
        self.start_position = order.start_position
        self._end_position = order.end_position
        self._order = order
        self._session = session
        self._subscription: _native.Subscription | None = subscription
        self._stop_replay = stop_replay
        self._stop_position = stop_position
        self._timeout_ns = timeout_ns
        self._batch: Iterator[Message] = iter(())
        self._image: _native.Image | None = None
        self._last_position = order.start_position
        self._is_over = False
        try:
            self._image = self._await_image(subscription)
        except BaseException:
            self.close()
            raise

    @classmethod
    def empty(cls, recording_id: int, position: int) -> Replay:
        """Return a replay that has nothing to replay."""
        replay = cls.__new__(cls)
        replay.recording_id = recording_id
        replay.replay_session_id = None
        replay.start_position = position
        replay._end_position = position
        replay._subscription = None
        replay._image = None
        replay._batch = iter(())
        replay._last_position = position
        return replay

    @property
    def position(self) -> int:
        """How far the replay has been read, bytes: the end of the frames taken so far."""
        if self._image is not None:
            self._last_position = max(self._last_position, self._image.position)
        return self._last_position

    @property
    def expected_length(self) -> int | None:
        """How much there is to come from start to end, bytes; None when it follows."""
        end = self._end_position
        return None if end is None else end - self.start_position

    @property
    def is_closed(self) -> bool:
        """Whether it has ended or was closed."""
        return self._subscription is None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        while True:
            try:
                return next(self._batch)
            except StopIteration:
                pass
            batch = self._next_batch()
            if not batch:
                raise StopIteration
            self._batch = map(Message._make, batch)

    def _next_batch(self) -> list[_native._Message]:
        """Return messages, none at the end."""
        idle_since_ns = time.monotonic_ns()
        idle_position = self.position
        while self._subscription is not None:
            if self._is_complete():
                self.close()
                break
            batch = self._subscription.poll(_FRAGMENT_LIMIT, POLL_SLICE_NS)
            position = self.position
            if batch:
                return batch
            if position > idle_position:  # padding, or fragments of a message yet incomplete
                idle_position, idle_since_ns = position, time.monotonic_ns()
            elif self._has_ended():
                self._check_early_end(position)
                self.close()
            else:
                self._check_alive(position, idle_since_ns)
        return []

    def _is_complete(self) -> bool:
        end = self._end_position
        return end is not None and self.position >= end

    def _has_ended(self) -> bool:
        image = self._image
        return image is None or image.is_closed or image.is_end_of_stream

    def _check_alive(self, position: int, idle_since_ns: int) -> None:
        self._session.service(what=f"go on with {self._describe(position)}")
        self._raise_error(position)
        waited_ns = time.monotonic_ns() - idle_since_ns
        if self._timeout_ns is not None and waited_ns >= self._timeout_ns:
            raise AeronTimeoutError(
                f"no message of {self._describe(position)} for {self._timeout_ns / 1e9:g} s"
            )

    def _check_early_end(self, position: int) -> None:
        """Raise unless the stream has ended where it may."""
        self._session.service()
        self._raise_error(position)
        if self._order.is_bounded:
            return  # it ends where the counter last stood, which only the archive saw
        deadline_ns = time.monotonic_ns() + _STOP_POSITION_GRACE_NS
        while (stop_position := self._stop_position(self.recording_id)) == NULL_POSITION:
            if time.monotonic_ns() >= deadline_ns:
                break
            time.sleep(0.01)
        if stop_position != NULL_POSITION and position >= stop_position:
            return
        self._raise_error(position)
        raise self._ended_by_archive(
            f"{self._describe(position)} ended early: it was stopped or aborted",
            ErrorCode.GENERIC,
            position,
        )

    def _raise_error(self, position: int) -> None:
        error = self._session.take_error(self._order.correlation_id)
        if error is not None:
            raise self._ended_by_archive(
                f"{self._describe(position)} was aborted: {error}", error.error_code, position
            ) from error

    def _ended_by_archive(self, message: str, code: int, position: int) -> ReplayError:
        self._is_over = True
        self.close()
        return ReplayError(
            message,
            code,
            self._order.correlation_id,
            self.recording_id,
            self._order.replay_session_id,
            position,
        )

    def _describe(self, position: int) -> str:
        end = self._end_position
        to = "" if end is None else f" of {end}"
        return f"the replay of recording {self.recording_id} at position {position}{to}"

    def _await_image(self, subscription: _native.Subscription) -> _native.Image:
        deadline_ns = time.monotonic_ns() + self._session.timeout_ns
        while (image := subscription.image_by_session_id(self._order.session_id)) is None:
            self._session.service(_CONNECT_POLL_NS)
            self._raise_error(self.start_position)
            if time.monotonic_ns() >= deadline_ns:
                raise AeronTimeoutError(
                    f"no stream for {self._describe(self.start_position)} on "
                    f"{subscription.channel} stream {subscription.stream_id} within "
                    f"{self._session.timeout_ns / 1e9:g} s"
                )
        return image

    def close(self) -> None:
        """Stop the replay if it has not ended, and close its subscription. Idempotent."""
        subscription, self._subscription = self._subscription, None
        if subscription is None:
            return
        self._last_position = self.position
        is_over = self._is_over or self._is_complete()
        is_over = is_over or (self._image is not None and self._has_ended())
        if self._image is not None:
            self._image.release()
            self._image = None
        subscription.close()
        if not is_over:
            # An archive that is gone has stopped the replay too.
            with contextlib.suppress(ClosedError, AeronTimeoutError, ArchiveError):
                self._stop_replay(self._order.replay_session_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
