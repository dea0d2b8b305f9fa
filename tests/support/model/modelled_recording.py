"""A recording as it is expected, for comparison with that of an archive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import aerotape

TERM = SEGMENT = 65_536
IPC = "aeron:ipc?term-length=64k"
ACTIVE = None


@dataclass(eq=False)
class Recording:
    """The expected state of a recording.

    Attributes:
        stop: its stop position; None while it is active.
        messages: payload and end position of each message, including detached ones.
        session_id: the session id of the last recorded stream.
        held: active replays that are not read, by their ids.
        files: base positions of its segment files, including detached ones.
    """

    recording_id: int
    stream_id: int
    initial_term_id: int
    session_id: int
    subscription_id: int
    publication: aerotape.ExclusivePublication
    start: int = 0
    stop: int | None = ACTIVE
    messages: list[tuple[bytes, int]] = field(default_factory=list)
    files: set[int] = field(default_factory=set)
    held: dict[int, Any] = field(default_factory=dict)
    channel: str = IPC
    sent: int = 0
    is_purged: bool = False

    @property
    def end(self) -> int:
        """The stop position, or the recorded position."""
        return self.publication.position if self.stop is None else self.stop

    @property
    def retained(self) -> list[tuple[bytes, int]]:
        """The messages between its start and end."""
        return [each for each in self.messages if self.start < each[1] <= self.end]

    @property
    def bases(self) -> list[int]:
        """Base positions of the segments of its current range."""
        return list(range(self.start - self.start % SEGMENT, self.end + 1, SEGMENT))

    @property
    def boundaries(self) -> list[int]:
        """Positions at which it can be truncated."""
        inner = [end for _, end in self.retained] + [b for b in self.bases if b > self.start]
        return sorted({self.start, self.end, *(p for p in inner if p >= self.start)})


def outside(recording: Recording) -> list[int]:
    """Return the frame-aligned positions right below and above a recording."""
    return [each for each in (recording.start - 32, recording.end + 32) if each >= 0]


def pick(positions: list[int], share: float) -> int:
    """Return one of the given positions."""
    return positions[min(int(share * len(positions)), len(positions) - 1)]
