"""Scopes of a store, and the directories of imported recordings.

The scope of an archive's recordings is its archive id. The recordings of a store's archive are in
the archive directory itself. Each recording of another scope is in a directory below it that is an
archive directory too, with a catalog, a mark file and the segment files of that one recording: four
levels of eight hexadecimal digits, the scope id and the recording id as unsigned numbers. The Java
archive ignores directories in an archive directory.

Scope 0 always means the archive's own recordings, because an archive without an id is in scope 0.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from aerotape.errors import ConfigurationError, StorageErrors
from aerotape.qualified_id import MAX_UNSIGNED, QualifiedId

_PART = re.compile(r"[0-9a-f]{8}")
_NULL_ARCHIVE_ID = -1

ListFolders = Callable[[PurePosixPath], Iterable[str]]
"""Returns the names in a folder of a store, given by its relative path; none if it is missing."""


def unsigned(scope_id: int, name: str = "scope_id") -> int:
    """Return a scope id as an unsigned number; it may be given in two's complement.

    Args:
        scope_id: the scope id.
        name: name of the option or argument, for the error.

    Raises:
        ConfigurationError: it does not fit in 64 bits.
    """
    if not -(1 << 63) <= scope_id <= MAX_UNSIGNED:
        raise ConfigurationError(f"{name}: {scope_id} does not fit in 64 bits", name)
    return scope_id & MAX_UNSIGNED


def scope_of_archive(archive_id: int) -> int:
    """Return the scope of an archive's own recordings; 0 for an archive without an id (-1)."""
    return 0 if archive_id == _NULL_ARCHIVE_ID else archive_id & MAX_UNSIGNED


def imported_directory(archive_dir: Path, qualified_id: QualifiedId) -> Path:
    """Return the directory of an imported recording, whether it exists or not."""
    return archive_dir.joinpath(*qualified_id.path.parts)


def imported_ids(archive_dir: Path, scope_id: int | None = None) -> list[QualifiedId]:
    """Return the ids of imported recordings, ascending by scope and recording, both unsigned.

    Args:
        archive_dir: the store.
        scope_id: only this scope, unsigned; all if None.

    Raises:
        StorageError: a directory cannot be read.
    """

    def names(path: PurePosixPath) -> Iterable[str]:
        folder = archive_dir.joinpath(path)
        with (
            StorageErrors(f"cannot list directory {folder}", folder),
            suppress(FileNotFoundError, NotADirectoryError),
        ):
            return [entry.name for entry in os.scandir(folder) if entry.is_dir()]
        return ()

    return find_imported(names, scope_id)


def find_imported(names: ListFolders, scope_id: int | None = None) -> list[QualifiedId]:
    """Return the ids of imported recordings in a store whose folders `names` lists."""
    if scope_id is None:
        scopes = _below(names, _below(names, [PurePosixPath()]))
    else:
        digits = f"{scope_id:016x}"
        scopes = [PurePosixPath(digits[:8], digits[8:])]
    # Scope 0 has no directories.
    scopes = [scope for scope in scopes if set("".join(scope.parts)) != {"0"}]
    found = _below(names, _below(names, scopes))
    return sorted(QualifiedId.parse("".join(path.parts)) for path in found)


def _below(names: ListFolders, folders: list[PurePosixPath]) -> list[PurePosixPath]:
    return [folder / name for folder in folders for name in names(folder) if _PART.fullmatch(name)]
