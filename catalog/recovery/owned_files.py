"""The files that are named for a recording: its segment files, and ours beside them.

A file may outlive its recording: ArchiveTool's `compact` deletes segment files only, and a catalog
can be lost. No new recording gets the id of such a file.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from aerotape.catalog.recovery.quarantine import FOLDER_NAME, folder_names
from aerotape.catalog.segment_files import file_names
from aerotape.errors import StorageErrors

# Any file named for a recording: segment files, also about to be deleted, and files of ours.
_ANY_OWNED = re.compile(r"(?:aerotape-)?([0-9]+)[-.]", re.ASCII)
_OURS = re.compile(r"aerotape-([0-9]+)\..+", re.ASCII)


def ids_with_files(archive_dir: Path, names: Iterable[str] | None = None) -> set[int]:
    """Return the ids that any file in a directory is named for, regardless of the catalog.

    Files are segment files, also about to be deleted, and ours: time indexes, marks, quarantine.

    Args:
        archive_dir: the directory.
        names: of its files, by default all.

    Raises:
        StorageError: the directory cannot be read.
    """
    if names is None:
        names = file_names(archive_dir)
    everything = itertools.chain(names, folder_names(archive_dir))
    return {int(match[1]) for name in everything if (match := _ANY_OWNED.match(name))}


def find_leftovers(archive_dir: Path, recording_ids: Iterable[int]) -> list[Path]:
    """Find files and quarantine of recordings that are gone, with their segment files.

    Args:
        archive_dir: the directory.
        recording_ids: those of all entries in the catalog.

    Raises:
        StorageError: the directory cannot be read.
    """
    names = list(file_names(archive_dir))
    quarantined = folder_names(archive_dir)
    with_segments = {
        int(match[1])
        for name in names
        if not name.startswith("aerotape-") and (match := _ANY_OWNED.match(name))
    }
    known = with_segments.union(recording_ids)
    found = [archive_dir / name for name in names if _is_left(_OURS.fullmatch(name), known)]
    root = archive_dir / FOLDER_NAME
    found += [root / name for name in quarantined if _is_left(_ANY_OWNED.match(name), known)]
    return sorted(found)


def delete_leftovers(paths: Iterable[Path]) -> None:
    """Delete what `find_leftovers` has found (StorageError)."""
    for path in paths:
        with StorageErrors(f"cannot delete {path}", path, names_file=True):
            if path.is_dir() and not path.is_symlink():
                import shutil  # loaded slowly, and rarely needed

                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def _is_left(match: re.Match[str] | None, known: Collection[int]) -> bool:
    return match is not None and int(match[1]) not in known
