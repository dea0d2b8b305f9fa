"""The directories of partitions in a broker's data directory.

The journal of partition N is in ``raft-partition/partitions/N``, and beside its segments is the
metadata (`metadata`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from aerotape.codecs.raft_journal.segment import SEGMENT_NAME
from aerotape.errors import StorageError

# Where the directories of partitions are, in a data directory and in the folders on the way.
_PARTITIONS: Final = ("raft-partition/partitions", "partitions", ".")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")


def journal_directories(directory: str | Path, name: str | None = None) -> list[Path]:
    """Return the directories of journals in a broker's data directory, in the order of partitions.

    Args:
        directory: the data directory, a folder in it with partitions, or the directory of one
            journal, which is returned itself.
        name: only those that hold a journal of this name, if the directory has partitions.

    Raises:
        StorageError: a directory cannot be read, or no partition has a journal of the name.
    """
    directory = Path(directory)
    if any(SEGMENT_NAME.fullmatch(path.name) for path in _children(directory)):
        return [directory]
    for folder in _PARTITIONS:
        children = _children(directory / folder)
        found = [path for path in children if _NUMBER.fullmatch(path.name) and path.is_dir()]
        if found:
            break
    else:
        return [directory]
    found.sort(key=lambda path: int(path.name))
    if name is not None:
        found = [path for path in found if _holds(path, name)]
        if not found:
            raise StorageError(f"no partition in {directory} has a journal {name}", directory)
    return found


def _holds(directory: Path, name: str) -> bool:
    matches = (SEGMENT_NAME.fullmatch(path.name) for path in _children(directory))
    return any(match and match["name"] == name for match in matches)


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageError(f"cannot read {folder}: {error.strerror}", folder) from None
