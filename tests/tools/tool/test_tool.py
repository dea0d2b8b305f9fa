"""`aerotape tool`: describe and verify an archive directory offline."""

from __future__ import annotations

import argparse
import importlib
import json
import os
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from support.builders.built_archive import add_entry
from support.builders.mark_files import acquire
from support.builders.segment_builder import SegmentBuilder, crc32
from support.daemon.command_line import tool
from support.damage.overwriting import overwrite

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.recovery.refresh import refresh
from aerotape.catalog.recovery.suspect_marks import SuspectNote, add_notes
from aerotape.replay.offline.directory import open_directory
from aerotape.tools import entity, journal, ledger
from aerotape.tools import tool as tool_command
from aerotape.tools._cli import group as group_module

CRC_32 = "io.aeron.archive.checksum.Crc32"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A directory with a valid recording of three segments and one that was deleted."""
    stream = SegmentBuilder(checksum=crc32)
    while stream.position < 2 * stream.segment_length + 5000:
        stream.message(b"z" * 3000)
    stream.write(tmp_path)
    with Catalog.open(tmp_path, create=True, checksum="crc-32") as catalog:
        for channel in ("aeron:ipc", "aeron:udp?endpoint=localhost:1"):
            add_entry(
                catalog,
                stream,
                start_timestamp_ms=1_700_000_000_123,
                stripped_channel=channel,
                original_channel=channel,
            )
        catalog.recording_stopped(0, stream.position, 1_700_000_000_999)
        catalog.change_state(1, RecordingState.DELETED)
    with acquire(tmp_path) as mark_file:
        mark_file.record_error("no paper", 5)
    return tmp_path


def snapshot(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in directory.iterdir()}


def test_describe_shows_mark_file_catalog_and_recordings(archive: Path) -> None:
    """The readable form has all three; deleted recordings are shown only by describe-all."""
    text = tool(archive, "describe").out
    for expected in ("mark file:", "archive_id:", " 42", "catalog:", "3.1.0", "recording 0:"):
        assert expected in text
    assert "2023-11-14T22:13:20.123+00:00" in text
    assert "recording 1:" not in text
    assert "DELETED" in tool(archive, "describe-all").out


def test_describe_as_json(archive: Path) -> None:
    """One object with mark_file, catalog and recordings, numbers as numbers."""
    result = tool(archive, "describe", "--json").json
    assert result["mark_file"]["pid"] == os.getpid()
    assert result["mark_file"]["active"] is False
    assert (result["catalog"]["recordings"], result["catalog"]["next_recording_id"]) == (1, 2)
    (recording,) = result["recordings"]
    assert (recording["recording_id"], recording["state"], recording["suspect"]) == (
        0,
        "VALID",
        False,
    )
    assert tool(archive, "describe", "1", "--json").json["state"] == "DELETED"


def test_many_recordings_are_described_like_single_ones(archive: Path) -> None:
    """Strings and states are equal in both forms; times differ in the readable one."""
    odd = ("", " blank ", "%s%d", "a\x1b[2Jb", "q'\"\\")
    with Catalog.open(archive) as catalog:
        for number, text in enumerate(odd):
            add_entry(
                catalog,
                SegmentBuilder(),
                stream_id=number,
                stripped_channel=text,
                original_channel=odd[number - 1],
                source_identity=odd[number - 2],
            )
        catalog.change_state(3, RecordingState.INVALID)
    add_notes(archive, 5, [SuspectNote("torn tail", "cut short", -1, 0)])
    rows = tool(archive, "describe-all", "--json").json["recordings"]
    sections = tool(archive, "describe-all").out.split("\n\n")
    assert len(rows) == 2 + len(odd)
    assert [row["recording_id"] for row in rows if row["suspect"]] == [5]
    for number, row in enumerate(rows):
        assert row == tool(archive, "describe", number, "--json").json
        alone = tool(archive, "describe", number).out.splitlines()
        title, *lines = sections[2 + number].splitlines()
        assert title == f"recording {number}:"
        assert [line.rstrip() for line in lines] == lines
        differing = [ours for ours, its in zip(alone, lines, strict=True) if ours != its]
        assert all("_timestamp_ms:" in line for line in differing), differing


def test_pid_errors_and_count(archive: Path) -> None:
    """The small commands print the same as those of ArchiveTool."""
    assert tool(archive, "pid").out == f"{os.getpid()}\n"
    assert tool(archive, "count-entries").out == "1\n"
    assert "no paper" in tool(archive, "errors").out


@pytest.mark.parametrize("name", ["crc-32", CRC_32, "CRC32"])
def test_verify_accepts_a_valid_recording(archive: Path, name: str) -> None:
    """All segments and checksums, with ArchiveTool's arguments; nothing is written."""
    before = snapshot(archive)
    (check,) = tool(archive, "verify", "0", "-a", "-checksum", name, "--json").json
    assert (check["ok"], check["segments"], check["problems"]) == (True, 3, [])
    assert check["frames"] > check["checksums"] > 90
    assert snapshot(archive) == before


