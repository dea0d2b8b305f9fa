"""Directories that must not, or cannot, be written: commands that read work, others are refused."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from support.damage.assertions import check_untouched
from support.damage.damaged_directory import BuiltDirectory, content, copy_directory, surviving
from support.damage.damages import MARK_FILE, Hit
from support.damage.tool_commands import COMMANDS, Done, run
from support.jvm.java import ROOT

_UNTOUCHED = Hit("nothing", frozenset())
_DISK_BYTES = 8 << 20


def run_all(directory: Path, aside: Path) -> dict[str, Done]:
    """Run all commands, one after the other."""
    return {name: run(*each.arguments(directory, aside)) for name, each in COMMANDS.items()}


def start(directory: Path, aeron_dir: Path) -> subprocess.CompletedProcess[str]:
    """Start an archive that must refuse to start."""
    command = [sys.executable, "-m", "aerotape", "archive", f"--dir={directory}"]
    command += [f"--aeron-dir={aeron_dir}", "-Daeron.archive.control.channel.enabled=false"]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )


def check_refused(done: subprocess.CompletedProcess[str], directory: Path) -> None:
    """Exit code 1 and one line that names a file of the directory."""
    assert done.returncode == 1, done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert str(directory) in done.stderr
    assert done.stdout == ""


# ---- no archive directory ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nothing", "an empty directory", "a file"])
def test_commands_on_a_path_that_is_not_an_archive_directory(
    tmp_path: Path, aside: Path, kind: str
) -> None:
    """Each reports it in a line with the path, and does not change the directory."""
    place = tmp_path / "place"
    if kind == "a file":
        place.write_text("something else")
    elif kind == "an empty directory":
        place.mkdir()
    for name, command in COMMANDS.items():
        done = run(*command.arguments(place, aside))
        assert (done.code, done.out) == (1, ""), (name, done)
        [line] = done.err.splitlines()
        assert str(place) in line, name
        assert "os error" not in line, (name, line)
    assert place.exists() == (kind != "nothing")
    if kind == "a file":
        assert place.read_text() == "something else"
    elif kind == "an empty directory":
        assert not list(place.iterdir())


# ---- a mark file of another version --------------------------------------------------------------


def put_version(directory: Path, version: int) -> None:
    with (directory / MARK_FILE).open("r+b") as file:
        file.seek(8)
        file.write(struct.pack("<i", version))


@pytest.mark.parametrize("version", [2 << 16, (3 << 16) + (1 << 30), 4 << 16, -1])
def test_no_archive_starts_with_a_mark_file_of_another_version(
    built: BuiltDirectory, tmp_path: Path, aeron_dir: Path, version: int
) -> None:
    """It reports it in one line, and nothing has changed."""
    directory = copy_directory(built.path, tmp_path / "archive")
    put_version(directory, version)
    before = content(directory)
    check_refused(start(directory, aeron_dir), directory)
    assert content(directory) == before


def test_commands_with_a_mark_file_of_another_version(
    built: BuiltDirectory, tmp_path: Path, aside: Path
) -> None:
    """Commands that write are refused, because its archive may run; verify only reports."""
    source = copy_directory(built.path, tmp_path / "archive")
    put_version(source, 4 << 16)
    before = content(source)
    frames = surviving(built, source)
    for name, command in COMMANDS.items():
        directory = source
        if command.writes:
            directory = copy_directory(source, tmp_path / name)
        done = run(*command.arguments(directory, aside))
        assert done.code in (0, 1, 3), (name, done)
        if name.startswith("verify") and command.writes:
            assert "nothing is marked" in done.err, (name, done)
        elif command.writes:
            assert done.code == 1, (name, done)
            assert str(directory) in done.err, (name, done)
        assert content(directory) == before, name
    check_untouched(built, source, _UNTOUCHED)
    assert surviving(built, source) == frames
