"""`aerotape tool DIR checksum`: the same bytes as after Aeron's ArchiveTool."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording
from support.builders.offline_directory import SEGMENT_LENGTH, build, content
from support.builders.segment_builder import SegmentBuilder, crc32
from support.daemon.command_line import aerotape, tool
from support.damage.overwriting import overwrite
from support.jvm.java import archive_tool

CRC_32 = "io.aeron.archive.checksum.Crc32"
CRC_32C = "io.aeron.archive.checksum.Crc32c"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An archive directory without checksums, with a detached segment file of recording 2."""
    directory = build(tmp_path / "archive")
    (directory / "2-0.rec").write_bytes((directory / "0-0.rec").read_bytes())
    return directory


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([CRC_32], 3),
        ([CRC_32, "-a"], 3),
        ([CRC_32C, "0"], 0),
        ([CRC_32C, "0", "-a"], 0),
        ([CRC_32, "3", "-a"], 0),
        ([CRC_32, "2"], 1),
        ([CRC_32, "99"], 1),
    ],
    ids=str,
)
def test_checksums_are_those_of_archive_tool(
    directory: Path, tmp_path: Path, arguments: list[str], code: int
) -> None:
    """On two copies of one directory; exit code 3 is for a recording whose files are missing."""
    theirs = shutil.copytree(directory, tmp_path / "theirs")
    before = content(directory)
    tool(directory, "checksum", *arguments, "--dry-run", expect=code)
    assert content(directory) == before
    tool(directory, "checksum", *arguments, expect=code)
    done = archive_tool(theirs, "checksum", *arguments)
    assert (done.returncode == 0) == (code != 1), done.stderr
    assert content(directory) == content(theirs)
    assert (content(directory) != before) == (code != 1)


@pytest.mark.jvm
def test_changes_are_reported_and_verify(directory: Path) -> None:
    """A second run changes nothing; verify finds all checksums right, ArchiveTool too."""
    arguments = ["tool", str(directory), "checksum", "crc-32c", "0", "-a", "--json"]
    (first,) = aerotape(*arguments).json
    assert (first["recording_id"], first["segments"], first["problems"]) == (0, 3, [])
    assert first["descriptor_changed"] is True
    assert first["frames_changed"] == first["frames"] > 200
    (second,) = aerotape(*arguments).json
    assert (second["descriptor_changed"], second["frames_changed"]) == (False, 0)
    assert second["frames"] == first["frames"]
    tool(directory, "verify", "0", "-a", "-checksum", CRC_32C)
    checked = archive_tool(directory, "verify", "0", "-a", "-checksum", CRC_32C)
    assert "(recordingId=0) OK" in checked.stdout, checked.stdout


@pytest.mark.jvm
@pytest.mark.parametrize("kind", ["crc-32", "crc-32c"])
def test_frames_whose_checksum_was_wrong_are_counted(
    directory: Path, tmp_path: Path, kind: str
) -> None:
    """If other frames had valid ones; the bytes equal those of ArchiveTool."""
    checksum = ["tool", str(directory), "checksum"]
    # Recorded without checksums: damage cannot be detected.
    path = directory / "0-0.rec"
    overwrite(path, 40, b"damaged")
    overwrite(path, 12, b"\x07")  # of another session, before an extension
    (outcome,) = aerotape(*checksum, "crc-32", "0", "-a", "--json").json
    assert outcome["frames_changed"] == outcome["frames"]
    assert outcome["frames_wrong"] == 0
    # Data that an extension without checksums has recorded is not damaged.
    overwrite(path, 12, (-42).to_bytes(4, "little", signed=True))
    second = (int.from_bytes(path.read_bytes()[:4], "little") + 31) & ~31
    overwrite(path, second + 40, b"damaged")
    overwrite(directory / f"0-{SEGMENT_LENGTH}.rec", 40, b"damaged")
    theirs = shutil.copytree(directory, tmp_path / "theirs")
    before = content(directory)
    shown = aerotape(*checksum, kind, "0", "-a", "--dry-run", expect=3).out
    assert "2 of these frames had a wrong checksum" in shown
    assert "verify -a -checksum" in shown
    assert content(directory) == before
    (outcome,) = aerotape(*checksum, kind, "0", "-a", "--json", expect=3).json
    assert (outcome["frames_wrong"], outcome["problems"]) == (2, [])
    assert outcome["frames_changed"] == (3 if kind == "crc-32" else outcome["frames"])
    archive_tool(theirs, "checksum", CRC_32 if kind == "crc-32" else CRC_32C, "0", "-a")
    assert content(directory) == content(theirs)
    aerotape(*checksum, kind, "0", "-a")


