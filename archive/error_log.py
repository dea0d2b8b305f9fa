"""What goes wrong while the archive lives on: counted, and told without flooding anybody.

An error is told when it first occurs; a repetition of it at most once a second, with how often it
has occurred. The archive's error counter counts them all.
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import Protocol

from aerotape.errors import ClosedError

LOGGER = logging.getLogger("aerotape.archive")

_REPEAT_INTERVAL_S = 1.0
# Beyond this many kinds of error the oldest is forgotten, so that no client can fill the memory.
_MAX_KINDS = 256


class ErrorCounter(Protocol):
    """What counts errors: an Aeron counter, or nothing yet."""

    def add(self, delta: int) -> int: ...


class ErrorFile(Protocol):
    """What keeps errors: the mark file, whose log ArchiveTool shows."""

    def record_error(self, text: str, now_ms: int) -> bool: ...


class ErrorLog:
    """Log of the conductor. Not for use by several threads."""

    def __init__(self, counter: ErrorCounter | None = None, file: ErrorFile | None = None) -> None:
        self._counter = counter
        self._file = file
        self._kinds: dict[str, tuple[int, float]] = {}

    def record(self, kind: str, detail: object, *, exception: BaseException | None = None) -> None:
        """Count an error and tell it.

        Args:
            kind: what happened, in words that do not differ from one time to the next.
            detail: the rest of the line.
            exception: shown with its traceback; for errors that are ours.
        """
        if self._counter is not None:
            # The counter goes with the media driver, whose loss is one of the things to tell.
            with contextlib.suppress(ClosedError):
                self._counter.add(1)
        occurrences, told_at_s = self._kinds.pop(kind, (0, 0.0))
        occurrences += 1
        now_s = time.monotonic()
        if occurrences == 1 or now_s - told_at_s >= _REPEAT_INTERVAL_S:
            told_at_s = now_s
            times = f" ({occurrences} times)" if occurrences > 1 else ""
            LOGGER.warning("%s%s: %s", kind, times, detail, exc_info=exception)
            if self._file is not None:
                self._file.record_error(f"{kind}: {detail}", time.time_ns() // 1_000_000)
        if len(self._kinds) >= _MAX_KINDS:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[kind] = (occurrences, told_at_s)
