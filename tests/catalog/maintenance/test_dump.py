"""`aerotape tool DIR dump`: all frames, compared with the output of ArchiveTool."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.builders.offline_directory import SEGMENT_LENGTH, build, content
from support.daemon.command_line import tool
from support.jvm.java import archive_tool

from aerotape.catalog.file.catalog import Catalog

HEX_LINE = re.compile(r"^\|[0-9a-f]{8}\|((?: [0-9a-f]{2})+) *\|", re.MULTILINE)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An archive directory with recordings of all states."""
    return build(tmp_path / "archive")


@pytest.mark.jvm
def test_frames_are_those_that_archive_tool_prints(directory: Path) -> None:
    """Positions and payloads; without invalid recordings, at which ArchiveTool fails."""
    tool(directory, "compact", "--yes")
    (directory / "4-0.rec").write_bytes((directory / "0-0.rec").read_bytes())
    with Catalog.open(directory) as catalog:
        catalog.recording_stopped(4, 1408, 5)
    shown = archive_tool(directory, "dump").stdout
    theirs = [
        (int(recording[0]), int(frame.partition("]")[0]), _payload(frame))
        for recording in re.split(r"^Recording (?=\d)", shown, flags=re.MULTILINE)[1:]
        for frame in recording.split("Frame at position [")[1:]
        if "data at offset" in frame
    ]
    ours = tool(directory, "dump", "--json").json
    assert [(row["recording_id"], row["position"], row["payload"]) for row in ours] == theirs
    assert {row["recording_id"] for row in ours} == {0, 3, 4}
    assert {row["frame_type"] for row in ours} == {0, 1}


def _payload(frame: str) -> str:
    return "" if "PADDING" in frame else "".join(HEX_LINE.findall(frame)).replace(" ", "")


def test_the_limit_applies_to_each_recording(directory: Path) -> None:
    """Recordings of any state are shown; one without files is reported, with exit code 3."""
    before = content(directory)
    rows = tool(directory, "dump", "2", "--json", expect=3).json
    assert [(row["recording_id"], row["position"]) for row in rows] == [
        (0, 0),
        (0, 1408),
        (1, 0),
        (1, 1408),
        (2, 65_632),
        (2, 65_632 + 1408),
        (3, 0),
        (3, 1408),
    ]
    assert (rows[0]["flags"], rows[1]["flags"], rows[0]["length"]) == (0x80, 0, 1408)
    captured = tool(directory, "dump", "1", expect=3)
    assert "frame at position 65632: data of 1408 bytes, first fragment" in captured.out
    assert "  00000000  01 01 01" in captured.out
    assert "bytes of recording 0 not shown" in captured.out
    assert "recording 4 cannot be read to its end: there is no segment file" in captured.err
    assert content(directory) == before


def test_damage_ends_a_recording_and_not_the_rest(directory: Path) -> None:
    """All preceding frames are shown, and its position is reported."""
    whole = tool(directory, "dump", "--json", expect=3).json
    path = directory / f"0-{SEGMENT_LENGTH}.rec"
    data = bytearray(path.read_bytes())
    data[:4] = (1 << 30).to_bytes(4, "little")
    path.write_bytes(data)
    rows = tool(directory, "dump", "--json", expect=3).json
    assert rows == [
        row for row in whole if row["recording_id"] > 0 or row["position"] < SEGMENT_LENGTH
    ]
    assert (
        f"cannot have {1 << 30} bytes at position {SEGMENT_LENGTH}"
        in tool(directory, "dump", expect=3).err
    )
    tool(directory, "dump", "0", expect=2)
