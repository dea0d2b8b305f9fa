"""Directories that must not, or cannot, be written: commands that read work, others are refused."""

from __future__ import annotations

import struct
from contextlib import nullcontext
from pathlib import Path

import pytest
from support.builders.mark_files import AERON_DIRECTORY, in_use
from support.damage.assertions import check_untouched
from support.damage.damaged_directory import BuiltDirectory, content, copy_directory, surviving
from support.damage.damages import MARK_FILE, Hit
from support.damage.overwriting import overwrite
from support.damage.tool_commands import COMMANDS, Done, run

_UNTOUCHED = Hit("nothing", frozenset())
_DISK_BYTES = 8 << 20


def run_all(directory: Path, aside: Path) -> dict[str, Done]:
    """Run all commands, one after the other."""
    return {name: run(*each.arguments(directory, aside)) for name, each in COMMANDS.items()}


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


# ---- a directory that an archive uses, or may use ------------------------------------------------


@pytest.mark.parametrize("use", ["is in use", "has a mark file of another version"])
def test_commands_on_a_directory_that_may_be_in_use(
    built: BuiltDirectory, tmp_path: Path, aside: Path, use: str
) -> None:
    """Commands that write are refused; verify only reports, and the others work."""
    is_in_use = use == "is in use"
    source = copy_directory(built.path, tmp_path / "archive")
    if not is_in_use:
        overwrite(source / MARK_FILE, 8, struct.pack("<i", 4 << 16))
    frames = surviving(built, source)
    for name, command in COMMANDS.items():
        directory = source
        if command.writes:
            directory = copy_directory(source, tmp_path / name)
        with in_use(directory) if is_in_use else nullcontext():
            before = content(directory)
            done = run(*command.arguments(directory, aside))
            assert content(directory) == before, name
        assert done.code in (0, 1, 3), (name, done)
        if name.startswith("verify") and command.writes:
            assert "nothing is marked" in done.err, (name, done)
        elif command.writes:
            assert done.code == 1, (name, done)
            # `retain` leaves it to the archive, which does not run.
            is_sent = is_in_use and name == "retain"
            assert (AERON_DIRECTORY if is_sent else str(directory)) in done.err, (name, done)
    check_untouched(built, source, _UNTOUCHED)
    assert surviving(built, source) == frames
