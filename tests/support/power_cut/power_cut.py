"""Power cuts: the possible states of files after one, at every change that a process makes.

`recorded` records all changes of a process below a directory and what it forces to storage
(`power_cut.c`, preloaded). `power_cuts` replays them and yields, for each place between two
changes, the directories that storage may contain if the power fails there. `disk` has the
guarantees of storage.
"""

from __future__ import annotations

import copy
import os
import random
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from aerotape.catalog.segment_files import SEGMENT_SUFFIX
from aerotape.errors import AerotapeError
from support.jvm.java import ROOT
from support.power_cut.disk import SECTOR_LENGTH, Change, Disk, Entry, File, Folder, Kind, tree

PAGE_LENGTH = 4096
EVERYTHING = "everything"
"""The kind of cut after which all changes are durable."""
_FEW = 4
_HEADER = struct.Struct("<IIIIQq")


@dataclass(frozen=True)
class Cut:
    """A possible state after a power cut.

    Attributes:
        place: the number of changes made before.
        kind: how much of the data that was not forced to storage is durable.
        files: content by path.
        folders: paths of directories.
        counters: minimum values of the watched counters before the power cut.
        notes: the notes of the process before the power cut.
    """

    place: int
    kind: str
    files: Mapping[str, bytes]
    folders: frozenset[str]
    counters: tuple[int, ...]
    notes: Sequence[str]

    def __str__(self) -> str:
        return f"after {self.place} changes, {self.kind}"

    @property
    def state(self) -> int:
        """A key that is equal for equal files after equal notes."""
        files = frozenset(self.files.items())
        return hash((files, self.folders, self.counters, tuple(self.notes)))

    def write(self, root: Path) -> None:
        """Write it into a directory that is empty or does not exist."""
        root.mkdir(exist_ok=True)
        for folder in sorted(self.folders):
            (root / folder).mkdir()
        for name, data in self.files.items():
            with (root / name).open("wb") as file:
                # Pages that were never written are holes.
                for at in range(0, len(data), PAGE_LENGTH):
                    page = data[at : at + PAGE_LENGTH]
                    if page.strip(b"\0"):
                        os.pwrite(file.fileno(), page, at)
                file.truncate(len(data))


def build_shim(folder: Path) -> Path:
    """Compile the preloaded library."""
    shim = folder / "power_cut.so"
    source = ROOT / "tests" / "support" / "power_cut" / "power_cut.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", shim, source, "-lpthread"], check=True)
    return shim


