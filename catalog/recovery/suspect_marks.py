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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from aerotape.catalog.durability import write_durably
from aerotape.catalog.segment_files import file_names, open_regular_file
from aerotape.errors import StorageError, StorageErrors, reason_of
from aerotape.protocol import NULL_VALUE
from aerotape.units import MAX_LONG

_TEXTS: Final = frozenset({"outcome", "detail", "quarantine"})
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


_FIELDS: Final = tuple(each.name for each in fields(SuspectNote))


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
    return {each: read_notes(directory, each) for each in marked_recordings(directory)}


def marked_recordings(archive_dir: Path) -> list[int]:
    """Return the ids of the marked recordings of a directory, ascending (StorageError)."""
    names = file_names(archive_dir) if archive_dir.exists() else ()
    return sorted(each for each in map(marked_recording, names) if each is not None)


def read_notes(archive_dir: Path, recording_id: int) -> list[SuspectNote]:
    """Return the notes on a recording, as `read_marks` does; none if it is not marked."""
    return list(notes_of(archive_dir, recording_id))


def notes_of(archive_dir: Path, recording_id: int) -> Iterator[SuspectNote]:
    """Iterate over the notes on a recording, as `read_notes`, in little memory."""
    path = archive_dir / mark_file_name(recording_id)
    try:
        with open_regular_file(path) as file:
            yield from parse_mark(path.name, file)
    except FileNotFoundError:
        return
    except OSError as error:
        yield _unreadable(path.name, reason_of(error))
    except StorageError as error:
        yield _unreadable(path.name, str(error))


def is_suspect(notes: Iterable[SuspectNote]) -> bool:
    """Whether a recording with these notes is suspect: not all of them were accepted."""
    return not all(note.is_accepted for note in notes)


def suspect_ids(archive_dir: Path) -> set[int]:
    """Return the ids of the suspect recordings of a directory (StorageError)."""
    found = marked_recordings(archive_dir)
    return {each for each in found if is_suspect(notes_of(archive_dir, each))}


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
        known = read_notes(archive_dir, recording_id)
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


def parse_mark(name: str, file: BinaryIO) -> Iterator[SuspectNote]:
    """Iterate over the notes in a file; where it is unreadable, the last one says so.

    Args:
        name: of the file.
        file: it, from its begin on.

    Raises:
        OSError: it cannot be read.
    """
    from aerotape.json_elements import elements_of

    try:
        yield from map(_note, elements_of(file, "notes"))
    except (ValueError, TypeError, RecursionError) as error:
        yield _unreadable(name, str(error))


def _note(row: Any) -> SuspectNote:
    """Return a note from its JSON, of which later versions may have more (TypeError)."""
    if not isinstance(row, dict):
        raise TypeError(f"a note is {type(row).__name__}")
    given = {name: row[name] for name in _FIELDS if name in row}
    for name, value in given.items():
        kind = type(value)
        is_valid = kind is str if name in _TEXTS else kind is int and -1 <= value <= MAX_LONG
        if not is_valid:
            raise TypeError(f"{name} is {str(value)[:40]!r}")
    return SuspectNote(**given)


def _unreadable(name: str, reason: str) -> SuspectNote:
    return SuspectNote("unreadable mark", f"{name} cannot be read: {reason}", -1, 0)