def test_only_the_last_segment_is_verified_unless_all_are_asked_for(archive: Path) -> None:
    """Damage in the first segment is reported with -a, with its position, and exits 3."""
    overwrite(archive / "0-0.rec", 40, b"?")
    assert "1 segment files" in tool(archive, "verify", "-checksum", "crc-32").out
    text = tool(archive, "verify", "-a", "-checksum", "crc-32", expect=3).out
    assert "FAILED" in text
    assert "checksum crc-32 fails for the frame at position 0" in text


def test_a_missing_segment_is_reported(archive: Path) -> None:
    """The report does not need -a, because no file is read for it."""
    (archive / "0-131072.rec").unlink()
    (check,) = tool(archive, "verify", "--json", expect=3).json
    assert check["problems"][0]["position"] == 131_072


def test_bytes_after_the_stop_position_and_a_lost_end_are_problems(archive: Path) -> None:
    """A stop position that is not where the frames end is reported in both directions."""
    with Catalog.open(archive) as catalog:
        end = catalog.stop_position(0)
        catalog.set_stop_position(0, end - 32)
    assert "bytes after the stop position" in tool(archive, "verify", expect=3).out
    with Catalog.open(archive) as catalog:
        catalog.set_stop_position(0, end + 96)
    assert (
        "96 bytes before they should: nothing was written" in tool(archive, "verify", expect=3).out
    )


def test_a_wrong_descriptor_checksum_is_reported(archive: Path) -> None:
    """The recording is not hidden by it. A descriptor without a checksum is no error."""
    with Catalog.open(archive, read_only=True) as catalog:
        offset = catalog.entry(0).offset
    overwrite(archive / "archive.catalog", offset + 8, b"\x01\0\0\0")
    printed = tool(archive, "verify", "-checksum", "crc-32", expect=3).out
    assert "the descriptor's checksum in the catalog is 1; crc-32 of it is " in printed
    assert "`checksum crc-32 0` renews it" in printed
    assert tool(archive, "count-entries").out == "1\n"
    overwrite(archive / "archive.catalog", offset + 8, bytes(4))
    printed = tool(archive, "verify", "-checksum", "crc-32").out
    assert "recording 0: OK, " in printed
    assert "its descriptor has no checksum" in printed


