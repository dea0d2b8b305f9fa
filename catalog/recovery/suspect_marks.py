"""Marks of suspect recordings: those that lost data, or may have.

The catalog has no state "suspect", so ``aerotape-<recordingId>.suspect`` beside it records why and
when a recording was marked, as JSON. The Java archive ignores that name: it reads names that end in
``.rec`` or ``.del`` only. A mark stays until an operator, or a purge of the recording, removes it.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aerotape.catalog.durability import write_durably
from aerotape.catalog.segment_files import file_names, read_whole_file
from aerotape.errors import StorageError, StorageErrors

_MARK_NAME = re.compile(r"aerotape-([0-9]+)\.suspect")


@dataclass(frozen=True, slots=True)
class SuspectNote:
    """Why a recording was marked.

    Attributes:
        outcome: name of what was found, as `refresh` names it.
        detail: the same for people.
        position: where, in the recording; -1 when it is not at one place.
        timestamp_ms: when, epoch milliseconds.
        quarantine: where the bytes taken out are, relative to the archive directory, or "".
    """

    outcome: str
    detail: str
    position: int
    timestamp_ms: int
    quarantine: str = ""


def mark_file_name(recording_id: int) -> str:
    """Name the file that marks a recording."""
    return f"aerotape-{recording_id}.suspect"


def marked_recording(name: str) -> int | None:
    """Return which recording a file marks by its name, None for any other file."""
    match = _MARK_NAME.fullmatch(name)
    return None if match is None else int(match[1])


def read_marks(archive_dir: str | os.PathLike[str]) -> dict[int, list[SuspectNote]]:
    """Return the notes on all marked recordings of a directory, by recording id.

    A mark that cannot be read still marks its recording: it comes with one note saying so.

    Raises:
        StorageError: the directory cannot be read.
    """
    directory = Path(archive_dir)
    marks: dict[int, list[SuspectNote]] = {}
    for name in file_names(directory) if directory.exists() else ():
        recording_id = marked_recording(name)
        if recording_id is not None:
            marks[recording_id] = _read(directory / name)
    return marks


def add_notes(archive_dir: Path, recording_id: int, notes: list[SuspectNote]) -> None:
    """Mark a recording as suspect, or add to why it is. On storage when this returns.

    Raises:
        StorageError: the mark cannot be written.
    """
    import json

    path = archive_dir / mark_file_name(recording_id)
    known = _read(path)
    # What is found again at the next start is not news.
    seen = {(note.outcome, note.detail, note.position) for note in known}
    fresh = [note for note in notes if (note.outcome, note.detail, note.position) not in seen]
    if not fresh:
        return
    content = {
        "recording_id": recording_id,
        "notes": [asdict(note) for note in known + fresh],
    }
    with StorageErrors(f"cannot mark recording {recording_id}", path, names_file=True):
        write_durably(path, json.dumps(content, indent=2).encode())


def _read(path: Path) -> list[SuspectNote]:
    try:
        content = read_whole_file(path, "mark")
    except StorageError as error:
        return [_unreadable(path.name, error)]
    return [] if content is None else parse_mark(path.name, content)


def parse_mark(name: str, content: bytes) -> list[SuspectNote]:
    """Return the notes in the file `name`; one that says so when they cannot be read."""
    import json

    try:
        parsed: dict[str, Any] = json.loads(content.decode("utf-8"))
        return [SuspectNote(**note) for note in parsed["notes"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        return [_unreadable(name, error)]


def _unreadable(name: str, error: Exception) -> SuspectNote:
    return SuspectNote("unreadable mark", f"{name} cannot be read: {error}", -1, 0)
