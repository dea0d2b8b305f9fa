"""Quarantine: bytes and segment files that were removed from recordings.

Each operation that removes data from a recording (a start, an extension, a migration of segments,
`verify`, `repair`) creates a folder ``aerotape-quarantine/<recordingId>-<time>`` in the archive
directory, which the Java archive ignores. It holds

* whole segment files, under their own names;
* parts of segment files, ``<segment file>.<offset>-<end>``, offsets in bytes;
* ``note.json``: which these are, why and when they were removed; of a repair also the damage and
  the previous description of the recording.

No archive reads it again. A purge of the recording removes it, or an operator does.

The order of steps is for the caller to keep: copy, write the note, mark the recording as suspect
(`suspect_marks`), and only then erase or move.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
from pathlib import Path
from typing import Any

from aerotape import __version__
from aerotape.catalog.durability import sync_directory, write_durably
from aerotape.catalog.no_follow import DIRECTORY_MODE, check_directory, open_no_follow
from aerotape.catalog.segment.hard_links import break_hard_link
from aerotape.catalog.segment_files import file_names
from aerotape.errors import StorageErrors

FOLDER_NAME = "aerotape-quarantine"
NOTE_NAME = "note.json"
_NAME = re.compile(r"([0-9]+)-[0-9]+(-[0-9]+)?")
_COPY_LENGTH = 1 << 20


class Quarantine:
    """The bytes that an operation removes from a recording. The first ones create the folder."""

    def __init__(self, archive_dir: Path, recording_id: int, now_ms: int, reason: str) -> None:
        self._archive_dir = archive_dir
        self._recording_id = recording_id
        self._now_ms = now_ms
        self._reason = reason
        self._folder: Path | None = None
        self._copies: list[dict[str, Any]] = []
        self._segment_files: list[str] = []

    @property
    def folder(self) -> Path:
        """The folder, created by now, on storage (StorageError)."""
        if self._folder is None:
            self._folder = make_folder(self._archive_dir, self._recording_id, self._now_ms)
        return self._folder

    def name_of(self, path: Path) -> str:
        """Return the path of something in quarantine, relative to the archive directory."""
        return path.relative_to(self._archive_dir).as_posix()

    def copy(self, path: Path, offset: int, end: int) -> Path:
        """Copy the bytes [offset, end) of a segment file; the copy is on storage (StorageError)."""
        name = f"{path.name}.{offset}-{end}"
        target = self.folder / name
        copy_tail(path, offset, end, target)
        self._copies.append(
            {"segment_file": path.name, "offset": offset, "length": end - offset, "copy": name}
        )
        return target

    def expect_segment(self, path: Path) -> Path:
        """Name a whole segment file in the note, before `move_segment`; return its new path."""
        self._segment_files.append(path.name)
        return self.folder / path.name

    def write_note(self, **details: Any) -> None:
        """Write or replace the note, on storage when this returns (StorageError)."""
        content = {
            "recording_id": self._recording_id,
            "timestamp_ms": self._now_ms,
            "written_by": f"aerotape {__version__}",
            "reason": self._reason,
            "copies": self._copies,
            "segment_files": self._segment_files,
        }
        write_note(self.folder, content | details)

    def discard(self) -> None:
        """Remove the folder with the copies, as far as possible: no mark refers to them."""
        import shutil

        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # it holds other folders
                self._folder.parent.rmdir()
        self._folder, self._copies, self._segment_files = None, [], []


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
