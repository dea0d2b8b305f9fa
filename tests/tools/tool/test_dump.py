"""`aerotape tool DIR dump`: each frame as it stands, beside what ArchiveTool prints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.builders.offline_directory import SEGMENT_LENGTH, build, content
from support.jvm.java import archive_tool

from aerotape.catalog.file.catalog import Catalog
from aerotape.tools._cli.main import main

HEX_LINE = re.compile(r"^\|[0-9a-f]{8}\|((?: [0-9a-f]{2})+) *\|", re.MULTILINE)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An archive directory with recordings of all states."""
    return build(tmp_path / "archive")


def dump(
    directory: Path, capsys: pytest.CaptureFixture[str], *arguments: str, expect: int = 0
) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["tool", str(directory), "dump", *arguments, "--json"]) == expect
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


@pytest.mark.jvm
def test_frames_are_those_that_archive_tool_prints(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Positions and payloads of all recordings; compacted first, for it fails at invalid ones."""
    assert main(["tool", str(directory), "compact", "--yes"]) == 0
    (directory / "4-0.rec").write_bytes((directory / "0-0.rec").read_bytes())
    with Catalog.open(directory) as catalog:
        catalog.recording_stopped(4, 1408, 5)
    shown = archive_tool(directory, "dump").stdout
    theirs = [
        (int(recording.split()[0]), int(frame.partition("]")[0]), _payload(frame))
        for recording in re.split(r"^Recording (?=\d)", shown, flags=re.MULTILINE)[1:]
        for frame in recording.split("Frame at position [")[1:]
        if "data at offset" in frame
    ]
    ours = dump(directory, capsys)
    assert [(row["recording_id"], row["position"], row["payload"]) for row in ours] == theirs
    assert {row["recording_id"] for row in ours} == {0, 3, 4}
    assert {row["frame_type"] for row in ours} == {0, 1}


def _payload(frame: str) -> str:
    return "" if "PADDING" in frame else "".join(HEX_LINE.findall(frame)).replace(" ", "")


def test_the_limit_is_for_each_recording(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Recordings of any state are shown; one without files is reported and exits 3."""
    before = content(directory)
    rows = dump(directory, capsys, "2", expect=3)
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
    assert main(["tool", str(directory), "dump", "1"]) == 3
    captured = capsys.readouterr()
    assert "frame at position 65632: data of 1408 bytes, first fragment" in captured.out
    assert "  00000000  01 01 01" in captured.out
    assert "bytes of recording 0 not shown" in captured.out
    assert "recording 4 cannot be read to its end: there is no segment file" in captured.err
    assert content(directory) == before


def test_damage_ends_a_recording_and_not_the_rest(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All frames before it are shown, and its position is reported."""
    whole = dump(directory, capsys, expect=3)
    path = directory / f"0-{SEGMENT_LENGTH}.rec"
    data = bytearray(path.read_bytes())
    data[:4] = (1 << 30).to_bytes(4, "little")
    path.write_bytes(data)
    rows = dump(directory, capsys, expect=3)
    assert rows == [
        row for row in whole if row["recording_id"] > 0 or row["position"] < SEGMENT_LENGTH
    ]
    assert main(["tool", str(directory), "dump"]) == 3
    assert f"cannot have {1 << 30} bytes at position {SEGMENT_LENGTH}" in capsys.readouterr().err
    assert main(["tool", str(directory), "dump", "0"]) == 2
