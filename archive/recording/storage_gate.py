"""A gate before changes of the catalog, closed while writes to its disk wait.

The conductor writes the catalog itself, so a disk that stands still would stop it. A probe in a
separate thread shows in time whether the disk responds; changes that come while it does not are
performed afterwards, in the order in which they came.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.archive.recording.file_worker import FileWorker
from aerotape.archive.waiting import Pause, Task
from aerotape.catalog.mark.layout import LOCK_FILE_NAME

if TYPE_CHECKING:
    from concurrent.futures import Future

# How long a probe counts after its end, and how long the conductor waits for one.
_FRESH_NS: Final = 10_000_000
_PATIENCE_S: Final = 0.002


class StorageGate:
    """The changes that wait for the disk. For the conductor's thread."""

    wants_within_ns = None
    """As `Agent.wants_within_ns`: the end of a probe wakes the conductor."""

    def __init__(self, archive_dir: Path, wake: Callable[[], None]) -> None:
        """Create it without its thread.

        Args:
            wake: makes the conductor call `do_work` soon; called from another thread.
        """
        self._lock_file = archive_dir / LOCK_FILE_NAME
        self._worker = FileWorker("archive-probe", wake)
        self._probe: Future[int] | None = None
        self._fresh_until_ns = 0
        self._is_closed = False
        self._waiting: deque[Callable[[], None]] = deque()

    def __len__(self) -> int:
        """Return the number of changes that wait."""
        return len(self._waiting)

    def is_open(self) -> bool:
        """Whether the disk has just responded to a probe, for which this waits shortly."""
        patience_s = 0.0
        while not self._is_closed:
            now_ns = time.monotonic_ns()
            if self._probe is None:
                # In time, so that frequent changes do not wait for probes.
                if now_ns < self._fresh_until_ns - _FRESH_NS // 2:
                    return True
                self._probe = self._worker.submit(self._touch)
                patience_s = _PATIENCE_S
            if now_ns < self._fresh_until_ns and not self._probe.done():
                return True
            try:
                self._fresh_until_ns = self._probe.result(patience_s) + _FRESH_NS
            except TimeoutError:
                return False
            self._probe = None
        return True

    def await_open(self) -> Task[None]:
        """Wait until the disk responds."""
        while not self.is_open():
            yield Pause()

    def run(self, change: Callable[[], None]) -> None:
        """Call a function now, or after those that wait once the disk responds."""
        if not self._waiting and self.is_open():
            change()
        else:
            self._waiting.append(change)

    def do_work(self) -> None:
        """Make the changes that have waited, if the disk responds."""
        while self._waiting and self.is_open():
            self._waiting.popleft()()

    def close(self) -> None:
        """Leave the gate open for the changes that wait. Idempotent."""
        self._is_closed = True
        self._worker.close()

    def _touch(self) -> int:
        # As a write does, this waits while the file system is frozen. An error is a response.
        with contextlib.suppress(OSError):
            os.utime(self._lock_file, follow_symlinks=False)
        return time.monotonic_ns()