@dataclass(frozen=True)
class Run:
    """The changes of a process to the files below a root.

    Attributes:
        root: the directory.
        changes: all changes, in their order.
        before: the state before the run.
        code: its exit code.
    """

    root: Path
    changes: Sequence[Change]
    before: Disk
    code: int

    def power_cuts(
        self, seed: int, mixtures: int = 2, step: int = 1, segment_unit: int = SECTOR_LENGTH
    ) -> Iterator[Cut]:
        """Yield the possible states after power cuts, each once while nothing changes, and at the
        end.

        At each place these are: all changes ("everything", which comes first), all forced data and
        no more ("nothing more"), either only for names or only for the content of files, and
        `mixtures` drawn from the seed; where a few sectors of files other than segment files were
        written, also each of them alone, and all except each. In segment files, `segment_unit`
        bytes are written at once.
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
                    is_known = seen.get(kind) == (state, counters, len(notes))
                    if is_known and place < len(self.changes):
                        continue
                    seen[kind] = (state, counters, len(notes))
                    yield Cut(place, kind, files, folders, counters, tuple(notes))
            if place < len(self.changes):
                change = self.changes[place]
                disk.apply(place, change)
                if change.kind is Kind.NOTE:
                    notes.append(change.first.decode())

    def kills(self) -> list[Cut]:
        """Return the states after a SIGKILL between any two changes: all changes are visible."""
        return [cut for cut in self.power_cuts(1, 0) if cut.kind == EVERYTHING]

    def places_of_forcing(self) -> list[str]:
        """Return the places in the program that force data to storage, each once."""
        forced = (Kind.SYNC, Kind.SYNC_NAMES)
        return sorted({_place(change) for change in self.changes if change.kind in forced})

    def without(self, *places: str) -> Run:
        """Return the same run as if these places in the program had forced nothing to storage."""
        changes = [
            replace(change, kind=Kind.NOTHING) if _place(change) in places else change
            for change in self.changes
        ]
        return replace(self, changes=changes)

    def check_complete(self) -> None:
        """Check that no change was missed: all changes together produce the current files.

        Raises:
            AssertionError: they do not; it has the names of the files.
        """
        disk = copy.deepcopy(self.before)
        for number, change in enumerate(self.changes):
            disk.apply(number, change)
        files, folders = tree(disk.names(lambda f: len(f.changes)), lambda _, f: bytes(f.data))
        there = sorted(self.root.rglob("*"))
        assert folders == {str(p.relative_to(self.root)) for p in there if p.is_dir()}
        actual = {str(p.relative_to(self.root)): p.read_bytes() for p in there if p.is_file()}
        unknown = files.keys() ^ actual.keys()
        known = [
            f"{change.kind.name} {change.first.decode()} {change.second.decode()}"
            for change in self.changes
            if not {change.first, change.second}.isdisjoint(map(str.encode, unknown))
        ]
        assert not unknown, f"known is {known}, and now there are {sorted(unknown & actual.keys())}"
        for name, data in actual.items():
            assert files[name] == data, f"not all changes of {name} are known"


def unnoticed(
    run: Run, check: Callable[[list[Cut]], object], together: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """Find places that need not force data to storage, as far as a check can determine.

    Args:
        check: is called with power cuts, the first of them before any change; may fail.
        together: patterns of places that are omitted together where both match the same.

    The places for which the check fails only for power cuts after the end of the run, and those for
    which it never fails, without line numbers.
    """
    before, *others = run.power_cuts(1, 1)
    end = len(run.changes)
    passed = {(cut.state, cut.place == end) for cut in others}
    groups: dict[str, list[str]] = {}
    for place in run.places_of_forcing():
        name = next((each for each in together if re.match(each, place)), place)
        groups.setdefault(name, []).append(place)
    assert groups

    def passes(cuts: list[Cut]) -> bool:
        try:
            check([before, *cuts])
        except (AssertionError, AerotapeError, OSError, ValueError, LookupError):
            return False
        return True

    assert passes([])
    at_the_end: list[str] = []
    never: list[str] = []
    for name, places in groups.items():
        cuts = run.without(*places).power_cuts(1, 1)
        new = [cut for cut in cuts if (cut.state, cut.place == end) not in passed]
        if passes([cut for cut in new if cut.place < end]):
            is_noticed = not passes([cut for cut in new if cut.place == end])
            (at_the_end if is_noticed else never).append(re.sub(r":\d+", "", name))
    return at_the_end, never


def _place(change: Change) -> str:
    """Return the place in the program that forces data to storage; "" for other changes."""
    if change.kind not in (Kind.SYNC, Kind.SYNC_NAMES):
        return ""
    what = "names" if change.kind is Kind.SYNC_NAMES else "bytes"
    return os.fsdecode(change.second) or f"native code, {what}"


def _draw_count(draw: random.Random, folder: Folder) -> int:
    return draw.randint(0, len(folder.changes))


def _sectors_of_few(names: dict[str, dict[str, Entry]]) -> list[tuple[File, int]]:
    """Return the sectors that were not forced, of files that have only a few of these."""
    found: list[tuple[File, int]] = []

    def sectors_of(path: str, file: File) -> bytes:
        sectors = file.sectors_not_forced
        if not path.endswith(SEGMENT_SUFFIX) and 1 < len(sectors) <= _FEW:
            found.extend((file, sector) for sector in sectors)
        return b""

    tree(names, sectors_of)
    return found


def _leftovers(
    disk: Disk, place: int, seed: str, mixtures: int, segment_unit: int
) -> Iterator[tuple[str, tuple[dict[str, bytes], frozenset[str]]]]:
    no_names = disk.names(lambda folder: 0)
    all_names = disk.names(lambda folder: len(folder.changes))

    def forced(_: str, file: File) -> bytes:
        return file.forced

    def latest(_: str, file: File) -> bytes:
        return bytes(file.data)

    yield EVERYTHING, tree(all_names, latest)
    yield "nothing more", tree(no_names, forced)
    yield "names only", tree(all_names, forced)
    yield "content only", tree(no_names, latest)
    for changed, sector in _sectors_of_few(all_names):
        for is_only in (True, False):

            def but_for_one(
                _: str,
                file: File,
                changed: File = changed,
                sector: int = sector,
                is_only: bool = is_only,
            ) -> bytes:
                return file.but_for(sector, is_only) if file is changed else bytes(file.data)

            kind = f"{'only' if is_only else 'all but'} the sector at {sector}"
            yield kind, tree(all_names, but_for_one)
    for number in range(mixtures):
        draw = random.Random(f"{seed}/{number}")
        share = draw.choice((0.1, 0.5, 0.9))
        unit = draw.choice((SECTOR_LENGTH, PAGE_LENGTH))
        mixed = disk.names(partial(_draw_count, draw))

        def content(
            path: str,
            file: File,
            draw: random.Random = draw,
            share: float = share,
            unit: int = unit,
        ) -> bytes:
            is_segment = path.endswith(SEGMENT_SUFFIX)
            return file.mixture(draw, share, max(unit, segment_unit if is_segment else 0), place)

        yield f"mixture {number} of seed {seed}", tree(mixed, content)


def recorded(
    shim: Path,
    root: Path,
    log: Path,
    command: Sequence[str],
    timeout_s: float,
    *,
    may_find: bool = False,
) -> Run:
    """Run a command and record its changes to the files below `root`.

    Args:
        may_find: it may end with the exit code for damage that was found.

    Raises:
        AssertionError: it fails.
    """
    root = root.resolve()
    before = Disk(root)
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


def recorded_command(directory: Path, scratch: Path, arguments: Sequence[str]) -> Run:
    """Run a command with a copy of a directory for `DIR` in its arguments."""
    root = scratch / "run"
    root.mkdir()
    copied = shutil.copytree(directory, root / directory.name)
    command = [sys.executable, "-m", "support.power_cut.places"]
    command += [each.replace("DIR", str(copied)) for each in arguments]
    run = recorded(build_shim(scratch), root, scratch / "log", command, 60, may_find=True)
    run.check_complete()
    return run


def directories_after(run: Run, name: str, scratch: Path, cuts: Iterable[Cut]) -> Iterator[Path]:
    """Yield copies of a named directory after each power cut, and finally after the run.

    An exception during the use of a copy gets a note that describes the power cut.
    """
    left = scratch / "left"
    for cut in cuts:
        cut.write(left)
        try:
            yield left / name
        except BaseException as error:
            error.add_note(str(cut))
            raise
        finally:
            shutil.rmtree(left)
    shutil.copytree(run.root, left)
    yield left / name
    shutil.rmtree(left)


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
