"""Directories with files that the process may not read or write."""

from __future__ import annotations

import fnmatch
import json
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.daemon.served import check_served, connect, launch, try_start
from support.damage.assertions import check_untouched
from support.damage.damaged_directory import (
    HIDDEN,
    BuiltDirectory,
    content,
    copy_directory,
    recording_of,
    surviving,
)
from support.damage.damages import MARK_FILE, Hit
from support.damage.permissions import without_privileges
from support.damage.tool_commands import COMMANDS, Done, check_tidy, run

from aerotape.catalog.layout import CATALOG_FILE_NAME
from aerotape.catalog.recovery.suspect_marks import SuspectNote, add_notes

_UNTOUCHED = Hit("nothing", frozenset())
_TERM = 65_536
_READS_ALL = ("dump-json", "verify-dry", "stats", "repair-dry", "checksum-dry")


@dataclass(frozen=True)
class Way:
    """A combination of missing permissions.

    Attributes:
        modes: file modes by name or pattern.
        starts: whether an archive can still start.
        lacking: recordings with a file that cannot be read.
    """

    modes: Mapping[str, int]
    starts: bool = False
    lacking: frozenset[int] = frozenset()


WAYS: Mapping[str, Way] = {
    "folder-above": Way({"..": 0}),
    "directory": Way({".": 0}),
    "directory-to-list": Way({".": 0o300}),
    "directory-to-enter": Way({".": 0o600}),
    "directory-to-write": Way({".": 0o500}, starts=True),
    "everything-to-write": Way({"*": 0o400, ".": 0o500}),
    "all-but-the-catalog-to-write": Way({"*": 0o400, ".": 0o500, CATALOG_FILE_NAME: 0o600}),
    "all-files": Way({"*": 0}),
    "catalog": Way({CATALOG_FILE_NAME: 0}),
    "catalog-to-write": Way({CATALOG_FILE_NAME: 0o400}),
    "mark-file": Way({MARK_FILE: 0}),
    "mark-file-to-write": Way({MARK_FILE: 0o400}),
    "all-segments": Way({"*.rec": 0}, starts=True, lacking=frozenset(range(HIDDEN + 1))),
    "all-segments-to-write": Way({"*.rec": 0o400}, starts=True),
    "segment": Way({f"0-{2 * _TERM}.rec": 0}, starts=True, lacking=frozenset({0})),
    "last-segment": Way({f"2-{2 * _TERM}.rec": 0}, starts=True, lacking=frozenset({2})),
    "time-index": Way({"aerotape-0.time-index": 0}, starts=True),
    "time-index-to-write": Way({"aerotape-0.time-index": 0o400}, starts=True),
    "mark-as-suspect": Way({"aerotape-4.suspect": 0}, starts=True),
}


@pytest.fixture(scope="module")
def source(built: BuiltDirectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory, with a recording that is marked as suspect."""
    directory = copy_directory(built.path, tmp_path_factory.mktemp("permission") / "archive")
    add_notes(directory, 4, [SuspectNote("checksum mismatch", "somewhere", 0, 1)])
    return directory


@pytest.fixture
def directory(source: Path, tmp_path: Path) -> Path:
    """A copy, in a parent directory without other files."""
    (tmp_path / "above").mkdir()
    return copy_directory(source, tmp_path / "above" / "archive")


@contextmanager
def forbidden(directory: Path, modes: Mapping[str, int]) -> Iterator[None]:
    """Set these modes and drop the privileges of root; afterwards restore all permissions."""
    for pattern, mode in modes.items():
        folders = {".": directory, "..": directory.parent}
        found = [folders[pattern]] if pattern in folders else list(directory.glob(pattern))
        assert found, pattern
        for path in found:
            path.chmod(mode)
    try:
        with without_privileges():
            yield
    finally:
        for path in (directory.parent, directory):
            path.chmod(0o755)
        for path in directory.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


def unreadable(directory: Path, modes: Mapping[str, int]) -> set[str]:
    """Return the files that may not be read according to their own modes."""
    names = [path.name for path in directory.iterdir()]
    return {
        name
        for pattern, mode in modes.items()
        for name in fnmatch.filter(names, pattern)
        if not mode & stat.S_IRUSR
    }


@pytest.mark.parametrize("way", WAYS)
def test_a_start_without_permission(
    built: BuiltDirectory, directory: Path, tmp_path: Path, driver_dir: Path, way: str
) -> None:
    """Readable recordings are served, or the start is refused with one line; later all are
    served."""
    modes, starts, lacking = WAYS[way].modes, WAYS[way].starts, WAYS[way].lacking
    before, frames = content(directory), surviving(built, directory)
    as_it_seems = copy_directory(directory, tmp_path / "seen")
    for name in unreadable(directory, modes):
        (as_it_seems / name).unlink()
    with forbidden(directory, modes):
        if starts:
            with launch(directory, driver_dir), connect(driver_dir) as client:
                check_served(client, built, as_it_seems, Hit(way, lacking))
        else:
            assert "Permission denied" in try_start(directory, driver_dir)
    after = content(directory)
    if not starts:
        assert {name for name in before if after.get(name) != before[name]} <= {MARK_FILE}
    for name in unreadable(directory, modes) - {MARK_FILE}:
        assert after[name] == before[name]
    assert surviving(built, directory) == frames
    with launch(directory, driver_dir), connect(driver_dir) as client:
        check_served(client, built, built.path, _UNTOUCHED)


@pytest.mark.parametrize("way", WAYS)
def test_commands_without_permission(
    built: BuiltDirectory, source: Path, directory: Path, aside: Path, way: str
) -> None:
    """Each reports it, and no data that could not be read is lost, hidden or overwritten."""
    modes, lacking = WAYS[way].modes, WAYS[way].lacking
    before, frames = content(source), surviving(built, source)
    only_writing = all(mode & stat.S_IRUSR for mode in modes.values()) and "*" not in modes
    for name, command in COMMANDS.items():
        if only_writing and not command.writes:
            continue
        with forbidden(directory, modes):
            done = run(*command.arguments(directory, aside))
        check_tidy(name, done)
        if lacking and name in _READS_ALL:
            assert done.code == 3, (name, done)
        after = content(directory)
        if after == before:
            continue
        assert command.writes, (name, done)
        for each in unreadable(source, modes):
            assert after[each] == before[each], (name, done)
        lost = {recording_of(key) for key in frames - surviving(built, directory)}
        assert lost <= reported_removals(name, done), (name, done)
        if name.startswith("verify"):
            # The command that hides a recording that cannot be read restores it when it can be
            # read.
            run("tool", directory, "verify", "-a", "--yes")
        if name not in ("retain", "mark-invalid"):
            check_untouched(built, directory, _UNTOUCHED)
        shutil.rmtree(directory)
        copy_directory(source, directory)


def reported_removals(name: str, done: Done) -> set[int]:
    """Return the recordings that a command reports as removed, in whole or in part."""
    if name == "compact" and done.code != 1:
        return set(json.loads(done.out)["recordings_removed"]) & {HIDDEN}
    if name == "retain" and done.code != 1:
        return {each["recording_id"] for each in json.loads(done.out)["removals"]}
    return set()
