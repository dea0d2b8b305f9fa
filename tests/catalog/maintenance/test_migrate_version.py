"""`aerotape tool DIR migrate`: the same bytes as after Aeron's ArchiveTool."""

from __future__ import annotations

import io
import shutil
import struct
import time
from pathlib import Path

import pytest
from support.builders.offline_directory import content
from support.builders.old_directory import build_old, version
from support.daemon.command_line import tool
from support.damage.overwriting import overwrite
from support.jvm.java import archive_tool

from aerotape.catalog.file.catalog import Catalog


@pytest.mark.jvm
@pytest.mark.parametrize(
    "of_version",
    [
        version(0, 0, 1),
        version(0, 1),
        version(1),
        version(1, 2, 3),
        version(2),
        version(2, 1),
        version(3, 1),
    ],
    ids=hex,
)
def test_files_equal_those_of_archive_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_version: int
) -> None:
    """On two copies of one directory; all recordings are found by both, and valid ones are
    whole."""
    directory = build_old(tmp_path / "archive", of_version)
    theirs = shutil.copytree(directory, tmp_path / "theirs")
    before = content(directory)
    tool(directory, "migrate", "--dry-run")
    assert content(directory) == before
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    tool(directory, "migrate")
    done = archive_tool(theirs, "migrate", answers="y\n")
    assert "Exception" not in done.stdout, done.stdout
    assert content(directory) == content(theirs)
    assert (content(directory) == before) == (of_version >= version(3))
    for recording_id in (0, 2):
        tool(directory, "verify", recording_id, "-a")
    tool(directory, "describe-all")
    assert archive_tool(directory, "count-entries").stdout == "3\n"
    with Catalog.open(directory, read_only=True) as catalog:
        assert list(catalog.all_recording_ids()) == [0, 1, 2, 3, 4]
        assert catalog.next_recording_id == 5


def test_steps_are_printed(tmp_path: Path) -> None:
    """The output has the previous versions, and the old and new names of files."""
    directory = build_old(tmp_path / "archive", version(1, 2, 3))
    printed = tool(directory, "migrate", "--yes", "--json").json
    assert (printed["mark_file_version"], printed["catalog_version"]) == ("1.2.3", "1.2.3")
    second, third = printed["steps"]
    assert (second["version"], third["version"]) == ("2.0.0", "3.0.0")
    assert second["segment_files_renamed"] == [
        ["2-0.rec", "2-65536.rec"],
        ["2-131072.rec", "2-196608.rec"],
        ["2-262144.rec", "2-327680.rec"],
    ]
    assert third["segment_files_renamed"] == []
    assert "nothing to do" in tool(directory, "migrate", "--yes").out


def _junk_name(directory: Path) -> None:
    (directory / "0-junk.rec").write_bytes(b"junk")


def _in_the_way(directory: Path) -> None:
    (directory / "2-65536.rec").write_bytes(b"another")


def _begun_before(directory: Path) -> None:
    (directory / f"migration-{version(1)}-to-{version(2)}.dat").touch()


def _no_mark_file(directory: Path) -> None:
    (directory / "archive-mark.dat").unlink()


def _damaged_entry(directory: Path) -> None:
    overwrite(directory / "archive.catalog", 1024 + 32 + 80, b"\xff\xff\xff\x7f")


def _hidden_entries(directory: Path) -> None:
    overwrite(directory / "archive.catalog", 2048, bytes(4))


def _in_use(directory: Path) -> None:
    overwrite(directory / "archive-mark.dat", 8, struct.pack("<q", time.time_ns() // 1_000_000))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_junk_name, "no name of a segment file"),
        (_in_the_way, "would become 2-65536.rec"),
        (_begun_before, "was interrupted"),
        (_no_mark_file, "mark file"),
        (_damaged_entry, "offset 1024"),
        (_hidden_entries, "offset 2048"),
        (_in_use, "is in use"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_directory_that_cannot_be_migrated_is_not_changed(
    tmp_path: Path, spoil: object, message: str
) -> None:
    """A migration that cannot be completed is not started."""
    directory = build_old(tmp_path / "archive", version(1))
    assert callable(spoil)
    spoil(directory)
    before = content(directory)
    assert message in tool(directory, "migrate", "--yes", expect=1).err
    assert content(directory) == before
