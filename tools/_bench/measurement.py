"""Timed rounds and their statistics."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from aerotape.frame_header import HEADER_LENGTH

MTU_LENGTH: Final = 65_504
MESSAGE_BYTES: Final = (4, MTU_LENGTH - HEADER_LENGTH)
"""Lengths of messages: room for the number of the message, and at most one frame."""

ROWS: Final = {
    "record": ("record", "record, CRC-32C"),
    "replay": ("replay", "replay into Python"),
    "scan": ("scan, all columns", "scan, position and payload", "scan, all columns, CRC-32C"),
    "verify": ("verify", "verify, CRC-32C"),
    "parquet": ("parquet",),
}
"""The rows of each measurement."""

TIME_LIMIT_S: Final = 60.0
"""No round of a measurement starts after this time since its first one."""


@dataclass(frozen=True, slots=True)
class MeasurementRow:
    """A measurement.

    Attributes:
        what: what was measured.
        message_bytes: length of messages, bytes.
        rounds: number of rounds.
        messages_per_s: messages per second.
        mb_per_s: MB per second, median.
        slowest_mb_per_s: slowest round, MB per second.
        fastest_mb_per_s: fastest round, MB per second.
    """

    what: str
    message_bytes: int
    rounds: int
    messages_per_s: int
    mb_per_s: float
    slowest_mb_per_s: float
    fastest_mb_per_s: float


@dataclass(frozen=True, slots=True)
class Load:
    """The parameters of measurements.

    Attributes:
        length: least length of a recording, frame headers included, bytes.
        message_bytes: length of each message, bytes.
        rounds: number of rounds that count.
    """

    length: int
    message_bytes: int
    rounds: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """The rounds of one measurement.

    Attributes:
        what: the name of the measurement.
        messages: number of messages per round.
        length: bytes of segment files per round.
        seconds: the duration of each round.
    """

    what: str
    messages: int
    length: int
    seconds: list[float] = field(default_factory=list)

    def row(self, message_bytes: int) -> MeasurementRow:
        """Return the medians, and the slowest and the fastest round."""
        median = statistics.median(self.seconds)
        slowest, fastest = max(self.seconds), min(self.seconds)
        return MeasurementRow(
            what=self.what,
            message_bytes=message_bytes,
            rounds=len(self.seconds),
            messages_per_s=round(self.messages / median),
            mb_per_s=round(self.length / median / 1e6, 1),
            slowest_mb_per_s=round(self.length / slowest / 1e6, 1),
            fastest_mb_per_s=round(self.length / fastest / 1e6, 1),
        )


def timed(action: Callable[[], object]) -> float:
    """Return the duration of an action, seconds."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def rounds_of(
    once: Callable[[], float], rounds: int, time_limit_s: float = TIME_LIMIT_S
) -> list[float]:
    """Return the durations of rounds, after a first round that does not count.

    Args:
        once: does a round and returns its duration, seconds.
        rounds: number of rounds, at least one.
        time_limit_s: no round starts after this time, the first round included.
    """
    begin = time.monotonic()
    once()
    seconds = [once()]
    while len(seconds) < rounds and time.monotonic() - begin < time_limit_s:
        seconds.append(once())
    return seconds
