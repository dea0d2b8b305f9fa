"""Quarantine: bytes and segment files that were removed from recordings.

Each operation that removes data from a recording (a start, an extension, a migration of segments,
`verify`, `repair`) creates a folder ``aerotape-quarantine/<recordingId>-<time>`` in the archive
directory, which the Java archive ignores. It holds

* whole segment files, under their own names;
* parts of segment files, ``<segment file>.<offset>-<end>``, offsets in bytes;
* ``note.json``: which these are, why and when they were removed; of a repair also the damage and
  the previous description of the recording.

No archive reads it again. A purge of the recording removes it, or an operator does.

`Quarantine.remove` is the one place for the order of steps that loses nothing in a crash.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aerotape import __version__
from aerotape.catalog.durability import sync_directory, write_durably
from aerotape.catalog.no_follow import DIRECTORY_MODE, check_directory, open_no_follow
from aerotape.catalog.recovery import suspect_marks
from aerotape.catalog.recovery.suspect_marks import SuspectNote
from aerotape.catalog.segment.hard_links import break_hard_link
from aerotape.catalog.segment_files import file_names
from aerotape.errors import StorageError, StorageErrors

FOLDER_NAME = "aerotape-quarantine"
NOTE_NAME = "note.json"
_NAME = re.compile(r"([0-9]+)-[0-9]+(-[0-9]+)?")
_COPY_LENGTH = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of a segment file.

    Attributes:
        path: the file.
        offset: of the first byte.
        end: offset after the last.
    """

    path: Path
    offset: int
    end: int

    @property
    def copy_name(self) -> str:
        """The name of its copy."""
        return f"{self.path.name}.{self.offset}-{self.end}"


class Quarantine:
    """The bytes that an operation removes from a recording. The first ones create the folder."""

    def __init__(self, archive_dir: Path, recording_id: int, now_ms: int, reason: str) -> None:
        self._archive_dir = archive_dir
        self._recording_id = recording_id
        self._now_ms = now_ms
        self._reason = reason
        self._folder: Path | None = None
        self._copied: list[Part] = []
        self._moved: list[Path] = []

    @property
    def folder(self) -> Path:
        """The folder, created by now, on storage (StorageError)."""
        if self._folder is None:
            self._folder = make_folder(self._archive_dir, self._recording_id, self._now_ms)
        return self._folder

    def name_of(self, path: Path) -> str:
        """Return the path of something in quarantine, relative to the archive directory."""
        return path.relative_to(self._archive_dir).as_posix()

    def remove_tail(
        self,
        tail: Part,
        note: Callable[[str], SuspectNote],
        *,
        segment_length: int | None = None,
    ) -> Path:
        """Erase the bytes of a segment file from an offset on, as `remove` does.

        Args:
            tail: the bytes; after them the file holds zeros only.
            note: the note for the recording's mark, from the name of the copy.
            segment_length: length of the file afterwards, bytes; None to leave its length.

        Returns:
            The copy.
        """
        copy = self.folder / tail.copy_name
        self.remove([note(self.name_of(copy))], tail=tail, segment_length=segment_length)
        return copy

    def remove_segment(self, path: Path, note: Callable[[str], SuspectNote]) -> Path:
        """Move a whole segment file out of the recording, as `remove` does; return its new path."""
        target = self.folder / path.name
        self.remove([note(self.name_of(target))], segments=[path])
        return target

    def remove(
        self,
        notes: Sequence[SuspectNote],
        *,
        tail: Part | None = None,
        segment_length: int | None = None,
        segments: Sequence[Path] = (),
        overwritten: Sequence[Part] = (),
        **details: Any,
    ) -> None:
        """Remove bytes from a recording in an order that loses none of them in a crash.

        The bytes are copied, the folder's note names them, and the recording is marked as suspect.
        When all of this is on storage, files are moved, and bytes are erased.

        Args:
            notes: of the recording's mark.
            tail: bytes to erase, with all that follows in their file.
            segment_length: length of that file afterwards, bytes; None to leave its length.
            segments: whole files to move into the folder.
            overwritten: bytes that are copied only, for the caller to overwrite.
            details: more for the folder's note.

        Raises:
            StorageError: a step failed. The bytes are in their place, or in quarantine with a mark
                that names them.
        """
        copied = [*overwritten, *([] if tail is None else [tail])]
        folder = self.folder
        try:
            for part in copied:
                copy_tail(part.path, part.offset, part.end, folder / part.copy_name)
            self._write_note([*self._copied, *copied], [*self._moved, *segments], details)
            suspect_marks.add_notes(self._archive_dir, self._recording_id, list(notes))
        except StorageError:
            self._discard(copied)
            raise
        self._copied += copied
        self._moved += segments
        # From the last file on, so that the rest never gets a new hole.
        for path in reversed(segments):
            move_segment(path, folder / path.name)
        if tail is not None:
            erase_tail(tail.path, tail.offset, segment_length)

    def _write_note(
        self, copied: Sequence[Part], moved: Sequence[Path], details: dict[str, Any]
    ) -> None:
        content = {
            "recording_id": self._recording_id,
            "timestamp_ms": self._now_ms,
            "written_by": f"aerotape {__version__}",
            "reason": self._reason,
            "copies": [
                {
                    "segment_file": part.path.name,
                    "offset": part.offset,
                    "length": part.end - part.offset,
                    "copy": part.copy_name,
                }
                for part in copied
            ],
            "segment_files": [path.name for path in moved],
        }
        write_note(self.folder, content | details)

    def _discard(self, copied: Sequence[Part]) -> None:
        """Remove the copies of bytes that were left in their place, as far as possible."""
        import shutil

        folder = self.folder
        if self._copied or self._moved:
            for part in copied:
                with contextlib.suppress(OSError):
                    (folder / part.copy_name).unlink()
            with contextlib.suppress(StorageError):
                self._write_note(self._copied, self._moved, {})
            return
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # it holds other folders
            folder.parent.rmdir()
        self._folder = None


