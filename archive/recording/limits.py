"""What keeps the archive from recording any more for the moment."""

from __future__ import annotations

from aerotape.archive.protocol import ErrorCode
from aerotape.archive.recording.storage_space import Refusal, StorageSpace


class RecordingLimits:
    """The most recordings at once, and the storage space that must be left."""

    def __init__(self, max_recordings: int, storage: StorageSpace) -> None:
        self._max_recordings = max_recordings
        self._storage = storage

    def too_many(self, *counts: int) -> Refusal | None:
        """Say so when one of the counts has reached the most that may be."""
        if max(counts) < self._max_recordings:
            return None
        return (
            ErrorCode.MAX_RECORDINGS,
            f"max concurrent recordings reached at {self._max_recordings}: stop one, or raise"
            " aeron.archive.max.concurrent.recordings",
        )

    def low_storage(self) -> Refusal | None:
        """Say so when too little storage space is left to begin a recording."""
        return self._storage.refuse()
