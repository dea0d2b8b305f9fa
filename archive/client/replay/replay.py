"""A replay, for the blocking client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from aerotape.archive.client.executors.blocking import BlockingRequests
from aerotape.archive.client.replay.stream import ReplayStream
from aerotape.context import Closing
from aerotape.formatting import shown
from aerotape.message import Message


class ReplayProperties:
    """Properties of a replay, for either front end.

    Attributes:
        recording_id: the recording.
        replay_session_id: for `stop_replay`; None for an empty replay, which is not
            requested from the archive.
        start_position: where it begins, bytes.
    """

    def __init__(self, stream: ReplayStream) -> None:
        self._stream = stream
        self.recording_id = stream.parameters.recording_id
        self.replay_session_id = stream.parameters.replay_session_id
        self.start_position = stream.parameters.start_position

    @property
    def position(self) -> int:
        """How far the replay has been read, bytes: the end of the frames taken so far."""
        return self._stream.position

    @property
    def expected_length(self) -> int | None:
        """The length from start to end, bytes; None when it follows."""
        end = self._stream.parameters.end_position
        return None if end is None else end - self.start_position

    @property
    def is_closed(self) -> bool:
        """Whether it has ended or was closed."""
        return self._stream.is_closed

    def __repr__(self) -> str:
        return shown(self, "recording_id", "start_position", "expected_length", "position")


class Replay(ReplayProperties, Iterator[Message], Closing):
    """The messages of a replay, in order. Iterate it once, in one thread.

    The iteration ends at the recording's stop position or the given length; a replay of a live
    recording follows it until it stops. A message of which the
    replay holds only a part (begun before the start, or cut by the length) is skipped.

    Iterating raises `ReplayError` when the archive aborts the replay, `AeronTimeoutError` when
    no message arrives in time (iterate again to continue) and `ClosedError` when the archive
    goes away. Leaving the `with` block, or `close`, stops the replay.
    """

    def __init__(self, stream: ReplayStream, requests: BlockingRequests) -> None:
        """Read an open stream. Created by `ArchiveClient.replay`."""
        super().__init__(stream)
        self._requests = requests

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        backlog = self._stream.backlog
        if not backlog:
            self._requests._run(self._stream.fetch())
            if not backlog:
                raise StopIteration
        return backlog.next_message()

    def close(self) -> None:
        """Stop the replay if it has not ended, and close its subscription. Idempotent."""
        self._requests._run(self._stream.stop())
