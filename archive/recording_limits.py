"""What keeps the archive from recording any more for the moment."""

from __future__ import annotations

import os
from pathlib import Path

from aerotape.archive.config import ArchiveConfig
from aerotape.archive.protocol import ErrorCode

Refusal = tuple[ErrorCode, str]


class RecordingLimits:
    """The most recordings at once, and the storage space that must be left."""

    def __init__(self, config: ArchiveConfig, archive_dir: Path) -> None:
        self._max_recordings = config.max_concurrent_recordings
        self._low_storage_bytes = config.low_storage_space_threshold
        self._archive_dir = archive_dir

    def too_many(self, *counts: int) -> Refusal | None:
        """Say so when one of the counts has reached the most that may be."""
        if max(counts) < self._max_recordings:
            return None
        return (
            ErrorCode.MAX_RECORDINGS,
            f"{self._max_recordings} recordings are the most that may run at once",
        )

    def low_storage(self) -> Refusal | None:
        """Say so when too little storage space is left to begin a recording."""
        status = os.statvfs(self._archive_dir)
        usable = status.f_bavail * status.f_frsize
        if usable > self._low_storage_bytes:
            return None
        return (
            ErrorCode.STORAGE_SPACE,
            f"low storage space: usable={usable} bytes, threshold={self._low_storage_bytes} bytes",
        )
