"""Marks of suspect recordings: those that lost data, or may have.

The catalog has no state "suspect", so ``aerotape-<recordingId>.suspect`` beside it records why and
when a recording was marked, as JSON. The Java archive ignores that name: it reads names that end in
``.rec`` or ``.del`` only. A purge of the recording removes its mark. When an operator accepts the
damage, the notes stay, with the time, and the recording is not suspect until more is found.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from aerotape.catalog.durability import write_durably
from aerotape.catalog.segment_files import file_names, read_whole_file
from aerotape.errors import StorageError, StorageErrors
from aerotape.protocol import NULL_VALUE

_MARK_NAME = re.compile(r"aerotape-([0-9]+)\.suspect")


@dataclass(frozen=True, slots=True)
class SuspectNote:
    """The reason why a recording was marked.

    Attributes:
        outcome: name of what was found, as `refresh` names it.
        detail: the same for people.
        position: where, in the recording; -1 when it is not at one place.
        timestamp_ms: when, epoch milliseconds.
        quarantine: where the bytes taken out are, relative to the archive directory, or "".
        accepted_timestamp_ms: when it was accepted, epoch milliseconds; -1 if it was not.
    """

    outcome: str
    detail: str
    position: int
    timestamp_ms: int
    quarantine: str = ""
    accepted_timestamp_ms: int = NULL_VALUE

    @property
    def is_accepted(self) -> bool:
        """Whether an operator has accepted what it says."""
        return self.accepted_timestamp_ms >= 0


def mark_file_name(recording_id: int) -> str:
    """Name the file that marks a recording."""
    return f"aerotape-{recording_id}.suspect"


def marked_recording(name: str) -> int | None:
    """Return the recording that a file marks by its name, None for any other file."""
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


def read_notes(archive_dir: Path, recording_id: int) -> list[SuspectNote]:
    """Return the notes on a recording, as `read_marks` does; none if it is not marked."""
    return _read(archive_dir / mark_file_name(recording_id))


def is_suspect(notes: Iterable[SuspectNote]) -> bool:
    """Whether a recording with these notes is suspect: not all of them were accepted."""
    return not all(note.is_accepted for note in notes)


def suspect_ids(marks: Mapping[int, Iterable[SuspectNote]]) -> set[int]:
    """Return the suspect ones of the recordings that have notes."""
    return {recording_id for recording_id, notes in marks.items() if is_suspect(notes)}


def add_notes(archive_dir: Path, recording_id: int, notes: list[SuspectNote]) -> None:
    """Mark a recording as suspect, or add to why it is. On storage when this returns.

    Raises:
        StorageError: the mark cannot be written.
    """

    def added(known: list[SuspectNote]) -> list[SuspectNote]:
        # What is found again at the next start is not news.
        seen = {(note.outcome, note.detail, note.position) for note in known}
        fresh = [note for note in notes if (note.outcome, note.detail, note.position) not in seen]
        return known + fresh

    _change(archive_dir, recording_id, added)


def accept_notes(archive_dir: Path, recording_id: int, now_ms: int) -> list[SuspectNote]:
    """Accept all notes on a recording; return those that were not accepted before.

    An archive may be running. On storage when this returns.

    Args:
        archive_dir: the archive directory.
        recording_id: the recording.
        now_ms: epoch milliseconds.

    Raises:
        StorageError: the mark cannot be written.
    """
    accepted: list[SuspectNote] = []

    def accept(known: list[SuspectNote]) -> list[SuspectNote]:
        accepted.extend(note for note in known if not note.is_accepted)
        return [n if n.is_accepted else replace(n, accepted_timestamp_ms=now_ms) for n in known]

    _change(archive_dir, recording_id, accept)
    return accepted


def _change(
    archive_dir: Path,
    recording_id: int,
    change: Callable[[list[SuspectNote]], list[SuspectNote]],
) -> None:
    """Replace the notes on a recording; other processes wait meanwhile."""
    import json

    path = archive_dir / mark_file_name(recording_id)
    with (
        StorageErrors(f"cannot mark recording {recording_id}", path, names_file=True),
        _locked(archive_dir),
    ):
        known = _read(path)
        notes = change(known)
        if notes != known:
            content = {"recording_id": recording_id, "notes": [asdict(note) for note in notes]}
            write_durably(path, json.dumps(content, indent=2).encode())


@contextlib.contextmanager
def _locked(archive_dir: Path) -> Iterator[None]:
    """Lock the directory itself, which nothing else does; without locks, do nothing."""
    descriptor = os.open(archive_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # the file system has none
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read(path: Path) -> list[SuspectNote]:
    try:
        content = read_whole_file(path, "mark")
    except StorageError as error:
        return [_unreadable(path.name, error)]
    return [] if content is None else parse_mark(path.name, content)


def parse_mark(name: str, content: bytes) -> list[SuspectNote]:
    """Parse a file of notes; an unreadable file yields one note that says so."""
    import json

    try:
        parsed: dict[str, Any] = json.loads(content.decode("utf-8"))
        names = SuspectNote.__slots__
        # Later versions may have more of them.
        notes = [{name: note[name] for name in names if name in note} for note in parsed["notes"]]
        return [SuspectNote(**note) for note in notes]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        return [_unreadable(name, error)]


def _unreadable(name: str, error: Exception) -> SuspectNote:
    return SuspectNote("unreadable mark", f"{name} cannot be read: {error}", -1, 0)
