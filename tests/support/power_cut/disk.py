"""Files and directories on storage and as processes see them, for `power_cut`.

Guarantees of storage:

* bytes of a file are durable once the file was forced; after later stores, each sector may have
  its content of then or of any time since, and the length of the file likewise;
* names in a directory are durable once the directory was forced; of later changes, a prefix is
  durable. Directories are independent, but a rename between two is atomic.

Forcing a file does not force its name. Many file systems guarantee more, but not all.
"""

from __future__ import annotations

import enum
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

SECTOR_LENGTH = 512
_T = TypeVar("_T")


class Kind(enum.IntEnum):
    """Kinds of records, in the order of `power_cut.c`; the last one is for omitted records."""

    WRITE = 0
    SIZE = 1
    CREATE = 2
    RENAME = 3
    LINK = 4
    UNLINK = 5
    MKDIR = 6
    RMDIR = 7
    SYNC = 8
    SYNC_NAMES = 9
    NOTE = 10
    NOTHING = 11


@dataclass(frozen=True, slots=True)
class Change:
    """A record of the log.

    Attributes:
        inode: the inode of the file.
        offset: the offset of the bytes in it, or its new length.
        first: the bytes, the path, or the note.
        second: the other path, or the place in the program that forces something to storage.
        counters: values of the watched counters, in the order in which they were added.
    """

    kind: Kind
    inode: int
    offset: int
    first: bytes
    second: bytes
    counters: tuple[int, ...]


