"""Named pipes in place of files: no command waits for a writer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.damage.assertions import check_untouched
from support.damage.damaged_directory import BuiltDirectory, content, copy_directory
from support.damage.damages import MARK_FILE, Hit
from support.damage.tool_commands import COMMANDS, Done, in_child, run

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import CATALOG_FILE_NAME
from aerotape.catalog.recovery.refresh import refresh

_TERM = 65_536
_HIT = Hit("pipes", frozenset({0, 2, 4, 6}))
# Within a recording, at the end of one without a stop position, after an end, of an invalid
# recording, without a recording, and other files with names of recordings.
_BESIDE_THE_CATALOG = (
    f"0-{2 * _TERM}.rec",
    f"2-{2 * _TERM}.rec",
    f"4-{9 * _TERM}.rec",
    "6-0.rec",
    "77-0.rec",
    "aerotape-0.time-index",
    "aerotape-0.suspect",
)
_PLACES = {
    "segments": _BESIDE_THE_CATALOG,
    "catalog": (CATALOG_FILE_NAME,),
    "mark file": (MARK_FILE,),
}


def put_pipes(directory: Path, pipe_paths: tuple[str, ...]) -> None:
    for name in pipe_paths:
        (directory / name).unlink(missing_ok=True)
        os.mkfifo(directory / name)


@pytest.fixture(params=_PLACES)
def pipe_paths(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The paths of the pipes."""
    return _PLACES[request.param]


@pytest.fixture
def source(built: BuiltDirectory, tmp_path: Path, pipe_paths: tuple[str, ...]) -> Path:
    """The directory with the pipes."""
    directory = copy_directory(built.path, tmp_path / "archive")
    put_pipes(directory, pipe_paths)
    return directory


def test_no_command_blocks_on_a_pipe(
    built: BuiltDirectory, source: Path, pipe_paths: tuple[str, ...], aside: Path, tmp_path: Path
) -> None:
    """Each ends, and reading commands have changed nothing."""
    before = content(source)
    # One process for commands that read; each command that writes has its own copy.
    reads = {name: each for name, each in COMMANDS.items() if not each.writes}
    writes = {name: each for name, each in COMMANDS.items() if each.writes}
    begun = tmp_path / "begun"

    def run_all() -> dict[str, Done]:
        results = {}
        for name, command in {**reads, **writes}.items():
            begun.write_text(name)
            directory = source if name in reads else copy_directory(source, tmp_path / name)
            results[name] = run(*command.arguments(directory, aside))
        return results

    try:
        results = in_child(run_all, timeout_s=120)
    except AssertionError as error:
        error.add_note(f"in {begun.read_text()}")
        raise
    for name, done in results.items():
        assert done.code in (0, 1, 3), (name, done)
    assert content(source) == before
    if pipe_paths == _BESIDE_THE_CATALOG:
        check_untouched(built, source, _HIT)
        for name in set(writes) - {"mark-invalid", "retain"}:
            check_untouched(built, tmp_path / name, _HIT)


def test_no_start_blocks_on_a_pipe(built: BuiltDirectory, tmp_path: Path) -> None:
    """It completes; for those of catalog and mark file see `test_foreign_input`."""
    directory = copy_directory(built.path, tmp_path / "archive")
    put_pipes(directory, _BESIDE_THE_CATALOG)

    def start() -> dict[str, Done]:
        with Catalog.open(directory) as catalog:
            refresh(catalog, directory, checksum="crc-32c", now_ms=9)
        return {}

    assert in_child(start, timeout_s=60) == {}
