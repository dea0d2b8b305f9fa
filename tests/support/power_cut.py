"""Power cuts: which files a machine could find after one, at every change that a process makes.

`recorded` has a process write down all that it changes below a folder and what it forces to storage
(`power_cut.c`, preloaded). `power_cuts` goes through that and gives, for each place between two
changes, directories that storage may hold if the power fails there. What is known of storage:

* bytes of a file are there once the file was forced; of those stored since, each sector may hold
  what it held then or at any time since, and the length of the file likewise;
* names in a directory are there once the directory was forced; of the changes to them since, those
  up to some place are there. Each directory is for itself, but a rename between two is whole.

Forcing a file does not force its name. File systems promise more than this; not all the same.
"""

from __future__ import annotations

import copy
import enum
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from support.java import ROOT

SECTOR_LENGTH = 512
PAGE_LENGTH = 4096
_T = TypeVar("_T")
_HEADER = struct.Struct("<IIIIQq")


class Kind(enum.IntEnum):
    """Kinds of records, in the order of `power_cut.c`."""

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


@dataclass(frozen=True, slots=True)
class Change:
    """A record of the log.

    Attributes:
        inode: of the file.
        offset: of the bytes in it, or its new length.
        first: the bytes, or the path, or what was noted.
        second: the other path.
        counters: of those that are watched, in the order in which that has begun.
    """

    kind: Kind
    inode: int
    offset: int
    first: bytes
    second: bytes
    counters: tuple[int, ...]


@dataclass(frozen=True)
class Cut:
    """What a power cut may leave.

    Attributes:
        place: how many changes had been made.
        kind: how much of what was not forced to storage is there.
        files: content by path.
        folders: paths of directories.
        counters: what the watched counters had said before, at least.
        notes: what the process had noted before.
    """

    place: int
    kind: str
    files: Mapping[str, bytes]
    folders: frozenset[str]
    counters: tuple[int, ...]
    notes: Sequence[str]

    def __str__(self) -> str:
        return f"after {self.place} changes, {self.kind}"

    def write(self, root: Path) -> None:
        """Write it into a folder that is empty or not there."""
        root.mkdir(exist_ok=True)
        for folder in sorted(self.folders):
            (root / folder).mkdir()
        for name, data in self.files.items():
            with (root / name).open("wb") as file:
                # Pages that nothing was written to are holes.
                for at in range(0, len(data), PAGE_LENGTH):
                    page = data[at : at + PAGE_LENGTH]
                    if page.strip(b"\0"):
                        os.pwrite(file.fileno(), page, at)
                file.truncate(len(data))


def build_shim(folder: Path) -> Path:
    """Compile what is preloaded."""
    shim = folder / "power_cut.so"
    source = ROOT / "tests" / "support" / "power_cut.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", shim, source, "-lpthread"], check=True)
    return shim


