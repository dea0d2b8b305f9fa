"""The segment files of a journal: their names, and the descriptors at their heads.

A segment file is named ``<name>-<id>.log``. Segments are in the order of their ids, which may have
gaps; a segment begins with the index after the last of the segment before it. The last files may be
empty: newer releases create a segment before it is needed, and write its descriptor when it is.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from aerotape.codecs.raft.descriptor import Descriptor, decode_descriptor
from aerotape.errors import ConfigurationError, CorruptJournalError, JournalError, StorageError

SEGMENT_NAME: Final = re.compile(r"(?P<name>.+)-(?P<id>0|[1-9][0-9]{0,18})\.log")
_HEAD_LENGTH: Final = 4096
_BUFFER_LENGTH: Final = 1 << 20


class SegmentGoneError(StorageError):
    """A segment file was deleted after its directory was listed."""


class SegmentPath(NamedTuple):
    """A segment file: its path, and name and id from the file's name."""

    path: Path
    name: str
    id: int


@dataclass(frozen=True, slots=True)
class JournalSegment:
    """A segment of a journal.

    Attributes:
        path: the file.
        id: from the file's name.
        descriptor: the head of the file.
        limit: where the records end at the latest, bytes.
        damage: why the descriptor is not that of the file, whose records can be read; or None.
    """

    path: Path
    id: int
    descriptor: Descriptor
    limit: int
    damage: JournalError | None = None

    def end_damage(self, next_index: int) -> str:
        """Return the reason why the records cannot end before an index; empty if they can.

        Zeebe may have appended to a complete segment, and did not change its descriptor then.
        """
        last_index = self.descriptor.last_index
        if last_index < next_index:
            return ""
        return f"the records end here, and the descriptor has last index {last_index}"


def segment_paths(directory: str | Path, name: str | None = None) -> list[SegmentPath]:
    """Return the segment files of the journal in a directory, in the order of their ids.

    Args:
        directory: the directory.
        name: the journal's name; needed if the directory holds several.

    Raises:
        ConfigurationError: there are several journals, and no name was given.
        StorageError: the directory cannot be read, or has no journal of the name.
    """
    directory = Path(directory)
    try:
        matches = [(path, SEGMENT_NAME.fullmatch(path.name)) for path in directory.iterdir()]
    except OSError as error:
        raise StorageError(f"cannot read {directory}: {error.strerror}", directory) from None
    found = [SegmentPath(path, match["name"], int(match["id"])) for path, match in matches if match]
    names = sorted({each.name for each in found})
    if name is None and len(names) > 1:
        raise ConfigurationError(
            f"{directory} holds several journals, {', '.join(names)}: give the name of one", "name"
        )
    chosen = [each for each in found if name in (None, each.name)]
    if not chosen:
        what = "no journal" if name is None else f"no journal {name}"
        raise StorageError(
            f"{directory} holds {what}: expected segment files named <name>-<id>.log", directory
        )
    return sorted(chosen, key=lambda each: each.id)


def total_length(directory: str | Path, name: str | None = None) -> tuple[str, int]:
    """Return the name of a journal, and the length of its segment files, bytes.

    Raises:
        ConfigurationError, StorageError: as for `segment_paths`.
    """
    files = segment_paths(directory, name)
    length = 0
    for file in files:
        with suppress(FileNotFoundError):  # a broker deletes segments
            length += file.path.stat().st_size
    return files[0].name, length


def check_name(name: str) -> str:
    """Check that files can be named after a journal, and return its name.

    Raises:
        ConfigurationError: it is empty, or has a character that a file's name cannot have.
    """
    if "/" in name or "\0" in name or not SEGMENT_NAME.fullmatch(f"{name}-1.log"):
        raise ConfigurationError(
            f"{name!r} is not a journal's name: files must be named <name>-<id>.log", "name"
        )
    return name


def load_segment(file: SegmentPath) -> JournalSegment | None:
    """Read the descriptor of a segment file.

    Returns:
        None if the file has no descriptor yet.

    Raises:
        JournalError: the descriptor is damaged; its attributes have the place.
        SegmentGoneError: the file has been deleted.
        StorageError: the file cannot be read.
    """
    try:
        # Without waiting for the writer of a pipe.
        number = os.open(file.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as opened:
            status = os.fstat(number)
            if not stat.S_ISREG(status.st_mode):
                raise StorageError(f"cannot read {file.path}: not a regular file", file.path)
            head = opened.read(_HEAD_LENGTH)
            rest = iter(lambda: opened.read(_BUFFER_LENGTH), b"")
            is_empty = not any(head) and not any(each.strip(b"\0") for each in rest)
    except FileNotFoundError:
        raise SegmentGoneError(f"cannot read {file.path}: it has been deleted", file.path) from None
    except OSError as error:
        raise StorageError(f"cannot read {file.path}: {error.strerror}", file.path) from None
    if is_empty:
        return None
    try:
        if not any(head):
            raise CorruptJournalError("a segment has no descriptor, and data after it", offset=0)
        descriptor = decode_descriptor(head)
        if descriptor.max_segment_size <= descriptor.length:
            raise CorruptJournalError(
                f"segment descriptor: it has {descriptor.length} bytes, and says that the file has "
                f"{descriptor.max_segment_size}"
            )
        if descriptor.index < 1:
            raise CorruptJournalError("segment descriptor: the index is 0, expected 1 or more")
    except JournalError as error:
        raise in_descriptor(file.path, type(error), str(error)) from None
    damage = None
    if descriptor.id != file.id:
        why = f"the descriptor has id {descriptor.id}"
        damage = in_descriptor(file.path, CorruptJournalError, why, descriptor.index)
    elif status.st_size > descriptor.max_segment_size:
        why = f"the descriptor has a size of {descriptor.max_segment_size} bytes, not "
        why += str(status.st_size)
        damage = in_descriptor(file.path, CorruptJournalError, why, descriptor.index)
    limit = min(status.st_size, descriptor.max_segment_size)
    return JournalSegment(file.path, file.id, descriptor, limit, damage)


def in_descriptor(path: Path, kind: type[JournalError], why: str, index: int = -1) -> JournalError:
    """Return the error of a kind about the descriptor of a segment file."""
    return kind(f"{why} (file {path}, offset 0)", path, 0, index)
