"""Commands of `aerotape tool` that write: the same bytes as after Aeron's ArchiveTool."""

from __future__ import annotations

import io
import json
import shutil
import struct
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.builders.built_archive import add_entry
from support.builders.mark_files import in_use
from support.builders.offline_directory import SEGMENT_LENGTH, build, content
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import aerotape, tool
from support.damage.overwriting import overwrite
from support.jvm.java import archive_tool

from aerotape.catalog import layout
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An archive directory, and files in it that belong to no recording."""
    directory = build(tmp_path / "archive")
    for name in (
        f"0-{3 * SEGMENT_LENGTH}.rec",
        "0-00131072.rec",
        "0-junk.rec",
        "0-.rec",
        f"1-{8 * SEGMENT_LENGTH}.rec",
        "2-0.rec",
        f"3-{9 * SEGMENT_LENGTH}.rec",
        "4-0.rec",
        f"4-{5 * SEGMENT_LENGTH}.rec",
        "77-0.rec",
        "0-1.del",
        "notes.rec.txt",
    ):
        if not (directory / name).exists():
            (directory / name).write_bytes(b"left over")
    return directory


@pytest.mark.jvm
@pytest.mark.parametrize(
    "arguments",
    [
        ["mark-invalid", "0"],
        ["mark-valid", "2"],
        ["mark-valid", "0"],
        ["mark-valid", "1"],
        ["mark-invalid", "99"],
        ["delete-orphaned-segments"],
        ["delete-orphaned-segments", "0"],
        ["delete-orphaned-segments", "2"],
        ["delete-orphaned-segments", "99"],
        ["compact"],
    ],
    ids=" ".join,
)
def test_files_equal_those_of_archive_tool(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """On two copies of one directory, with the same outcome; a preceding dry run changes
    nothing."""
    theirs = shutil.copytree(directory, tmp_path / "theirs")
    before = content(directory)
    succeeded = tool(directory, *arguments, "--dry-run", expect=None).code == 0
    assert content(directory) == before
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert (tool(directory, *arguments, expect=None).code == 0) == succeeded
    done = archive_tool(theirs, *arguments, answers="y\n")
    assert (done.returncode == 0) == succeeded, done.stderr
    assert content(directory) == content(theirs)
    assert (content(directory) != before) == (succeeded and arguments != ["mark-valid", "0"])


@pytest.mark.parametrize("target", ["VALID", "INVALID"])
def test_an_impossible_state_is_repaired_by_mark(directory: Path, target: str) -> None:
    """It is damage to the entry, even if the recording counts as being in that state."""
    with Catalog.open(directory, read_only=True) as catalog:
        place = catalog.entry(0).offset + layout.STATE_OFFSET
    overwrite(directory / "archive.catalog", place, struct.pack("<i", 7))
    before = content(directory)
    command = ["tool", str(directory), f"mark-{target.lower()}", "0"]
    assert aerotape(*command, "--dry-run", "--json").json["changed"] is True
    assert content(directory) == before
    changed = f"recording 0 is {target} now, was 7, which is not a valid state\n"
    assert aerotape(*command).out == changed
    row = tool(directory, "describe", "0", "--json").json
    assert (row["state"], row["damage"]) == (target, "")
    assert aerotape(*command).out == f"recording 0 is {target} already\n"


def test_compaction_names_the_removed_recordings(directory: Path) -> None:
    """Only the first of many, all with -v."""
    with Catalog.open(directory) as catalog:
        for _ in range(25):
            recording_id = add_entry(catalog, SegmentBuilder())
            catalog.change_state(recording_id, RecordingState.DELETED)
    gone = [1, 2, *range(5, 30)]
    compact = ["tool", str(directory), "compact", "--dry-run"]
    first = ", ".join(map(str, gone[:20]))
    assert f": {first} and 7 more, shown with -v or --json\n" in aerotape(*compact).out
    assert f": {', '.join(map(str, gone))}\n" in aerotape(*compact, "-v").out
    with Catalog.open(directory) as catalog:
        for recording_id in gone:
            catalog.change_state(recording_id, RecordingState.VALID)
    assert aerotape(*compact).out.endswith(" and 0 segment files\n")


def test_a_compacted_catalog_can_be_added_to(directory: Path) -> None:
    """The ids of removed recordings are not reused, and all others are found."""
    tool(directory, "compact", "--yes")
    with Catalog.open(directory) as catalog:
        assert (list(catalog.all_recording_ids()), catalog.next_recording_id) == ([0, 3, 4], 5)
        kept = catalog.entry(4)
        assert catalog.compute_checksum(4, "crc-32") != 0
    assert kept.descriptor.original_channel == f"aeron:ipc?alias={'long-' * 4}"
    tool(directory, "mark-valid", "2", expect=1)


@pytest.mark.parametrize(
    "arguments", [["compact"], ["delete-orphaned-segments"]], ids=lambda arguments: arguments[0]
)
@pytest.mark.parametrize("answer", ["", "n\n", "\n"], ids=["end", "no", "empty"])
def test_nothing_is_deleted_without_a_confirmation(
    directory: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], answer: str
) -> None:
    """Nor if standard input has ended."""
    before = content(directory)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert tool(directory, *arguments, expect=None).code
    assert content(directory) == before


@pytest.mark.parametrize(
    "arguments", [["compact"], ["delete-orphaned-segments"]], ids=lambda arguments: arguments[0]
)
def test_an_archive_that_starts_during_the_question_is_detected(
    directory: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """A Java archive takes no lock, so the directory is checked again after the response."""
    before = content(directory)
    with ExitStack() as started:

        class Hesitant:
            def readline(self) -> str:
                started.enter_context(in_use(directory))
                return "y\n"

        monkeypatch.setattr("sys.stdin", Hesitant())
        assert "is in use" in tool(directory, *arguments, expect=1).err
    changed = {name for name, data in content(directory).items() if before.get(name) != data}
    assert changed == {"archive-mark.dat"}


def test_a_damaged_entry_prevents_compaction_and_retains_its_files(directory: Path) -> None:
    """Compaction refuses; orphans of all others are deleted, and the exit code is 3."""
    with Catalog.open(directory, read_only=True) as catalog:
        offset = catalog.entry(0).offset
    overwrite(directory / "archive.catalog", offset + 32 + 80, struct.pack("<i", 1 << 30))
    before = content(directory)
    assert f"entry at offset {offset}" in tool(directory, "compact", "--yes", expect=1).err
    assert content(directory) == before
    captured = tool(directory, "delete-orphaned-segments", "--yes", "--json", expect=3)
    assert "retained the files of recording 0: " in captured.err
    deleted = json.loads(captured.out)["segment_files_deleted"]
    assert "2-0.rec" in deleted
    assert not [name for name in deleted if name.startswith("0-")]
    assert set(content(directory)) == set(before) - set(deleted)


REFUSED = [
    ["mark-valid", "99"],
    ["mark-invalid", "99"],
    ["repair", "99"],
    ["checksum", "crc-32", "99"],
    ["delete-orphaned-segments", "99", "--yes"],
    ["import", "no-such-file"],
]


@pytest.mark.parametrize("catalog", ["empty", "zeros", "without its next id"])
def test_a_refused_command_changes_no_file(directory: Path, catalog: str) -> None:
    """Not even a catalog that has to be repaired first."""
    path = directory / "archive.catalog"
    data = bytearray(path.read_bytes())
    assert data[8:16] == (5).to_bytes(8, "little")
    data[8:16] = bytes(8)
    path.write_bytes({"empty": b"", "zeros": bytes(5_000)}.get(catalog, bytes(data)))
    (directory / layout.REWRITTEN_FILE_NAME).write_bytes(b"left over")
    before, status = content(directory), path.stat()
    for arguments in REFUSED:
        assert "Traceback" not in tool(directory, *arguments, expect=1).err
        assert content(directory) == before, arguments
        after = path.stat()
        assert (after.st_mtime_ns, after.st_blocks) == (status.st_mtime_ns, status.st_blocks)


@pytest.mark.jvm
def test_capacity_is_printed_and_grows(directory: Path) -> None:
    """It grows by zeros at the end, and never shrinks; ArchiveTool can still read the catalog."""
    before = content(directory)["archive.catalog"]
    assert tool(directory, "capacity").out == f"{len(before)}\n"
    wanted = len(before) + 12_345
    assert tool(directory, "capacity", wanted, "--dry-run", "--json").json == {
        "capacity_bytes": wanted,
        "dry_run": True,
    }
    assert content(directory)["archive.catalog"] == before
    tool(directory, "capacity", wanted)
    grown = content(directory)["archive.catalog"]
    assert grown == before + bytes(12_345)
    tool(directory, "capacity", "32")
    assert content(directory)["archive.catalog"] == grown
    tool(directory, "capacity", "31", expect=2)
    assert archive_tool(directory, "count-entries").stdout == "3\n"


def test_a_damaged_start_does_not_orphan_the_last_segment(tmp_path: Path) -> None:
    """From such a start the segment positions would differ, and this file would be after the
    last."""
    directory = build(tmp_path / "archive")
    with Catalog.open(directory) as catalog:
        start = SEGMENT_LENGTH + 65_536 + 64
        assert catalog.stop_position(0) < start + SEGMENT_LENGTH - 64
        catalog.set_start_position(0, start)
    before = {name: data for name, data in content(directory).items() if name.startswith("0-")}
    done = tool(directory, "delete-orphaned-segments", "0", "--yes", expect=None)
    assert "is the start position right?" in done.err
    after = content(directory)
    assert {name: after.get(name) for name in before} == before


def test_segments_are_not_orphans_of_a_start_without_a_segment(tmp_path: Path) -> None:
    """One flipped bit may move the start to another segment. Detaching leaves the segment that
    contains the start or, at the end of the recording, one that ends there."""
    directory = build(tmp_path / "archive")
    before = content(directory)
    orphans = ["tool", str(directory), "delete-orphaned-segments", "3", "--yes"]
    for start in (1 << 40, 4 * SEGMENT_LENGTH):
        with Catalog.open(directory) as catalog:
            catalog.set_start_position(3, start)
        assert f"no segment file at the start position {start}" in aerotape(*orphans, expect=3).err
        assert set(content(directory)) == set(before)
    with Catalog.open(directory) as catalog:
        catalog.set_start_position(3, 3 * SEGMENT_LENGTH)
    aerotape(*orphans)
    gone = {f"3-{base}.rec" for base in (0, SEGMENT_LENGTH, 2 * SEGMENT_LENGTH)}
    assert set(content(directory)) == set(before) - gone


def test_purged_recordings_are_not_damage(tmp_path: Path) -> None:
    """Commands for all recordings ignore purged ones without files."""
    directory = build(tmp_path / "archive")
    with Catalog.open(directory) as catalog:
        catalog.change_state(4, RecordingState.DELETED)
    for path in directory.glob("1-*.rec"):
        path.unlink()
    for arguments in (["dump", "1"], ["checksum", "crc-32"], ["verify"]):
        assert tool(directory, *arguments).err == ""


@pytest.mark.parametrize("command", ["stats", "export", "verify", "repair", "time-index"])
def test_an_invalid_recording_is_reported_as_such(tmp_path: Path, command: str) -> None:
    """It is in the catalog, so the error must not only say that the id is unknown."""
    directory = build(tmp_path / "archive")
    file = [str(tmp_path / "exported")] if command == "export" else []
    assert tool(directory, command, "1", *file, expect=1).err.endswith("archive: it is DELETED\n")
    if command not in ("verify", "repair"):
        assert (
            "it is INVALID, which `aerotape tool` changes with"
            in tool(directory, command, "2", *file, expect=1).err
        )
