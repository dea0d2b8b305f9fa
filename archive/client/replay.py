"""A replay, read in the caller's thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, Self, TypeVar

from aerotape.archive.client.call import Steps
from aerotape.archive.client.replay_stream import ReplayStream
from aerotape.closing import Closing
from aerotape.message import Message
from aerotape.text import shown

T = TypeVar("T")


class Runner(Protocol):
    """Performs steps and returns what they return."""

    def __call__(self, steps: Steps[T]) -> T: ...


class ReplayFacts:
    """What is known of a replay, whoever reads it.

    Attributes:
        recording_id: the recording.
        replay_session_id: for `stop_replay`; None of an empty replay, which the archive is not
            asked for.
        start_position: where it begins, bytes.
    """

    def __init__(self, stream: ReplayStream) -> None:
        self._stream = stream
        self.recording_id = stream.order.recording_id
        self.replay_session_id = stream.order.replay_session_id
        self.start_position = stream.order.start_position

    @property
    def position(self) -> int:
        """How far the replay has been read, bytes: the end of the frames taken so far."""
        return self._stream.position

    @property
    def expected_length(self) -> int | None:
        """How much there is to come from start to end, bytes; None when it follows."""
        end = self._stream.order.end_position
        return None if end is None else end - self.start_position

    @property
    def is_closed(self) -> bool:
        """Whether it has ended or was closed."""
        return self._stream.is_closed

    def __repr__(self) -> str:
        return shown(self, "recording_id", "start_position", "expected_length", "position")


class Replay(ReplayFacts, Iterator[Message], Closing):
    """The messages of a replay, in order. Iterate it once, in one thread.

    The iteration stops at the end of what was asked for: the recording's stop position or the
    given length; a replay of a live recording follows it until it stops. A message of which the
    replay holds only a part (begun before the start, or cut by the length) is left out.

    Iterating raises `ReplayError` when the archive aborts the replay, `AeronTimeoutError` when
    nothing comes for the timeout (iterate again to wait on) and `ClosedError` when the archive
    goes away. Leaving the `with` block, or `close`, stops the replay.
    """

    def __init__(self, stream: ReplayStream, run: Runner) -> None:
        """Read a stream that has begun. Made by `ArchiveClient.replay`."""
        super().__init__(stream)
        self._run = run

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        backlog = self._stream.backlog
        if not backlog:
            self._run(self._stream.fetch())
            if not backlog:
                raise StopIteration
        return backlog.next_message()

    def close(self) -> None:
        """Stop the replay if it has not ended, and close its subscription. Idempotent."""
        self._run(self._stream.stop())
