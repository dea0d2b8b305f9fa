"""Properties of a replay that is read."""

from __future__ import annotations

from aerotape.archive.client.replay.stream import ReplayStream
from aerotape.formatting import shown


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