def test_data_of_an_earlier_session_without_checksums_may_be_valid(
    tmp_path: Path,
) -> None:
    """The catalog has only the session id of the last extension, so both are reported."""
    stream = SegmentBuilder()
    stream.message(b"without" * 1000)
    earlier = len(stream.frames)
    stream.session_id, stream.checksum = 43, crc32
    stream.message(b"with" * 1000)
    add_recording(tmp_path, stream)
    checksum = ["tool", str(tmp_path), "checksum", "crc-32", "0", "-a"]
    expected = (
        f"{earlier} of these frames had a wrong checksum and may be damaged, or were recorded"
    )
    for options in (["--dry-run"], []):
        shown = aerotape(*checksum, *options, expect=3).out
        assert f"{expected} without one under an earlier session id" in shown
    assert "earlier session" not in aerotape(*checksum).out


def test_hard_linked_files_are_copied_first(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup of hard links does not change; with a full disk no file changes."""
    backup = tmp_path / "backup"
    backup.mkdir()
    for path in directory.glob("*.rec"):
        (backup / path.name).hardlink_to(path)
    before = content(backup)
    checksum = ["tool", str(directory), "checksum", "crc-32", "0", "-a"]
    linked = [path.stat().st_nlink for path in sorted(directory.glob("*.rec"))]
    aerotape(*checksum, "--dry-run")
    assert [path.stat().st_nlink for path in sorted(directory.glob("*.rec"))] == linked

    def no_room(*_: object) -> int:
        raise OSError(28, "No space left on device")

    whole = content(directory)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", no_room)
        aerotape(*checksum, expect=1)
    assert content(directory) == whole
    aerotape(*checksum)
    assert content(backup) == before
    names = [name for name in before if name.startswith("0-")]
    assert names and all((directory / name).read_bytes() != before[name] for name in names)


@pytest.mark.parametrize(
    ("damage", "arguments", "problem"),
    [
        ("none", [], ""),
        ("payload", ["-a"], "1 of these frames had a wrong checksum"),
        ("no frame", ["-a"], "its frames end "),
        ("no file", ["-a"], "1 segment files are missing, the first is 0-0.rec"),
        ("no file", [], "1 segment files are missing, the first is 0-0.rec"),
    ],
)
def test_damage_has_the_exit_code_of_verify(
    tmp_path: Path, damage: str, arguments: list[str], problem: str
) -> None:
    """Also for frames that are not processed, after damage or without their file."""
    stream = SegmentBuilder(checksum=crc32)
    while stream.position < stream.segment_length + 9_000:
        stream.message(b"good" * 1_000)
    add_recording(tmp_path, stream, checksum="crc-32")
    path = tmp_path / "0-0.rec"
    if damage == "payload":
        overwrite(path, 40, b"damaged")
    elif damage == "no frame":
        overwrite(path, max(each for each in stream.frames if each < 4_096), bytes(4))
    elif damage == "no file":
        path.unlink()
    code = 3 if problem else 0
    tool(tmp_path, "verify", "-checksum", "crc-32", *arguments, "--dry-run", expect=code)
    for options in (["--dry-run"], []):
        done = tool(tmp_path, "checksum", "crc-32", *arguments, *options, expect=code)
        assert problem in done.out


def test_an_invalid_frame_ends_the_segment(directory: Path) -> None:
    """It is reported with its position; data after it is unchanged, other segments are
    processed."""
    path = directory / f"0-{SEGMENT_LENGTH}.rec"
    damaged = bytearray(path.read_bytes())
    second = (int.from_bytes(damaged[:4], "little") + 31) & ~31
    damaged[second : second + 4] = (-5).to_bytes(4, "little", signed=True)
    path.write_bytes(damaged)
    (outcome,) = tool(directory, "checksum", "crc-32", "0", "-a", "--json", expect=3).json
    (problem,) = outcome["problems"]
    assert (problem["position"], problem["path"]) == (SEGMENT_LENGTH + second, str(path))
    assert path.read_bytes()[second:] == damaged[second:]
    assert outcome["frames_changed"] > 100
