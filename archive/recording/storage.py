"""The storage of the archive directory: whether it has space, and whether it responds.

As in the reference, too little space refuses new recordings and nothing else. Other than there, a
counter shows that state while it lasts, and the log has a line when it begins and when it ends.

The conductor writes the catalog itself, so a disk that stands still would stop it. A probe in a
separate thread shows in time whether the disk responds; changes that come while it does not are
performed afterwards, in the order in which they came.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.archive.error_log import LOGGER
from aerotape.archive.recording.file_worker import FileWorker
from aerotape.catalog.mark.layout import LOCK_FILE_NAME
from aerotape.errors import ClosedError, StorageError, StorageErrors
from aerotape.protocol import ErrorCode
from aerotape.waiting import Pause, Task

if TYPE_CHECKING:
    from concurrent.futures import Future

    from aerotape._native import Counter
    from aerotape.archive.threads import ThreadNaming

Refusal = tuple[ErrorCode, str]

# How long a probe counts after its end, and how long the conductor waits for one.
_FRESH_NS: Final = 10_000_000
_PATIENCE_S: Final = 0.002


@dataclass(eq=False)
class StorageSpace:
    """The storage of the archive directory. Only the conductor's thread uses it.

    Attributes:
        threshold_bytes: with this much space or less, new recordings are refused.
        low_counter: 1 while space is low, else 0.
    """

    archive_dir: Path
    threshold_bytes: int
    low_counter: Counter
    _is_low: bool = field(default=False, init=False)

    def refuse(self) -> Refusal | None:
        """Check the free space; return a refusal when it is too little for a recording.

        Raises:
            StorageError: the directory is gone.
        """
        what = f"cannot read the free space of {self.archive_dir}"
        with StorageErrors(what, self.archive_dir):
            status = os.statvfs(self.archive_dir)
        usable = status.f_bavail * status.f_frsize
        is_low = usable <= self.threshold_bytes
        if is_low != self._is_low:
            self._change(is_low, usable)
        if not is_low:
            return None
        return (
            ErrorCode.STORAGE_SPACE,
            f"low storage threshold={self.threshold_bytes} <= usableSpace={usable}: free space in"
            f" {self.archive_dir}, or lower aeron.archive.low.storage.space.threshold (bytes)",
        )

    def watch(self) -> None:
        """Check the free space, to keep counter and log current without requests."""
        # The next request reports a directory that is gone.
        with contextlib.suppress(StorageError):
            self.refuse()

    def _change(self, is_low: bool, usable: int) -> None:
        self._is_low = is_low
        with contextlib.suppress(ClosedError):
            self.low_counter.set(int(is_low))
        LOGGER.log(
            logging.WARNING if is_low else logging.INFO,
            "storage of %s %s: usable=%d bytes, threshold=%d bytes",
            self.archive_dir,
            "is low on space, no new recordings: free some"
            if is_low
            else "has space again, new recordings are accepted",
            usable,
            self.threshold_bytes,
        )


def is_out_of_space(error: BaseException | None) -> bool:
    """Whether an error, or one that it was raised from, is a lack of space or quota."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__
    return False


def why_failed(error: Exception) -> Refusal:
    """Return the refusal of a stream that cannot be recorded."""
    what = f"the stream cannot be recorded: {error}"
    if is_out_of_space(error):
        return ErrorCode.STORAGE_SPACE, f"{what}: free space in the archive directory"
    return ErrorCode.GENERIC, what


class CatalogChanges:
    """The changes of the catalog that wait for the disk. For the conductor's thread.

    A change waits where its cause enters the conductor; what is called from there does not again:

    - a request of `requests.CHANGES`: `ControlSessionAdapter` (`run_when_disk_responds`);
    - an image to be recorded, and one that waited: `Recordings` (likewise);
    - the end of a recording: `Conductor` (likewise);
    - counters that the driver has added and files that are prepared: `Recordings.do_work`, which
      looks at them once the disk responds (`does_disk_respond`);
    - a task, before each of its changes, because it has waited for other things since it began
      (`await_disk`; retention, which limits its removals too, by `does_disk_respond`).
    """

    wants_within_ns = None
    """As `Agent.wants_within_ns`: the end of a probe wakes the conductor."""

    def __init__(
        self, archive_dir: Path, wake: Callable[[], None], naming: ThreadNaming = "classic"
    ) -> None:
        """Create it without its thread.

        Args:
            wake: makes the conductor call `do_work` soon; called from another thread.
            naming: of the thread that probes the disk.
        """
        self._lock_file = archive_dir / LOCK_FILE_NAME
        self._worker = FileWorker("probe", wake, naming)
        self._probe: Future[int] | None = None
        self._fresh_until_ns = 0
        self._is_closed = False
        self._waiting: deque[Callable[[], None]] = deque()

    def __len__(self) -> int:
        """Return the number of changes that wait."""
        return len(self._waiting)

    def does_disk_respond(self) -> bool:
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

    def await_disk(self) -> Task[None]:
        """Wait until the disk responds."""
        while not self.does_disk_respond():
            yield Pause()

    def run_when_disk_responds(self, change: Callable[[], None]) -> None:
        """Call a function now, or after those that wait once the disk responds."""
        if not self._waiting and self.does_disk_respond():
            change()
        else:
            self._waiting.append(change)

    def do_work(self) -> None:
        """Make the changes that have waited, if the disk responds."""
        while self._waiting and self.does_disk_respond():
            self._waiting.popleft()()

    def close(self) -> None:
        """Let all changes pass. Idempotent."""
        self._is_closed = True
        self._worker.close()

    def _touch(self) -> int:
        # As a write does, this waits while the file system is frozen. An error is a response.
        with contextlib.suppress(OSError):
            os.utime(self._lock_file, follow_symlinks=False)
        return time.monotonic_ns()
