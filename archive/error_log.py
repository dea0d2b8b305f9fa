"""What goes wrong while the archive lives on: counted, kept, told without flooding anybody.

The archive's error counter counts all errors. The mark file keeps each distinct one with how often
it was seen, and the log tells it when it is new, its repetitions at most once a second.

A client can make errors with a text of its own each time. Those of one kind beyond the first few
are taken together, in the mark file and in the log, so that they push nothing else out.
"""

from __future__ import annotations

import contextlib
import logging
import time
import traceback
from dataclasses import dataclass, field
from typing import Protocol

from aerotape.clock import epoch_ms
from aerotape.errors import ClosedError
from aerotape.formatting import printable

LOGGER = logging.getLogger("aerotape.archive")

_REPEAT_INTERVAL_S = 1.0
# Beyond this many kinds of error the oldest is forgotten, so that no client can fill the memory.
_MAX_KINDS = 256
_MAX_DISTINCT_OF_A_KIND = 32
_MAX_TEXT_LENGTH = 8_192


class ErrorCounter(Protocol):
    """What counts errors: an Aeron counter, or nothing yet."""

    def add(self, delta: int) -> int: ...


class ErrorFile(Protocol):
    """What keeps errors: the mark file, whose log ArchiveTool shows."""

    def record_error(self, text: str, now_ms: int) -> bool: ...


@dataclass(slots=True)
class _Kind:
    occurrences: int = 0
    told_at_s: float = 0.0
    texts: set[str] = field(default_factory=set)

    def is_new(self, text: str) -> bool:
        """Whether a text is to be kept apart from now on."""
        if text in self.texts or len(self.texts) >= _MAX_DISTINCT_OF_A_KIND:
            return False
        self.texts.add(text)
        return True


class ErrorLog:
    """Log of the conductor. Not for use by several threads."""

    def __init__(self, counter: ErrorCounter | None = None, file: ErrorFile | None = None) -> None:
        self._counter = counter
        self._file = file
        self._kinds: dict[str, _Kind] = {}
        self._is_file_full = False

    def record(self, kind: str, detail: object, *, exception: BaseException | None = None) -> None:
        """Count an error and tell it.

        Args:
            kind: what happened, in words that do not differ from one time to the next.
            detail: the rest of the line.
            exception: kept and shown with its traceback; for errors that are ours.
        """
        if self._counter is not None:
            # The counter goes with the media driver, whose loss is one of the things to tell.
            with contextlib.suppress(ClosedError):
                self._counter.add(1)
        seen = self._kinds.pop(kind, None) or _Kind()
        if len(self._kinds) >= _MAX_KINDS:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[kind] = seen
        seen.occurrences += 1
        # Much of it is what clients sent, who could write lines of their own into the log.
        shown = printable(str(detail)[:_MAX_TEXT_LENGTH])
        text = f"{kind}: {shown}"[:_MAX_TEXT_LENGTH]
        is_new = seen.is_new(text)
        now_s = time.monotonic()
        if is_new or now_s - seen.told_at_s >= _REPEAT_INTERVAL_S:
            seen.told_at_s = now_s
            times = f" ({seen.occurrences} times)" if seen.occurrences > 1 else ""
            LOGGER.warning("%s%s: %s", kind, times, shown, exc_info=exception)
        if text not in seen.texts:
            text = f"{kind}: more of this kind"
        elif exception is not None:
            text += "\n" + "".join(traceback.format_exception(exception))[:_MAX_TEXT_LENGTH]
        self._keep(text)

    def _keep(self, text: str) -> None:
        if self._file is None or self._file.record_error(text, epoch_ms()):
            return
        if not self._is_file_full:
            self._is_file_full = True
            LOGGER.warning(
                "the error log in the mark file is full, new errors are told here only: restart"
                " with a larger aeron.archive.error.buffer.length; a start saves what is in it"
            )
