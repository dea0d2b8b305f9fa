"""Rounds by the clock, and what a row of the table needs of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

TIME_LIMIT_S: Final = 60.0
"""When the rounds of a measurement have taken so long together, no other one begins."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is measured with.

    Attributes:
        length: of a recording, frame headers included, bytes; at least.
        message_bytes: of each message.
        rounds: that count.
    """

    length: int
    message_bytes: int
    rounds: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """Rounds of one thing.

    Attributes:
        what: was measured.
        messages: in a round.
        length: bytes of segment files that a round is about.
        seconds: of each round.
    """

    what: str
    messages: int
    length: int
    seconds: list[float] = field(default_factory=list)

    def row(self, message_bytes: int) -> dict[str, Any]:
        """Return medians, and the slowest and the fastest round."""
        median = statistics.median(self.seconds)
        slowest, fastest = max(self.seconds), min(self.seconds)
        return {
            "what": self.what,
            "message_bytes": message_bytes,
            "rounds": len(self.seconds),
            "messages_per_s": round(self.messages / median),
            "mb_per_s": round(self.length / median / 1e6, 1),
            "slowest_mb_per_s": round(self.length / slowest / 1e6, 1),
            "fastest_mb_per_s": round(self.length / fastest / 1e6, 1),
        }


def timed(action: Callable[[], object]) -> float:
    """Return how long an action takes, seconds."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def rounds_of(
    once: Callable[[], float], rounds: int, time_limit_s: float = TIME_LIMIT_S
) -> list[float]:
    """Measure again and again, after a first time that does not count.

    Args:
        once: does it and returns how long it took, seconds.
        rounds: how many times, one at least.
        time_limit_s: by the clock, the first time included.
    """
    begin = time.monotonic()
    once()
    seconds = [once()]
    while len(seconds) < rounds and time.monotonic() - begin < time_limit_s:
        seconds.append(once())
    return seconds