def make_folder(archive_dir: Path, recording_id: int, now_ms: int) -> Path:
    """Create a new folder for a recording, on storage when this returns.

    Raises:
        StorageError: it cannot be created.
    """
    root = archive_dir / FOLDER_NAME
    with StorageErrors(f"cannot make a folder in {root}", root):
        check_directory(root)
        root.mkdir(DIRECTORY_MODE, exist_ok=True)
        sync_directory(archive_dir)
        for number in itertools.count():
            folder = root / f"{recording_id}-{now_ms}{f'-{number}' if number else ''}"
            try:
                folder.mkdir(DIRECTORY_MODE)
            except FileExistsError:  # clocks have been put back before
                continue
            sync_directory(root)
            return folder
    raise AssertionError("there is always another number")


def write_note(folder: Path, content: dict[str, Any]) -> None:
    """Write or replace a folder's note, on storage when this returns (StorageError)."""
    import json

    path = folder / NOTE_NAME
    with StorageErrors(f"cannot write {path}", path):
        write_durably(path, json.dumps(content, indent=2).encode() + b"\n")


def copy_tail(source: Path, offset: int, end: int, target: Path) -> None:
    """Copy the bytes [offset, end) of a segment file to a new file, and force it to storage.

    Raises:
        StorageError: it cannot be done.
    """
    with StorageErrors(f"cannot copy the tail of {source}", source, names_file=True):
        # The source too: what a link leads to must not be copied into the directory.
        with (
            open(source, "rb", opener=open_no_follow) as reader,
            open(target, "xb", opener=open_no_follow) as writer,
        ):
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


def erase_tail(path: Path, offset: int, length: int | None = None) -> None:
    """Erase all bytes of a segment file from `offset` on, and set its length if one is given.

    Where the file has other names too, they keep what it held (`break_hard_link`).

    Raises:
        StorageError: it cannot be done.
    """
    break_hard_link(path)
    errors = StorageErrors(f"cannot erase the tail of {path}", path)
    with errors, open(path, "r+b", opener=open_no_follow) as file:
        before = os.fstat(file.fileno()).st_size
        file.truncate(offset)
        file.truncate(before if length is None else length)
        os.fsync(file.fileno())


def move_segment(path: Path, target: Path) -> None:
    """Move a whole segment file into a folder; both names are on storage (StorageError)."""
    with StorageErrors(f"cannot move {path} to {target}", path):
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        path.rename(target)
        sync_directory(target.parent)
        sync_directory(path.parent)


def folder_names(archive_dir: Path) -> list[str]:
    """List the names of all folders, each of which begins with a recording id (StorageError)."""
    root = archive_dir / FOLDER_NAME
    return list(file_names(root)) if root.is_dir() else []


def folders_of(archive_dir: Path, recording_id: int) -> list[Path]:
    """List the folders of a recording, oldest first (StorageError)."""
    return sorted(
        archive_dir / FOLDER_NAME / name
        for name in folder_names(archive_dir)
        if (match := _NAME.fullmatch(name)) and int(match[1]) == recording_id
    )


def remove_quarantine(archive_dir: Path, recording_id: int) -> None:
    """Remove all that is in quarantine of a recording that is gone (OSError)."""
    import shutil

    folders = folders_of(archive_dir, recording_id)
    if folders:
        check_directory(archive_dir / FOLDER_NAME)
    for folder in folders:
        shutil.rmtree(folder)


def clear_marks(archive_dir: str | os.PathLike[str], recording_id: int) -> None:
    """Remove the mark and the quarantined bytes of a recording that is gone.

    Raises:
        StorageError: something of it cannot be removed.
    """
    directory = Path(archive_dir)
    what = f"cannot clear the marks of recording {recording_id}"
    with StorageErrors(what, directory, names_file=True):
        (directory / suspect_marks.mark_file_name(recording_id)).unlink(missing_ok=True)
        remove_quarantine(directory, recording_id)
