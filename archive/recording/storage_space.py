"""Free storage space of the archive directory.

As in the reference, too little space refuses new recordings and nothing else. Other than there, a
counter shows that state while it lasts, and the log has a line when it begins and when it ends.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.archive.error_log import LOGGER
from aerotape.errors import ClosedError, StorageError, StorageErrors
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from aerotape._native import Counter

Refusal = tuple[ErrorCode, str]


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
