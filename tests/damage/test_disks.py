"""Directories on a full or a read-only disk, with and without damage."""

from __future__ import annotations

import itertools
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.builders.mark_files import leave
from support.daemon.served import check_served, connect, launch, try_start
from support.damage.assertions import check_untouched
from support.damage.damaged_directory import (
    LIVE,
    BuiltDirectory,
    content,
    copy_directory,
    surviving,
)
from support.damage.damages import CATALOG, DAMAGES, SEGMENT_DAMAGES, Hit
from support.damage.small_disk import SmallDisk, small_disk
from support.damage.tool_commands import COMMANDS, check_tidy, run

_UNTOUCHED = Hit("nothing", frozenset())
_DISK_BYTES = 16 << 20
# Those that require most repairs at a start.
_KINDS = (
    "cut-short",
    "flipped-headers",
    "zeroed-pages",
    "garbage-pages",
    "garbage-behind",
    "missing",
    "duplicated",
    "renamed",
    "no-file",
    "torn-entry",
    "catalog-cut-short",
    "catalog-gone",
)
# Their results exist already in an undamaged directory, or they need an old version.
_NOTHING_TO_DO = {"verify-checksum", "migrate"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A disk of some megabytes; the test is skipped where none can be mounted."""
    with small_disk(tmp_path / "disk", _DISK_BYTES) as mounted:
        yield mounted


def damaged_copy(built: BuiltDirectory, path: Path, kind: str, numbers: frozenset[int]) -> Hit:
    """Create a copy at `path`, with the first damage of that kind to any of these recordings."""
    for seed in itertools.count(1):
        copy_directory(built.path, path)
        hit = _UNTOUCHED
        if kind != "none":
            hit = DAMAGES[kind](built, path, random.Random(f"{kind} {seed}"))
        if not hit.recordings or hit.recordings & numbers:
            return hit
        shutil.rmtree(path)
    raise AssertionError(kind)


# ---- a read-only file system ---------------------------------------------------------------------


def remount(disk: SmallDisk, options: str) -> None:
    done = subprocess.run(
        ["mount", "-o", f"remount,{options}", str(disk.path)], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"cannot remount a disk: {done.stderr.strip()}")


@pytest.mark.parametrize(
    "kind",
    [
        *("none", "cut-short", "flipped-headers", "zeroed-pages", "missing", "no-file"),
        *("torn-entry", "garbage-length", "garbage-catalog-header", "catalog-gone"),
        "garbage-beside",
    ],
)
def test_a_read_only_file_system(
    built: BuiltDirectory, disk: SmallDisk, aside: Path, driver_dir: Path, kind: str
) -> None:
    """Reading commands work; writing commands and an archive are refused with one line."""
    directory = disk.path / "archive"
    hit = damaged_copy(built, directory, kind, frozenset(built.originals))
    before = content(directory)
    remount(disk, "ro")
    try:
        assert "Read-only file system" in try_start(directory, driver_dir)
        results = {name: run(*each.arguments(directory, aside)) for name, each in COMMANDS.items()}
        check_untouched(built, directory, hit)
    finally:
        remount(disk, "rw")
    assert content(directory) == before
    for name, done in results.items():
        check_tidy(name, done)
    if kind == "none":
        refused = {name for name, done in results.items() if done.code != 0}
        assert refused == {name for name, each in COMMANDS.items() if each.writes} - _NOTHING_TO_DO


# ---- a full disk ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["none", "zeroed-pages", "garbage-pages", "missing", "cut-short"])
def test_commands_on_a_full_disk(
    built: BuiltDirectory, disk: SmallDisk, aside: Path, kind: str
) -> None:
    """Data that cannot be copied to quarantine is not changed either."""
    source = copy_directory(built.path, disk.path / "archive")
    hit = _UNTOUCHED
    if kind != "none":
        hit = SEGMENT_DAMAGES[kind](built, source, random.Random(kind))
    frames = surviving(built, source)
    whole = copy_directory(source, aside / "damaged")
    for name, command in COMMANDS.items():
        if not command.writes or name == "retain":
            continue
        disk.fill()
        done = run(*command.arguments(source, aside))
        disk.clear()
        assert done.code in (0, 1, 3), (name, done)
        left = surviving(built, source)
        if name != "compact":
            assert frames == left, (name, done)
        if name != "mark-invalid":
            check_untouched(built, source, hit)
        shutil.rmtree(source)
        copy_directory(whole, source)


@pytest.mark.parametrize("kind", ["none", *_KINDS])
def test_a_start_on_a_full_disk(
    built: BuiltDirectory, disk: SmallDisk, tmp_path: Path, driver_dir: Path, kind: str
) -> None:
    """It needs mark file and catalog. With these it serves, and so does a start with free space."""
    directory = disk.path / "archive"
    hit = damaged_copy(built, directory, kind, LIVE)
    if kind == "catalog-gone":
        (directory / CATALOG).unlink(missing_ok=True)
    frames = surviving(built, directory)
    source = copy_directory(directory, tmp_path / "damaged")
    before = content(directory)
    disk.fill()
    assert "No space left on device" in try_start(directory, driver_dir)
    assert content(directory) == before
    disk.clear()
    leave(directory)
    disk.fill()
    if kind in ("catalog-gone", "catalog-cut-short"):
        assert "for catalog" in try_start(directory, driver_dir)
    else:
        with launch(directory, driver_dir), connect(driver_dir) as client:
            check_served(client, built, source, hit)
    disk.clear()
    assert not frames - surviving(built, directory)
    with launch(directory, driver_dir), connect(driver_dir) as client:
        check_served(client, built, source, hit)
    assert not frames - surviving(built, directory)
    check_untouched(built, directory, hit)
