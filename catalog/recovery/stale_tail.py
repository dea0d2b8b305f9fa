"""Bytes after the stop position of a stopped recording, removed before an extension or a migration.

They may be the rest of a truncation that a crash interrupted, or good frames after a stop position
that was lowered: `verify` ends a recording before a lost page, as ArchiveTool does. These cannot
be distinguished, so all bytes that are not zero go to quarantine. An interrupted removal can be
repeated, which makes another copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aerotape.catalog.recovery.quarantine import Part, Quarantine, erase_tail
from aerotape.catalog.recovery.suspect_marks import SuspectNote
from aerotape.catalog.segment.data_extents import find_data_end, holds_data
from aerotape.catalog.segment_files import is_blank_from
from aerotape.errors import StorageErrors

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
        end = find_data_end(path, offset)
        if end == offset:
            erase_tail(path, offset)
            return ""

        def describe(name: str) -> str:
            return (
                f"the {end - offset} bytes after the stop position {self.stop_position} in "
                f"{path.name} are in {name} now"
            )

        removed = self._quarantine()
        copy = removed.remove_tail(
            Part(path, offset, end),
            lambda name: self._note(describe(name), self.stop_position, name),
        )
        return describe(removed.name_of(copy))

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

        def describe(name: str) -> str:
            return f"{path.name}, after the stop position {self.stop_position}, is {name} now"

        removed = self._quarantine()
        target = removed.remove_segment(
            path, lambda name: self._note(describe(name), base_position, name)
        )
        return describe(removed.name_of(target))

    def _quarantine(self) -> Quarantine:
        return Quarantine(self.archive_dir, self.recording_id, self.now_ms, _OUTCOME)

    def _note(self, detail: str, position: int, name: str) -> SuspectNote:
        return SuspectNote(_OUTCOME, detail, position, self.now_ms, name)
