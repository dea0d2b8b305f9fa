"""The notes on suspect recordings of an archive, which are read again only when they change.

There may be many megabytes of them: of each recording just the first ones are in memory.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from aerotape.catalog.recovery.suspect_marks import (
    SuspectNote,
    is_suspect,
    mark_file_name,
    marked_recordings,
    notes_of,
)

_MAX_NOTES: Final = 1_000
_MAX_TEXT: Final = 1_000
"""The most characters of each text of a note."""
_KNOWN: Final = 4
"""So many recordings have their notes in memory."""
_Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Notes:
    """The notes on a recording.

    Attributes:
        first: the first 1,000 of them, as of `brief`.
        total: the number of all of them.
        is_suspect: whether some of them are not accepted.
    """

    first: list[SuspectNote]
    total: int
    is_suspect: bool


def brief(notes: Iterable[SuspectNote]) -> list[SuspectNote]:
    """Return the first 1,000 notes, with 1,000 characters of each of their texts."""
    return [_shortened(each) for each in islice(notes, _MAX_NOTES)]


class Suspects:
    """Finds the recordings that are marked as suspect, and why. May be used from any thread."""

    def __init__(self, directory: Path) -> None:
        """Create it; nothing is read.

        Args:
            directory: the archive directory.
        """
        self._directory = directory
        self._lock = threading.Lock()
        self._marks: dict[int, tuple[_Version, bool]] = {}
        self._notes: OrderedDict[int, tuple[_Version, Notes]] = OrderedDict()

    def ids(self) -> set[int]:
        """Return the ids of recordings with a note that was not accepted (StorageError, OSError).

        One thread at a time may call it.
        """
        marks: dict[int, tuple[_Version, bool]] = {}
        for recording_id in marked_recordings(self._directory):
            version = self._version(recording_id)
            if version is not None:
                known = self._marks.get(recording_id)
                if known is None or known[0] != version:
                    known = version, is_suspect(notes_of(self._directory, recording_id))
                marks[recording_id] = known
        self._marks = marks
        return {recording_id for recording_id, (_, is_marked) in marks.items() if is_marked}

    def notes(self, recording_id: int) -> Notes:
        """Return the notes on a recording, also if there is none (OSError)."""
        version = self._version(recording_id)
        if version is None:
            return Notes([], 0, False)
        with self._lock:
            known = self._notes.pop(recording_id, None)
            if known is None or known[0] != version:
                known = version, self._read(recording_id)
            self._notes[recording_id] = known
            while len(self._notes) > _KNOWN:
                self._notes.popitem(last=False)
            return known[1]

    def _read(self, recording_id: int) -> Notes:
        first: list[SuspectNote] = []
        total, is_marked = 0, False
        for note in notes_of(self._directory, recording_id):
            total += 1
            is_marked = is_marked or not note.is_accepted
            if len(first) < _MAX_NOTES:
                first.append(_shortened(note))
        return Notes(first, total, is_marked)

    def _version(self, recording_id: int) -> _Version | None:
        """Return what differs once the notes have changed; None without notes."""
        try:
            status = (self._directory / mark_file_name(recording_id)).stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_size, status.st_ctime_ns


def _shortened(note: SuspectNote) -> SuspectNote:
    long: dict[str, Any] = {
        name: f"{text[:_MAX_TEXT]}…"
        for name in ("outcome", "detail", "quarantine")
        if len(text := getattr(note, name)) > _MAX_TEXT
    }
    return dataclasses.replace(note, **long) if long else note
