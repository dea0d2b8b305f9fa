"""Every command on every kind of damage: it ends cleanly, and does not lose data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.damage.assertions import check_untouched
from support.damage.damaged_directory import (
    HIDDEN,
    BuiltDirectory,
    content,
    recording_of,
    surviving,
)
from support.damage.damages import Damaged
from support.damage.tool_commands import COMMANDS, POLICY, Done, check_tidy, run


@pytest.fixture(scope="session")
def aside(built: BuiltDirectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for files that commands need besides the archive directory."""
    folder = tmp_path_factory.mktemp("aside")
    (folder / "policy.toml").write_text(POLICY)
    (folder / "original").symlink_to(built.path)
    assert run("tool", built.path, "export", "5", folder / "recording").code == 0
    return folder


def check_nothing_lost(
    built: BuiltDirectory, damaged: Damaged, directory: Path, done: Done
) -> None:
    """Each frame still exists, except those of recordings reported as deleted."""
    lost = damaged.surviving - surviving(built, directory)
    affected = {recording_of(key) for key in lost}
    if '"recordings_removed"' in done.out:
        affected.difference_update(set(json.loads(done.out)["recordings_removed"]) & {HIDDEN})
    assert not affected, f"frames of {affected} are lost"


def check_retained(built: BuiltDirectory, damaged: Damaged, directory: Path, done: Done) -> None:
    """Deletions are reported, and no data of a damaged recording is deleted without reading it."""
    lost = {recording_of(key) for key in damaged.surviving - surviving(built, directory)}
    if done.code == 1:
        assert not lost
        return
    assert lost == {each["recording_id"] for each in json.loads(done.out)["removals"]}
    assert not lost & damaged.hit.visible


def test_reading_commands_change_nothing(damaged: Damaged, aside: Path, tmp_path: Path) -> None:
    """Not a byte of any file, for each command."""
    before = content(damaged.path)
    for link in aside.iterdir():
        (tmp_path / link.name).symlink_to(link)
    for name, command in COMMANDS.items():
        if not command.writes:
            done = run(*command.arguments(damaged.path, tmp_path))
            check_tidy(name, done)
    assert content(damaged.path) == before


@pytest.mark.parametrize("name", [name for name, each in COMMANDS.items() if each.writes])
def test_writing_commands_lose_no_data(
    built: BuiltDirectory, damaged: Damaged, directory: Path, name: str, aside: Path
) -> None:
    """All valid frames still exist, and undamaged recordings are served whole."""
    done = run(*COMMANDS[name].arguments(directory, aside))
    check_tidy(name, done)
    if name == "retain":
        check_retained(built, damaged, directory, done)
    else:
        check_nothing_lost(built, damaged, directory, done)
    if name not in ("retain", "mark-invalid"):
        check_untouched(built, directory, damaged.hit)
