"""Where repairs keep what they take out of recordings.

Each repair of a recording makes a folder ``aerotape-quarantine/<recordingId>-<time>`` in the
archive directory, which the Java archive passes over. In it are

* whole segment files, under their own names;
* parts of segment files, ``<segment file>.<offset>-<end>``, offsets in bytes;
* ``note.json``: what was done, why and when, and how the recording was described before.

Nothing here is ever looked at again by an archive. It goes when the recording is purged, or when an
operator removes it.
"""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path
from typing import Any

from aerotape.catalog.durability import sync_directory
from aerotape.catalog.no_follow import check_directory, open_no_follow
from aerotape.errors import StorageError

FOLDER_NAME = "aerotape-quarantine"
NOTE_NAME = "note.json"
_NAME = re.compile(r"([0-9]+)-[0-9]+(-[0-9]+)?")


def make_folder(archive_dir: Path, recording_id: int, now_ms: int) -> Path:
    """Make a new folder for a recording, on storage when this returns.

    Raises:
        StorageError: it cannot be made.
    """
    root = archive_dir / FOLDER_NAME
    try:
        check_directory(root)
        root.mkdir(exist_ok=True)
        sync_directory(archive_dir)
        for number in itertools.count():
            folder = root / f"{recording_id}-{now_ms}{f'-{number}' if number else ''}"
            try:
                folder.mkdir()
            except FileExistsError:  # clocks have been put back before
                continue
            sync_directory(root)
            return folder
    except OSError as error:
        raise StorageError(f"cannot make a folder in {root}: {error.strerror}", root) from error
    raise AssertionError("there is always another number")


def write_note(folder: Path, content: dict[str, Any]) -> None:
    """Write a folder's note anew, on storage when this returns (StorageError)."""
    import json

    path = folder / NOTE_NAME
    temporary = folder / f"{NOTE_NAME}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8", opener=open_no_follow) as file:
            json.dump(content, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(folder)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}", path) from error


def folder_names(archive_dir: Path) -> list[str]:
    """List the names of all folders, each of which begins with a recording id.

    Raises:
        StorageError: the directory cannot be read.
    """
    try:
        return [path.name for path in (archive_dir / FOLDER_NAME).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageError(
            f"cannot list {archive_dir / FOLDER_NAME}: {error.strerror}", archive_dir / FOLDER_NAME
        ) from error


def folders_of(archive_dir: Path, recording_id: int) -> list[Path]:
    """List the folders of a recording, oldest first (OSError)."""
    root = archive_dir / FOLDER_NAME
    if not root.is_dir():
        return []
    return sorted(
        path
        for path in root.iterdir()
        if (match := _NAME.fullmatch(path.name)) and int(match[1]) == recording_id
    )


def remove_folders(archive_dir: Path, recording_id: int) -> None:
    """Remove what is kept of a recording, for one that is gone (OSError)."""
    import shutil

    folders = folders_of(archive_dir, recording_id)
    if folders:
        check_directory(archive_dir / FOLDER_NAME)
    for folder in folders:
        shutil.rmtree(folder)
