"""Errors that the archive survives: counted, stored in the mark file and logged at a limited rate.

The mark file stores each distinct error with its number of observations; the log has it when it is
new, and repetitions at most once a second. A client can cause errors with a different text each
time: beyond the first few of a kind they are combined, so that they displace no other errors.
"""

from __future__ import annotations

import contextlib
import logging
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aerotape.clock import epoch_ms
from aerotape.errors import ClosedError
from aerotape.formatting import printable

if TYPE_CHECKING:
    from aerotape._native import Counter
    from aerotape.catalog.mark.mark_file import MarkFile

LOGGER = logging.getLogger("aerotape.archive")

_REPEAT_INTERVAL_S = 1.0
_MAX_DISTINCT_OF_A_KIND = 32
_MAX_TEXT_LENGTH = 8_192
# While a disk stands still; the log and the counter have all.
_MAX_UNWRITTEN = 1_024


@dataclass(slots=True)
class _Kind:
    occurrences: int = 0
    logged_at_s: float = 0.0
    # Those that are stored separately.
    texts: set[str] = field(default_factory=set)


def _call(function: Callable[[], None]) -> None:
    function()


class ErrorLog:
    """The conductor's error log. Not thread-safe."""

    def __init__(
        self,
        counter: Counter | None = None,
        file: MarkFile | None = None,
        submit: Callable[[Callable[[], None]], object] = _call,
    ) -> None:
        """Begin with a mark file whose error log is empty.

        Args:
            submit: makes a call that waits for the disk, later and in another thread.
        """
        self._counter = counter
        self._file = file
        self._submit = submit
        self._unwritten: deque[tuple[str, int]] = deque()
        self._kinds: dict[str, _Kind] = {}
        self._is_file_full = False

    def record(self, kind: str, detail: object, *, exception: BaseException | None = None) -> None:
        """Count, store and log an error.

        Args:
            kind: the kind of error, in constant words.
            detail: the rest of the line.
            exception: stored and logged with its traceback; for internal errors.
        """
        if self._counter is not None:
            # The counter ends with the media driver, and the loss of that is an error to log.
            with contextlib.suppress(ClosedError):
                self._counter.add(1)
        seen = self._kinds.setdefault(kind, _Kind())
        seen.occurrences += 1
        # Details from clients could forge lines of the log.
        shown = printable(str(detail)[:_MAX_TEXT_LENGTH])
        text = f"{kind}: {shown}"[:_MAX_TEXT_LENGTH]
        is_new = text not in seen.texts and len(seen.texts) < _MAX_DISTINCT_OF_A_KIND
        if is_new:
            seen.texts.add(text)
        now_s = time.monotonic()
        if is_new or now_s - seen.logged_at_s >= _REPEAT_INTERVAL_S:
            seen.logged_at_s = now_s
            times = f" ({seen.occurrences} times)" if seen.occurrences > 1 else ""
            LOGGER.warning("%s%s: %s", kind, times, shown, exc_info=exception)
        if text not in seen.texts:
            text = f"{kind}: more of this kind"
        elif exception is not None:
            text += "\n" + "".join(traceback.format_exception(exception))[:_MAX_TEXT_LENGTH]
        if self._file is not None and len(self._unwritten) < _MAX_UNWRITTEN:
            self._unwritten.append((text, epoch_ms()))
            self._submit(self._store)

    def _store(self) -> None:
        """Store the next error in the mark file."""
        if self._file is None or self._file.record_error(*self._unwritten.popleft()):
            return
        if not self._is_file_full:
            self._is_file_full = True
            LOGGER.warning(
                "the error log in the mark file is full, new errors are logged here only: restart"
                " with a larger aeron.archive.error.buffer.length; a start saves its contents"
            )