def test_a_recording_marked_as_suspect_exits_3(archive: Path) -> None:
    """Damage found by a start stays visible, in verify and in describe, until it is accepted."""
    with Catalog.open(archive, checksum="crc-32") as catalog:
        end = catalog.stop_position(0)
        catalog.set_stop_position(0, -1)
        last = archive / "0-262144.rec"
        overwrite(last, end - 262_144, b"\x05")
        refresh(catalog, archive, checksum="crc-32", now_ms=5)
        assert catalog.stop_position(0) == end
    printed = tool(archive, "verify", expect=3).out
    assert "recording 0: OK, repaired, " in printed
    assert f"marked as suspect: `aerotape tool {archive} accept-damage 0` accepts this" in printed
    described = tool(archive, "describe", "0", "--json").json
    assert described["suspect"] is True
    assert described["damage"].startswith("suspect torn tail: ")
    assert "accepted: suspect torn tail: " in tool(archive, "accept-damage", "0").out
    printed = tool(archive, "verify").out
    assert "recording 0: OK, repaired, " in printed
    assert "suspect torn tail: " in printed
    described = tool(archive, "describe", "0", "--json").json
    assert described["suspect"] is False
    assert "suspect torn tail: " in described["damage"]
    assert "(accepted " in described["damage"]
    # Found again is not news; anything else is.
    [note] = open_directory(archive).recording(0).suspect_notes
    add_notes(archive, 0, [replace(note, timestamp_ms=9, accepted_timestamp_ms=-1)])
    tool(archive, "verify")
    add_notes(archive, 0, [SuspectNote("torn frames", "more", 64, 9)])
    assert "torn frames: more" in tool(archive, "verify", expect=3).out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["verify", "99"], 1, "no recording with id 99"),
        (["describe", "99"], 1, "no recording with id 99"),
        (["verify", "-checksum", "md5"], 2, "unknown checksum 'md5'"),
        (["describe", "-a"], 2, "unrecognized arguments: -a"),
        (["pid", "3"], 2, "unrecognized arguments: 3"),
        (["verify", "three"], 2, "is not an integer"),
        (["mark-valid", "-1"], 2, "is not between 0"),
        (["frobnicate"], 2, "invalid choice"),
        ([], 2, "required"),
    ],
)
def test_mistakes_are_one_line(
    archive: Path, arguments: list[str], code: int, message: str
) -> None:
    """Wrong usage exits 2, a missing file exits 1, and nothing is printed to standard output."""
    captured = tool(archive, *arguments, expect=code)
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_a_damaged_descriptor_does_not_hide_the_others(archive: Path) -> None:
    """Describe shows all others and warns of it; verify reports it and exits 3."""
    with Catalog.open(archive) as catalog:
        catalog.change_state(1, RecordingState.VALID)
        offset = catalog.entry(1).offset
    overwrite(archive / "archive.catalog", offset + 32 + 80, b"\xff\xff\xff\x7f")
    captured = tool(archive, "describe", "--json")
    first, second = json.loads(captured.out)["recordings"]
    assert (first["recording_id"], first["damage"]) == (0, "")
    assert second["recording_id"] == 1
    assert "strippedChannel of 2147483647 bytes" in second["damage"]
    assert f"recording 1 at offset {offset} of the catalog is damaged" in captured.err
    tool(archive, "describe", "0")
    tool(archive, "describe", "1")
    tool(archive, "count-entries")
    text = tool(archive, "verify", expect=3).out
    assert "recording 0: OK" in text
    assert "recording 1: FAILED" in text
    tool(archive, "verify", "0")


@pytest.mark.parametrize("group", [entity, journal, ledger, tool_command])
def test_a_command_loads_its_module_alone(
    group: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the module of the given command is loaded, and each module has a command."""
    loaded: list[str] = []

    def load(name: str) -> ModuleType:
        loaded.append(name)
        return importlib.import_module(name)

    monkeypatch.setattr(group_module, "importlib", SimpleNamespace(import_module=load))
    for command, module in group.MODULES.items():
        loaded.clear()
        group.configure_for(argparse.ArgumentParser(), ["x", command])
        assert loaded == [f"aerotape.tools.{group.FOLDER}.{module}"], command


def test_all_commands_are_listed_without_a_command(archive: Path) -> None:
    """In the help, also with a command in the arguments, and for an unknown command."""
    commands = tool_command.MODULES
    for arguments in (["--help"], ["--help", "describe"]):
        shown = tool(*arguments).out
        assert all(f"\n    {command}" in shown for command in commands), shown
    shown = tool(archive, "describes", expect=2).err
    assert all(repr(command) in shown for command in commands), shown


@pytest.mark.parametrize(
    ("timestamp_ms", "shown"),
    [
        (-1, "-"),
        (0, "0 (1970-01-01T00:00:00.000+00:00)"),
        (1_700_000_000_123, "1700000000123 (2023-11-14T22:13:20.123+00:00)"),
        (253_402_300_799_999, "253402300799999 (9999-12-31T23:59:59.999+00:00)"),
        (253_402_300_800_000, "253402300800000"),
        ((1 << 63) - 1, str((1 << 63) - 1)),
    ],
)
def test_times_of_a_recording(archive: Path, timestamp_ms: int, shown: str) -> None:
    """As numbers and, up to the year 9999, as times; unknown ones as a dash."""
    with Catalog.open(archive) as catalog:
        catalog.recording_stopped(0, 0, timestamp_ms)
    assert f"stop_timestamp_ms:   {timestamp_ms}\n" in tool(archive, "describe", "0").out
    assert f"stop_timestamp_ms:   {shown}\n" in tool(archive, "describe").out
