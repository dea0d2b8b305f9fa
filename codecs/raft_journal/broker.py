"""What a broker stores around its journals: directories of partitions, and metadata.

A broker's data directory has the journal of partition N in ``raft-partition/partitions/N``. Beside
the segments is ``<name>.meta``: a version, 1, and a Meta message, with the last index that is on
disk. Zeebe 8.2 and later store it after each flush, and before they truncate the journal; Zeebe 1.0
stores the index that it has flushed and committed. Records up to it must be in the journal.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from aerotape.codecs.generated import raft_entry as messages
from aerotape.codecs.raft_journal.directory import SEGMENT_NAME
from aerotape.codecs.runtime import decode_message
from aerotape.errors import CodecError, CorruptJournalError, StorageError

# Where the directories of partitions are, in a data directory and in the folders on the way.
_PARTITIONS: Final = ("raft-partition/partitions", "partitions", ".")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")
_META_LENGTH: Final = 4096
_META_VERSION: Final = 1


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


def meta_path(directory: Path, name: str) -> Path:
    """Return the path of the metadata of a journal."""
    return directory / f"{name}.meta"


def last_flushed_index(directory: Path, name: str) -> int:
    """Return the index up to which a broker has flushed a journal; 0 if it is not known.

    Raises:
        CorruptJournalError: the metadata is not valid.
        StorageError: it cannot be read.
    """
    path = meta_path(directory, name)
    if not path.is_file():
        return 0
    try:
        with path.open("rb") as opened:
            content = opened.read(_META_LENGTH)
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}", path) from None
    if not any(content):  # created, and not written yet
        return 0
    try:
        if content[0] != _META_VERSION:
            raise CodecError(f"the version is {content[0]}, expected {_META_VERSION}")
        meta = decode_message(
            memoryview(content)[1:],
            messages.SCHEMA_ID,
            "raft metadata",
            {messages.Meta.TEMPLATE_ID: messages.Meta},
        )
    except CodecError as error:
        raise CorruptJournalError(f"{path}: {error}", path, 0) from None
    assert isinstance(meta, messages.Meta)
    return meta.flushed_index or 0
