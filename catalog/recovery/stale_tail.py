"""Bytes after the stop position of a stopped recording, removed before an extension or a migration.

They may be the rest of a truncation that a crash interrupted, or good frames after a stop position
that was lowered: `verify` ends a recording before a lost page, as ArchiveTool does. These cannot
be distinguished, so all bytes that are not zero go to quarantine: the copy is on storage and the
recording is marked before the first byte is erased. An interrupted removal can be repeated, which
makes another copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aerotape.catalog.recovery import suspect_marks
from aerotape.catalog.recovery.quarantine import Quarantine, erase_tail, move_segment
from aerotape.catalog.recovery.suspect_marks import SuspectNote
from aerotape.catalog.segment.data_extents import find_data_end, holds_data
from aerotape.catalog.segment_files import is_blank_from
from aerotape.errors import StorageError, StorageErrors

_OUTCOME = "after the stop position"


@dataclass(frozen=True, slots=True)
class StaleTail:
    """The bytes after the stop position of one recording.

    Attributes:
        archive_dir: the directory.
        recording_id: the recording that the quarantine is named for.
        stop_position: where it ends.
        now_ms: epoch milliseconds.
    """

    archive_dir: Path
    recording_id: int
    stop_position: int
    now_ms: int

    def clear_tail(self, path: Path, base_position: int) -> str:
        """Erase the bytes after the stop position in the segment file that holds it.

        Returns:
            Where the copy is, for people; "" when there were only zeros.

        Raises:
            StorageError: the bytes cannot be copied or erased; nothing is lost.
        """
        offset = self.stop_position - base_position
        if is_blank_from(path, offset):
            return ""
        kept, end = "", find_data_end(path, offset)
        if end > offset:
            kept = self._copy(path, offset, end)
        erase_tail(path, offset)
        return kept

    def remove_segment(self, path: Path, base_position: int) -> str:
        """Remove a segment file that is wholly after the stop position.

        Its name may not be off storage yet when this returns.

        Returns:
            Where it is now, for people; "" when it held only zeros.

        Raises:
            StorageError: the file cannot be moved or removed; nothing is lost.
        """
        kept = self.quarantine_segment(path, base_position)
        if not kept:
            with StorageErrors(f"cannot remove {path}, which is after its recording's end", path):
                path.unlink(missing_ok=True)
        return kept

    def quarantine_segment(self, path: Path, base_position: int) -> str:
        """As `remove_segment`, but a file of zeros, or none, is left alone."""
        if is_blank_from(path, 0) or not holds_data(path):
            return ""
        removed = self._quarantine()
        try:
            target = removed.expect_segment(path)
            removed.write_note()
            kept = (
                f"{path.name}, after the stop position {self.stop_position}, is "
                f"{removed.name_of(target)} now"
            )
            self._mark(kept, base_position, removed.name_of(target))
        except StorageError:
            removed.discard()
            raise
        move_segment(path, target)
        return kept

    def _quarantine(self) -> Quarantine:
        return Quarantine(self.archive_dir, self.recording_id, self.now_ms, _OUTCOME)

    def _mark(self, detail: str, position: int, name: str) -> None:
        note = SuspectNote(_OUTCOME, detail, position, self.now_ms, name)
        suspect_marks.add_notes(self.archive_dir, self.recording_id, [note])

    def _copy(self, path: Path, offset: int, end: int) -> str:
        """Copy bytes of a segment file to quarantine, and mark it."""
        removed = self._quarantine()
        try:
            copy = removed.copy(path, offset, end)
            removed.write_note()
            kept = (
                f"the {end - offset} bytes after the stop position {self.stop_position} in "
                f"{path.name} are in {removed.name_of(copy)} now"
            )
            self._mark(kept, self.stop_position, removed.name_of(copy))
        except StorageError:
            removed.discard()
            raise
        return kept