class _File:
    """A file on storage and as processes see it."""

    def __init__(self, data: bytes = b"") -> None:
        self.forced = bytes(data)
        self.data = bytearray(data)
        # What each sector and the length have been since the file was forced, and from when on.
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

    def _touch(self, now: int, begin: int, end: int) -> None:
        for at in range(begin - begin % SECTOR_LENGTH, end, SECTOR_LENGTH):
            found = bytes(self.data[at : at + SECTOR_LENGTH]).ljust(SECTOR_LENGTH, b"\0")
            self._sectors.setdefault(at, []).append((now, found))

    def mixture(self, draw: random.Random, share: float, unit: int, now: int) -> bytes:
        """Return what storage may hold; `share` of what has changed since it was forced.

        What is there of each `unit` of bytes is of one moment: the last, or one before it.
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
    """Return the version of a moment."""
    found = forced
    for since, version in versions:
        if since <= moment:
            found = version
    return found


_Entry = _File | None  # None: a directory


@dataclass
class _Folder:
    """The names of a directory: as forced, and the changes to them since."""

    names: dict[str, _Entry] = field(default_factory=dict)
    changes: list[tuple[int, str, _Entry, bool]] = field(default_factory=list)

    def current(self) -> dict[str, _Entry]:
        return self.after(len(self.changes))

    def after(self, count: int) -> dict[str, _Entry]:
        names = dict(self.names)
        for _, name, entry, is_there in self.changes[:count]:
            if is_there:
                names[name] = entry
            else:
                names.pop(name, None)
        return names


class _Disk:
    """Files and directories below a root, as changes make them."""

    def __init__(self, root: Path) -> None:
        self.folders: dict[str, _Folder] = {"": _Folder()}
        self._inodes: dict[int, _File] = {}
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            entry = None
            if path.is_dir():
                self.folders[name] = _Folder()
            else:
                entry = _File(path.read_bytes())
                self._inodes[path.stat().st_ino] = entry
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
        elif kind is not Kind.NOTE:
            self._rename(number, kind, change.inode, os.fsdecode(first), second)

    def _rename(self, number: int, kind: Kind, inode: int, first: str, second: str) -> None:
        if kind is Kind.CREATE:
            self._inodes[inode] = _File()
            self._put(number, first, self._inodes[inode])
        elif kind is Kind.MKDIR:
            self.folders[first] = _Folder()
            self._put(number, first, None)
        elif kind in (Kind.UNLINK, Kind.RMDIR):
            self._take(number, first)
        elif kind is Kind.SYNC_NAMES:
            self._force_names(first)
        else:
            folder, _, name = first.rpartition("/")
            entry = self.folders[folder].current()[name]
            assert entry is not None, f"a directory was renamed: {first}"
            self._put(number, second, entry)
            if kind is Kind.RENAME:
                self._take(number, first)

    def _put(self, number: int, path: str, entry: _Entry) -> None:
        folder, _, name = path.rpartition("/")
        self.folders[folder].changes.append((number, name, entry, True))

    def _take(self, number: int, path: str) -> None:
        folder, _, name = path.rpartition("/")
        self.folders[folder].changes.append((number, name, None, False))

    def _force_names(self, path: str) -> None:
        folder = self.folders[path]
        folder.names = folder.current()
        forced = {number for number, *_ in folder.changes}
        folder.changes.clear()
        for other in self.folders.values():
            # A rename between two directories is whole.
            count = max((i + 1 for i, c in enumerate(other.changes) if c[0] in forced), default=0)
            other.names = other.after(count)
            del other.changes[:count]

    def names(self, draw: Callable[[_Folder], int]) -> dict[str, dict[str, _Entry]]:
        """Return the names in each directory; `draw` says how many of its changes are there."""
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


def _tree(
    names: Mapping[str, Mapping[str, _Entry]], content: Callable[[str, _File], bytes]
) -> tuple[dict[str, bytes], frozenset[str]]:
    files: dict[str, bytes] = {}
    folders: set[str] = set()
    read: dict[int, bytes] = {}

    def walk(folder: str) -> None:
        for name, entry in names[folder].items():
            path = f"{folder}/{name}" if folder else name
            if entry is None:
                folders.add(path)
                walk(path)
            else:
                # A file of two names is one.
                if id(entry) not in read:
                    read[id(entry)] = content(path, entry)
                files[path] = read[id(entry)]

    walk("")
    return files, frozenset(folders)


@dataclass(frozen=True)
class Run:
    """What a process did to the files below a root.

    Attributes:
        root: the folder.
        changes: all of them, in their order.
        before: what was there.
        code: its exit code.
    """

    root: Path
    changes: Sequence[Change]
    before: _Disk
    code: int

    def power_cuts(
        self, seed: int, mixtures: int = 2, step: int = 1, segment_unit: int = SECTOR_LENGTH
    ) -> Iterator[Cut]:
        """Give what power cuts may leave, each once while nothing changes.

        At each place there is all that was forced to storage and no more ("nothing more"), all that
        was changed ("everything"), either only for names or only for what is in files, and
        `mixtures` drawn from the seed. Of segment files, `segment_unit` bytes are written at once.
        """
        disk = copy.deepcopy(self.before)
        counters: tuple[int, ...] = ()
        notes: list[str] = []
        seen: dict[str, object] = {}
        for place in range(len(self.changes) + 1):
            if place < len(self.changes):
                counters = self.changes[place].counters
            if place % step == 0 or place == len(self.changes):
                for kind, (files, folders) in _leftovers(
                    disk, place, f"{seed}/{place}", mixtures, segment_unit
                ):
                    state = (files, folders)
                    if seen.get(kind) == (state, counters, len(notes)):
                        continue
                    seen[kind] = (state, counters, len(notes))
                    yield Cut(place, kind, files, folders, counters, tuple(notes))
            if place < len(self.changes):
                change = self.changes[place]
                disk.apply(place, change)
                if change.kind is Kind.NOTE:
                    notes.append(change.first.decode())

    def without(self, is_left_out: Callable[[str], object]) -> Run:
        """Return the same, had files and directories of these paths never been forced to storage.

        A path ends with / for a directory.
        """
        paths: dict[int, str] = {}
        kept = []
        for change in self.changes:
            first = os.fsdecode(change.first) if change.kind is not Kind.WRITE else ""
            if change.kind is Kind.CREATE:
                paths[change.inode] = first
            elif change.kind is Kind.RENAME:
                renamed = next(inode for inode, path in paths.items() if path == first)
                paths[renamed] = os.fsdecode(change.second)
            path = first + "/" if change.kind is Kind.SYNC_NAMES else paths.get(change.inode, "")
            if change.kind not in (Kind.SYNC, Kind.SYNC_NAMES) or not is_left_out(path):
                kept.append(change)
        return replace(self, changes=kept)

    def check_complete(self) -> None:
        """Check that nothing has escaped: all changes together make what is there now."""
        disk = copy.deepcopy(self.before)
        for number, change in enumerate(self.changes):
            disk.apply(number, change)
        files, folders = _tree(disk.names(lambda f: len(f.changes)), lambda _, f: bytes(f.data))
        there = sorted(self.root.rglob("*"))
        assert folders == {str(p.relative_to(self.root)) for p in there if p.is_dir()}
        actual = {str(p.relative_to(self.root)): p.read_bytes() for p in there if p.is_file()}
        assert sorted(files) == sorted(actual)
        for name, data in actual.items():
            assert files[name] == data, f"not all changes of {name} are known"


def _draw_count(draw: random.Random, folder: _Folder) -> int:
    return draw.randint(0, len(folder.changes))


def _leftovers(
    disk: _Disk, place: int, seed: str, mixtures: int, segment_unit: int
) -> Iterator[tuple[str, tuple[dict[str, bytes], frozenset[str]]]]:
    no_names = disk.names(lambda folder: 0)
    all_names = disk.names(lambda folder: len(folder.changes))

    def forced(_: str, file: _File) -> bytes:
        return file.forced

    def latest(_: str, file: _File) -> bytes:
        return bytes(file.data)

    yield "nothing more", _tree(no_names, forced)
    yield "everything", _tree(all_names, latest)
    yield "names only", _tree(all_names, forced)
    yield "content only", _tree(no_names, latest)
    for number in range(mixtures):
        draw = random.Random(f"{seed}/{number}")
        share = draw.choice((0.1, 0.5, 0.9))
        unit = draw.choice((SECTOR_LENGTH, PAGE_LENGTH))
        mixed = disk.names(partial(_draw_count, draw))

        def content(
            path: str,
            file: _File,
            draw: random.Random = draw,
            share: float = share,
            unit: int = unit,
        ) -> bytes:
            is_segment = path.endswith(".rec")
            return file.mixture(draw, share, max(unit, segment_unit if is_segment else 0), place)

        yield f"mixture {number} of seed {seed}", _tree(mixed, content)


def recorded(
    shim: Path,
    root: Path,
    log: Path,
    command: Sequence[str],
    timeout_s: float,
    *,
    may_find: bool = False,
) -> Run:
    """Run a command and take note of what it does to the files below `root`.

    Args:
        may_find: it may end with the exit code by which commands say that they have found damage.

    Raises:
        AssertionError: it fails.
    """
    root = root.resolve()
    before = _Disk(root)
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
            "LD_PRELOAD": str(shim),
            "POWER_CUT_ROOT": str(root),
            "POWER_CUT_LOG": str(log),
        },
    )
    allowed = (0, 3) if may_find else (0,)
    assert done.returncode in allowed, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    changes = _read_log(log.read_bytes())
    return Run(root, changes, before, done.returncode)


def power_cuts(
    directory: Path, scratch: Path, arguments: Sequence[str], *, step: int = 1
) -> Iterator[tuple[Path, int | None]]:
    """Run a command of `aerotape tool` on a copy of a directory, with power cuts all the time.

    With a `step`, only at every so many places. Yields what they leave, each as a copy, with None;
    in the end what the command has left, with its exit code.
    """
    root = scratch / "run"
    root.mkdir()
    shutil.copytree(directory, root / directory.name)
    log = scratch / "log"
    command = [sys.executable, "-m", "aerotape", "tool", str(root / directory.name), *arguments]
    run = recorded(build_shim(scratch), root, log, command, 60, may_find=True)
    run.check_complete()
    left = scratch / "left"
    for cut in run.power_cuts(1, 1, step):
        cut.write(left)
        try:
            yield left / directory.name, None
        except BaseException as error:
            error.add_note(str(cut))
            raise
        finally:
            shutil.rmtree(left)
    yield root / directory.name, run.code


def _read_log(data: bytes) -> list[Change]:
    changes = []
    offset = 0
    while offset < len(data):
        kind, first, second, counters, inode, place = _HEADER.unpack_from(data, offset)
        offset += _HEADER.size
        values = struct.unpack_from(f"<{counters}q", data, offset)
        offset += 8 * counters
        changes.append(
            Change(
                Kind(kind),
                inode,
                place,
                data[offset : offset + first],
                data[offset + first : offset + first + second],
                values,
            )
        )
        offset += first + second
    return changes