class File:
    """A file on storage and as processes see it."""

    def __init__(self, data: bytes = b"") -> None:
        self.forced = bytes(data)
        self.data = bytearray(data)
        # The content of each sector and the length since the file was forced, each with its time.
        self._sectors: dict[int, list[tuple[int, bytes]]] = {}
        self._lengths: list[tuple[int, int]] = []

    def write(self, now: int, offset: int, data: bytes) -> None:
        end = offset + len(data)
        if end > len(self.data):
            self.resize(now, end)
        self.data[offset:end] = data
        self._touch(now, offset, end)

    def resize(self, now: int, length: int) -> None:
        before = len(self.data)
        if length < before:
            del self.data[length:]
            self._touch(now, length, before)
        else:
            self.data.extend(bytes(length - before))
        self._lengths.append((now, length))

    def force(self) -> None:
        self.forced = bytes(self.data)
        self._sectors.clear()
        self._lengths.clear()

    @property
    def sectors_not_forced(self) -> list[int]:
        """Offsets of the sectors that were written since the file was forced."""
        return sorted(self._sectors)

    def but_for(self, sector: int, is_only: bool) -> bytes:
        """Return the content with one sector as it was forced, or with only that one as it is
        now."""
        base, other = bytes(self.data), self.forced.ljust(len(self.data), b"\0")
        if is_only:
            base, other = other[: len(base)], base
        end = sector + SECTOR_LENGTH
        return base[:sector] + other[sector : min(end, len(base))] + base[end:]

    def _touch(self, now: int, begin: int, end: int) -> None:
        for at in range(begin - begin % SECTOR_LENGTH, end, SECTOR_LENGTH):
            found = bytes(self.data[at : at + SECTOR_LENGTH]).ljust(SECTOR_LENGTH, b"\0")
            self._sectors.setdefault(at, []).append((now, found))

    def mixture(self, draw: random.Random, share: float, unit: int, now: int) -> bytes:
        """Return a possible content of storage; `share` of the changes since the last force.

        The bytes of each `unit` are those of one moment: the last, or an earlier one.
        """

        def moment() -> int:
            if draw.random() >= share:
                return -1
            return now if draw.random() < 0.6 else draw.randint(0, now)

        length = _at(moment(), self._lengths, len(self.forced))
        mixed = bytearray(max(len(self.forced), len(self.data)))
        mixed[: len(self.forced)] = self.forced
        moments: dict[int, int] = {}
        for at, versions in sorted(self._sectors.items()):
            if at // unit not in moments:
                moments[at // unit] = moment()
            before = bytes(mixed[at : at + SECTOR_LENGTH])
            found = _at(moments[at // unit], versions, before)
            mixed[at : at + len(before)] = found[: len(before)]
        return bytes(mixed[:length].ljust(length, b"\0"))


def _at(moment: int, versions: Sequence[tuple[int, _T]], forced: _T) -> _T:
    """Return the version at a moment."""
    found = forced
    for since, version in versions:
        if since <= moment:
            found = version
    return found


Entry = File | str
"""A file, or the key of a directory, which it retains when it is renamed."""


@dataclass
class Folder:
    """The names of a directory: the forced ones, and the changes since then."""

    names: dict[str, Entry] = field(default_factory=dict)
    changes: list[tuple[int, str, Entry | None]] = field(default_factory=list)

    def current(self) -> dict[str, Entry]:
        return self.after(len(self.changes))

    def after(self, count: int) -> dict[str, Entry]:
        names = dict(self.names)
        for _, name, entry in self.changes[:count]:
            if entry is not None:
                names[name] = entry
            else:
                names.pop(name, None)
        return names


class Disk:
    """Files and directories below a root, after a sequence of changes."""

    def __init__(self, root: Path) -> None:
        self.folders: dict[str, Folder] = {"": Folder()}
        self._inodes: dict[int, File] = {}
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            entry: Entry = name
            if path.is_dir():
                self.folders[name] = Folder()
            else:
                # A file with two names is one file.
                inode = path.stat().st_ino
                entry = self._inodes.setdefault(inode, File(path.read_bytes()))
            folder, _, last = name.rpartition("/")
            self.folders[folder].names[last] = entry

    def apply(self, number: int, change: Change) -> None:
        kind, first, second = change.kind, change.first, os.fsdecode(change.second)
        if kind is Kind.WRITE:
            self._inodes[change.inode].write(number, change.offset, first)
        elif kind is Kind.SIZE:
            self._inodes[change.inode].resize(number, change.offset)
        elif kind is Kind.SYNC:
            self._inodes[change.inode].force()
        elif kind not in (Kind.NOTE, Kind.NOTHING):
            self._rename(number, kind, change.inode, os.fsdecode(first), second)

    def _rename(self, number: int, kind: Kind, inode: int, first: str, second: str) -> None:
        if kind is Kind.CREATE:
            self._inodes[inode] = File()
            self._put(number, first, self._inodes[inode])
        elif kind is Kind.MKDIR:
            key = f"{first} created by change {number}"
            self.folders[key] = Folder()
            self._put(number, first, key)
        elif kind in (Kind.UNLINK, Kind.RMDIR):
            self._take(number, first)
        elif kind is Kind.SYNC_NAMES:
            self._force_names(first)
        else:
            folder, _, name = first.rpartition("/")
            self._put(number, second, self._folder(folder).current()[name])
            if kind is Kind.RENAME:
                self._take(number, first)

    def _folder(self, path: str) -> Folder:
        """Return the directory that has this path now."""
        folder = self.folders[""]
        for name in path.split("/") if path else ():
            key = folder.current()[name]
            assert isinstance(key, str), f"{path} is not a directory"
            folder = self.folders[key]
        return folder

    def _put(self, number: int, path: str, entry: Entry) -> None:
        folder, _, name = path.rpartition("/")
        self._folder(folder).changes.append((number, name, entry))

    def _take(self, number: int, path: str) -> None:
        folder, _, name = path.rpartition("/")
        self._folder(folder).changes.append((number, name, None))

    def _force_names(self, path: str) -> None:
        folder = self._folder(path)
        folder.names = folder.current()
        forced = {number for number, *_ in folder.changes}
        folder.changes.clear()
        for other in self.folders.values():
            # A rename between two directories is atomic.
            count = max((i + 1 for i, c in enumerate(other.changes) if c[0] in forced), default=0)
            other.names = other.after(count)
            del other.changes[:count]

    def names(self, draw: Callable[[Folder], int]) -> dict[str, dict[str, Entry]]:
        """Return the names in each directory; `draw` returns how many of its changes are
        durable."""
        counts = {path: draw(folder) for path, folder in self.folders.items()}
        settled = False
        while not settled:
            settled = True
            there = {
                self.folders[path].changes[index][0]
                for path, count in counts.items()
                for index in range(count)
            }
            for path, folder in self.folders.items():
                whole = [i + 1 for i, c in enumerate(folder.changes) if c[0] in there]
                if whole and whole[-1] > counts[path]:
                    counts[path], settled = whole[-1], False
        return {path: folder.after(counts[path]) for path, folder in self.folders.items()}


def tree(
    names: Mapping[str, Mapping[str, Entry]], content: Callable[[str, File], bytes]
) -> tuple[dict[str, bytes], frozenset[str]]:
    files: dict[str, bytes] = {}
    folders: set[str] = set()
    read: dict[int, bytes] = {}

    def walk(folder: str, key: str) -> None:
        for name, entry in names[key].items():
            path = f"{folder}/{name}" if folder else name
            if isinstance(entry, str):
                folders.add(path)
                walk(path, entry)
            else:
                # A file with two names is one file.
                if id(entry) not in read:
                    read[id(entry)] = content(path, entry)
                files[path] = read[id(entry)]

    walk("", "")
    return files, frozenset(folders)
