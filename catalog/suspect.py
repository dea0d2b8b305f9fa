"""Recordings under suspicion, and the bytes that were taken out of them.

The catalog has no room for a word such as "suspect", so it is said in files beside it whose names
the Java archive passes over (it looks at names that end in ``.rec`` or ``.del`` only):

* ``aerotape-<recordingId>.suspect``: JSON, why and when the recording was marked;
* ``aerotape-<recordingId>-<position>-<time>.quarantine``: bytes that stood behind the end of the
  recording at `position`, as they were. They leave the segment file because frames of a later
  extension would otherwise meet old ones behind them, and after another crash the old ones would
  pass for recorded.

Both stay until an operator, or a purge of the recording, removes them.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
from pathlib import Path
from typing import Any

from aerotape.catalog.durability import sync_directory
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.own_copy import make_own, remove_copies
from aerotape.catalog.quarantine import remove_folders
from aerotape.errors import StorageError
from aerotape.records import asdict, record

_MARK_NAME = re.compile(r"aerotape-([0-9]+)\.suspect")
_COPY_LENGTH = 1 << 20
_MAX_MARK_LENGTH = 1 << 24


@record(frozen=True, slots=True)
class SuspectNote:
    """Why a recording was marked.

    Attributes:
        outcome: name of what was found, as `refresh` names it.
        detail: the same for people.
        position: where, in the recording; -1 when it is not at one place.
        timestamp_ms: when, epoch milliseconds.
        quarantine: name of the file with the bytes taken out, or "".
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


def quarantine_path(archive_dir: Path, recording_id: int, position: int, now_ms: int) -> Path:
    """Name a file that is not there yet, for bytes of a recording taken out at `position`."""
    stem = f"aerotape-{recording_id}-{position}-{now_ms}"
    path = archive_dir / f"{stem}.quarantine"
    # Clocks have been put back before.
    for number in itertools.count(1):
        if not os.path.lexists(path):
            break
        path = archive_dir / f"{stem}-{number}.quarantine"
    return path


def read_marks(archive_dir: str | os.PathLike[str]) -> dict[int, list[SuspectNote]]:
    """Return the notes on all marked recordings of a directory, by recording id.

    A mark that cannot be read still marks its recording: it comes with one note saying so.

    Raises:
        StorageError: the directory cannot be read.
    """
    directory = Path(archive_dir)
    marks: dict[int, list[SuspectNote]] = {}
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                recording_id = marked_recording(entry.name)
                if recording_id is not None:
                    marks[recording_id] = _read(directory / entry.name)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StorageError(f"cannot list {directory}: {error.strerror}", directory) from error
    return marks


def add_notes(archive_dir: Path, recording_id: int, notes: list[SuspectNote]) -> None:
    """Mark a recording as suspect, or add to why it is. On storage when this returns.

    Raises:
        StorageError: the mark cannot be written.
    """
    import json

    path = archive_dir / mark_file_name(recording_id)
    known = _read(path) if os.path.lexists(path) else []
    # What is found again at the next start is not news.
    seen = {(note.outcome, note.detail, note.position) for note in known}
    fresh = [note for note in notes if (note.outcome, note.detail, note.position) not in seen]
    if not fresh:
        return
    content = {
        "recording_id": recording_id,
        "notes": [asdict(note) for note in known + fresh],
    }
    temporary = path.with_suffix(".suspect.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", opener=open_no_follow) as file:
            json.dump(content, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(archive_dir)
    except OSError as error:
        raise StorageError(f"cannot mark recording {recording_id}: {error}", path) from error


def clear_marks(archive_dir: str | os.PathLike[str], recording_id: int) -> None:
    """Remove what is kept beside the files of a recording, for one that is gone.

    That is its mark, quarantined bytes, and what copies that were killed have left.

    Raises:
        StorageError: something of it cannot be removed.
    """
    directory = Path(archive_dir)
    try:
        (directory / mark_file_name(recording_id)).unlink(missing_ok=True)
        for path in directory.glob(f"aerotape-{recording_id}-*.quarantine"):
            path.unlink(missing_ok=True)
        remove_copies(directory, [recording_id])
        remove_folders(directory, recording_id)
    except OSError as error:
        raise StorageError(
            f"cannot clear the marks of recording {recording_id}: {error}", directory
        ) from error


def copy_tail(source: Path, offset: int, end: int, target: Path) -> None:
    """Copy the bytes [offset, end) of a segment into a quarantine file and force it to storage.

    Raises:
        StorageError: it cannot be done; no target is left behind, and one that was there before
            is not touched.
    """
    made = False
    try:
        # The source too: what a link leads to must not be copied into the directory.
        with (
            open(source, "rb", opener=open_no_follow) as reader,
            open(target, "xb", opener=open_no_follow) as writer,
        ):
            made = True
            reader.seek(offset)
            left = end - offset
            while left > 0:
                chunk = reader.read(min(left, _COPY_LENGTH))
                if not chunk:
                    raise OSError(errno.EIO, f"it ends {left} bytes early", str(source))
                writer.write(chunk)
                left -= len(chunk)
            writer.flush()
            os.fsync(writer.fileno())
        sync_directory(target.parent)
    except OSError as error:
        if made:
            with contextlib.suppress(OSError):
                target.unlink()
        raise StorageError(f"cannot copy the tail of {source}: {error}", source) from error


def erase_tail(path: Path, offset: int, length: int | None = None) -> None:
    """Turn all bytes of a segment from `offset` on into zeros, and give it a length if told to.

    Where the file has other names too, they keep what it held (`make_own`).

    Raises:
        StorageError: it cannot be done.
    """
    make_own(path)
    try:
        with open(path, "r+b", opener=open_no_follow) as file:
            before = os.fstat(file.fileno()).st_size
            file.truncate(offset)
            file.truncate(before if length is None else length)
            os.fsync(file.fileno())
    except OSError as error:
        raise StorageError(f"cannot erase the tail of {path}: {error}", path) from error


def move_segment(path: Path, target: Path) -> None:
    """Take a whole segment file out of the recording (StorageError when it cannot be done)."""
    try:
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        path.rename(target)
        sync_directory(target.parent)
    except OSError as error:
        raise StorageError(f"cannot move {path} to {target.name}: {error}", path) from error


def _read(path: Path) -> list[SuspectNote]:
    try:
        if not path.is_file():  # to read a pipe would be to wait
            raise OSError("it is no file")
        if path.stat().st_size > _MAX_MARK_LENGTH:
            raise OSError(f"it is longer than {_MAX_MARK_LENGTH} bytes")
        content = path.read_bytes()
    except OSError as error:
        return [_unreadable(path.name, error)]
    return parse_mark(path.name, content)


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
