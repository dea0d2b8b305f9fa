"""Locks of recordings whose segment files are being changed.

A deletion goes on after its request has a response; until its end the recording cannot be deleted
from again, and extended only past the files that are being deleted. A recording that is held, as
its files are being moved or cleared, can be neither.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from aerotape.errors import ArchiveError
from aerotape.units import MAX_LONG


class SegmentLocks:
    """All locks. For the conductor's thread."""

    def __init__(self) -> None:
        # The base position of the last segment being deleted, by recording.
        self._deleting: dict[int, int] = {}
        self._held: set[int] = set()

    def check_free(self, recording_ids: Iterable[int]) -> None:
        """Raise ArchiveError unless the segment files of these recordings may be changed."""
        for recording_id in sorted(recording_ids):
            if recording_id in self._deleting:
                raise ArchiveError(
                    f"another delete operation in progress for recording id: {recording_id}: wait"
                    " for the DELETE signal"
                )
            if recording_id in self._held:
                raise ArchiveError(
                    f"segment files of recording {recording_id} are being attached, migrated or"
                    " prepared for an extension: try again"
                )

    def is_locked(self, recording_id: int) -> bool:
        """Whether segment files of a recording are being deleted, moved or cleared."""
        return recording_id in self._held or recording_id in self._deleting

    def locked_to(self, recording_id: int) -> int | None:
        """Return the stop position that a recording must exceed to be extended; None: any."""
        return MAX_LONG if recording_id in self._held else self._deleting.get(recording_id)

    def deleted_to(self, recording_id: int) -> int | None:
        """Return the base position of the last segment being deleted; None without a deletion."""
        return self._deleting.get(recording_id)

    def begin_deletion(self, recording_id: int, last_base: int) -> None:
        """Lock a recording while files up to a base position are deleted."""
        self._deleting[recording_id] = last_base

    def end_deletion(self, recording_id: int) -> None:
        """Unlock a recording."""
        del self._deleting[recording_id]

    def hold(self, recording_ids: Iterable[int]) -> None:
        """Hold recordings until `release`."""
        self._held.update(recording_ids)

    def release(self, recording_ids: Iterable[int]) -> None:
        """Unlock recordings that are held."""
        self._held.difference_update(recording_ids)

    @contextlib.contextmanager
    def held(self, recording_ids: Iterable[int]) -> Iterator[None]:
        """Hold recordings that are free (ArchiveError: one is not) for a block."""
        recording_ids = frozenset(recording_ids)
        self.check_free(recording_ids)
        self.hold(recording_ids)
        try:
            yield
        finally:
            self.release(recording_ids)
