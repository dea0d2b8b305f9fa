"""Options, states and events of a persistent subscription."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final, Literal

from aerotape.channel_uri import ChannelUri
from aerotape.client import arguments
from aerotape.client.replay.requests import ReplayTarget
from aerotape.errors import ConfigurationError
from aerotape.units import MAX_LONG

FROM_START: Final = -1
FROM_LIVE: Final = -2
Start = int | Literal["start", "live"]

_STARTS: Final = {"start": FROM_START, "live": FROM_LIVE}


class PersistentState(enum.IntEnum):
    """The state of a persistent subscription; the values are those of Aeron's counter.

    Attributes:
        AWAIT_ARCHIVE_CONNECTION: there is no connection to the archive.
        AWAIT_LIST_RECORDING_RESPONSE: the descriptor of the recording is requested.
        AWAIT_REPLAY_RESPONSE: a replay is requested.
        REPLAY: messages come from the recording.
        ATTEMPT_SWITCH: messages come from the recording, and the live stream can be joined.
        AWAIT_LIVE: the end of the recording has been read; the live stream is awaited.
        LIVE: messages come from the publisher.
        FAILED: a permanent error ended it.
    """

    AWAIT_ARCHIVE_CONNECTION = 0
    AWAIT_LIST_RECORDING_RESPONSE = 2
    AWAIT_REPLAY_RESPONSE = 4
    REPLAY = 12
    ATTEMPT_SWITCH = 13
    AWAIT_LIVE = 15
    LIVE = 16
    FAILED = 17


@dataclass(frozen=True, slots=True)
class PersistentEvent:
    """An event of a persistent subscription.

    Attributes:
        kind: ``live-joined``: messages now come from the publisher; ``live-left``: the live image
            is gone, and messages come from the recording again; ``error``: an operation failed,
            and is retried unless the subscription has failed.
        position: position in the stream, bytes; -1 when nothing was read and no start was given.
        error: the error of the operation.
    """

    kind: Literal["live-joined", "live-left", "error"]
    position: int
    error: Exception | None = None


@dataclass(slots=True)
class PersistentOptions:
    """The options of a persistent subscription.

    Attributes:
        start: a position, bytes, or FROM_START or FROM_LIVE.
        live_stream_id: None: that of the recording.
    """

    recording_id: int
    start: int
    live_channel: str
    live_stream_id: int | None
    replay_channel: str
    replay_stream_id: int

    def __post_init__(self) -> None:
        """Check the options (ConfigurationError)."""
        arguments.natural("recording_id", self.recording_id)
        arguments.integer("start", self.start, FROM_LIVE, MAX_LONG)
        arguments.channel("live_channel", self.live_channel)
        if self.live_stream_id is not None:
            arguments.any_int32("live_stream_id", self.live_stream_id)
        replay = ChannelUri.parse(arguments.channel("replay_channel", self.replay_channel))
        # A replay whose image is lost is requested again, from the position where it was lost.
        replay.put("rejoin", "false")
        self.replay_channel = str(replay)
        arguments.any_int32("replay_stream_id", self.replay_stream_id)

    @property
    def replay_target(self) -> ReplayTarget:
        """The channel to which the archive replays."""
        return ReplayTarget(self.replay_channel, self.replay_stream_id)


def start_position(start: Start) -> int:
    """Return the value of `PersistentOptions.start` for a caller's argument."""
    if not isinstance(start, str):
        return start
    if start not in _STARTS:
        raise ConfigurationError(
            f'start must be a position, "start" or "live", not {start!r}', "start"
        )
    return _STARTS[start]
