"""`aerotape tool DIR verify`: reports all damage, and marks it as ArchiveTool does."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from support.builders.mark_files import in_use
from support.builders.offline_directory import SEGMENT_LENGTH, build, content
from support.daemon.command_line import aerotape, tool
from support.damage.overwriting import overwrite
from support.jvm.java import archive_tool

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.descriptor_checksum import checksum_kind
from aerotape.catalog.layout import START_POSITION_OFFSET, STOP_TIMESTAMP_OFFSET
from aerotape.catalog.segment_files import SegmentFile, index_segment_files
from aerotape.errors import SegmentError, UnknownRecordingError
from aerotape.replay.offline.directory import open_directory

CRC_32 = "io.aeron.archive.checksum.Crc32"
LAST = f"0-{2 * SEGMENT_LENGTH}.rec"
FRAME = 1408
"""Frames are of this length, but for the last of each message."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The recordings of `offline_directory`, of which 4 has a file with little content."""
    directory = build(tmp_path / "archive")
    (directory / "4-0.rec").write_bytes(bytes(SEGMENT_LENGTH))
    return directory


def stop_at(directory: Path, position: int) -> None:
    with Catalog.open(directory) as catalog:
        catalog.set_stop_position(0, position)


def end_of(directory: Path) -> int:
    with Catalog.open(directory, read_only=True) as catalog:
        return catalog.stop_position(0)


def cut_short(path: Path, length: int) -> None:
    with path.open("r+b") as file:
        file.truncate(length)


def delete(*paths: Path) -> None:
    for path in paths:
        path.unlink()


# Changes to recording 0.
DAMAGES: dict[str, Callable[[Path], object]] = {
    "none": lambda d: None,
    "frame of another place": lambda d: overwrite(d / LAST, 8, b"\x20"),
    "first segment": lambda d: overwrite(d / "0-0.rec", FRAME + 16, b"\x09"),
    "hole in the last segment": lambda d: overwrite(d / LAST, FRAME, bytes(64)),
    "payload": lambda d: overwrite(d / LAST, 40, b"?"),
    "last segment cut short": lambda d: cut_short(d / LAST, 2 * FRAME + 100),
    "last segment empty": lambda d: cut_short(d / LAST, 0),
    "first segment cut short": lambda d: cut_short(d / "0-0.rec", 3 * FRAME),
    "last segment missing": lambda d: delete(d / LAST),
    "first segment missing": lambda d: delete(d / "0-0.rec"),
    "all segments missing": lambda d: delete(*d.glob("0-*.rec")),
    "stop position too low": lambda d: stop_at(d, end_of(d) - 96),
    "stop position too high": lambda d: stop_at(d, end_of(d) + 96),
    "stop position not aligned": lambda d: stop_at(d, end_of(d) - 1),
    "stop position before the last segment": lambda d: stop_at(d, SEGMENT_LENGTH + FRAME),
    "a file without a position": lambda d: (d / "0-.rec").write_bytes(b""),
    "a detached file that is none": lambda d: (d / "2-0.rec").write_bytes(b"junk"),
    "an empty segment after the last": lambda d: (d / f"0-{3 * SEGMENT_LENGTH}.rec").write_bytes(
        bytes(SEGMENT_LENGTH)
    ),
}


def without_times(files: dict[str, bytes], directory: Path) -> dict[str, bytes]:
    """Remove stop timestamps, which are the current time, and the checksums that depend on them."""
    catalog = bytearray(files["archive.catalog"])
    with Catalog.open(directory, read_only=True) as opened:
        for entry in opened.entries():
            begin = entry.offset + 32 + STOP_TIMESTAMP_OFFSET
            catalog[begin : begin + 8] = bytes(8)
            catalog[entry.offset + 8 : entry.offset + 12] = bytes(4)
    return {**files, "archive.catalog": bytes(catalog)}


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("damage", "arguments"),
    [
        *((damage, arguments) for damage in DAMAGES for arguments in ([], ["-a"])),
        *((damage, ["-a", "-checksum", CRC_32]) for damage in ("none", "payload")),
        ("first segment", ["0"]),
    ],
    ids=str,
)
def test_the_catalog_equals_that_of_archive_tool(
    directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: str,
    arguments: list[str],
) -> None:
    """On two copies of one directory; a preceding dry run changes nothing. Only the checksum of a
    descriptor that is changed is renewed by ours alone.
    """
    if "-checksum" in arguments:
        # Of all recordings: ArchiveTool hides those without, and ours does not.
        tool(directory, "checksum", CRC_32, "-a", expect=None)
    DAMAGES[damage](directory)
    theirs = shutil.copytree(directory, tmp_path / "theirs")
    before = content(directory)
    tool(directory, "verify", *arguments, "--dry-run", expect=None)
    assert content(directory) == before
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n" * 9))
    tool(directory, "verify", *arguments, expect=None)
    done = archive_tool(theirs, "verify", *arguments, answers="n\n" * 9)
    assert "Exception in thread" not in done.stderr
    expected = without_times(content(theirs), theirs)
    assert without_times(content(directory), directory) == expected, done.stdout
    if "-checksum" in arguments:
        with Catalog.open(directory, read_only=True) as catalog:
            assert {checksum_kind(entry) for entry in catalog.entries()} == {"crc-32"}


@pytest.mark.jvm
def test_a_last_frame_that_may_be_torn_is_cut_off_on_request(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the same position as ArchiveTool, but the bytes are retained."""
    path = directory / LAST
    # The first frame of the second message crosses the end of the first page.
    begin = 2 * FRAME + 288
    torn = path.read_bytes()[begin:4096].rstrip(b"\0")
    overwrite(path, 4096, bytes(SEGMENT_LENGTH - 4096))
    theirs = shutil.copytree(directory, tmp_path / "theirs")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    tool(directory, "verify", "0", expect=None)
    archive_tool(theirs, "verify", "0", answers="y\n")
    assert end_of(directory) == end_of(theirs) == 2 * SEGMENT_LENGTH + begin
    assert path.read_bytes() == (theirs / LAST).read_bytes()
    [kept] = directory.glob("aerotape-quarantine/0-*/*.rec*")
    assert kept.read_bytes().rstrip(b"\0") == torn


def test_each_bad_frame_is_reported(directory: Path) -> None:
    """Each has its file, offset and position; valid frames between them are counted."""
    tool(directory, "checksum", "crc-32c", "0", "-a", expect=None)
    verify = ("tool", directory, "verify", "0", "-a", "-checksum", "crc-32c", "--json")
    [sound] = aerotape(*verify, expect=None).json
    first, last = directory / "0-0.rec", directory / LAST
    overwrite(first, FRAME + 8, b"\x01")
    overwrite(first, 5 * FRAME + 50, b"?")
    overwrite(last, 0, bytes(32))
    [check] = aerotape(*verify, expect=3).json
    places = [
        (problem["path"], problem["offset"], problem["position"]) for problem in check["problems"]
    ]
    assert (str(first), FRAME, FRAME) in places
    assert (str(last), 0, 2 * SEGMENT_LENGTH) in places
    assert check["bad_places"] == len(places) == 3
    assert check["frames"] == sound["frames"] - 2
    assert check["marked"]["state"] == "INVALID"


def served(directory: Path) -> list[tuple[int, bytes]]:
    """Return end and payload of the messages of recording 0 that readers return until they fail."""
    messages = []
    with suppress(SegmentError):
        for message in open_directory(directory).recording(0).messages():
            messages.append((message.end_position, bytes(message.payload)))
    return messages


@pytest.mark.parametrize("way", ["mark-valid", "repair"])
@pytest.mark.parametrize(
    ("damage", "begin"),
    [
        ("frame of another place", 2 * SEGMENT_LENGTH),
        ("last segment cut short", 2 * SEGMENT_LENGTH + 2 * FRAME),
        ("last segment missing", 2 * SEGMENT_LENGTH),
        ("first segment cut short", 3 * FRAME),
    ],
)
def test_a_recording_marked_invalid_can_be_restored(
    directory: Path, damage: str, begin: int, way: str
) -> None:
    """Only the catalog was written; messages preceding the damage are readable again, and the
    report says how."""
    before_damage = [message for message in served(directory) if message[0] <= begin]
    assert before_damage
    DAMAGES[damage](directory)
    before = content(directory)
    verify = ["tool", str(directory), "verify", "0", "-a"]
    dry_run = aerotape(*verify, "--dry-run", expect=3).out
    assert content(directory) == before
    printed = aerotape(*verify, expect=3).out
    for text, verb in ((dry_run, "would be"), (printed, "are now")):
        assert f"{verb} INVALID, so that clients do not see them: recordings 0\n" in text
        assert "`repair`" in text
        assert "`mark-valid ID`" in text
    with pytest.raises(UnknownRecordingError):
        served(directory)
    assert {**content(directory), "archive.catalog": b""} == {**before, "archive.catalog": b""}
    tool(directory, way, "0", expect=None)
    assert served(directory)[: len(before_damage)] == before_damage


def test_a_changed_stop_position_is_reported(directory: Path) -> None:
    """The report has the previous value, which is not stored in any other place."""
    end = end_of(directory)
    stop_at(directory, end - 96)
    [check] = tool(directory, "verify", "0", "--dry-run", "--json", expect=None).json
    assert (check["marked"]["stop_position"], check["marked"]["state"]) == (end, "VALID")
    assert check["marked"]["stop_position_before"] == end - 96
    printed = tool(directory, "verify", "0", expect=None).out
    assert f"its stop position is now {end} (was {end - 96})\n" in printed
    assert "INVALID" not in printed
    assert end_of(directory) == end


def test_frames_after_a_lowered_stop_position_are_reported(directory: Path) -> None:
    """`repair` before verify retains valid frames in place; after it, it copies them aside."""
    path = directory / LAST
    DAMAGES["hole in the last segment"](directory)
    frames = path.read_bytes()
    behind = len(frames.rstrip(b"\0")) - FRAME
    verify = ["tool", str(directory), "verify", "0"]
    dry_run = aerotape(*verify, "--dry-run", expect=None).out
    [check] = aerotape(*verify, "--dry-run", "--json", expect=None).json
    assert check["marked"]["bytes_behind"] == behind
    printed = aerotape(*verify, expect=None).out
    assert end_of(directory) == 2 * SEGMENT_LENGTH + FRAME
    assert path.read_bytes() == frames
    line = f"  {path}: the {behind} bytes after it "
    assert f"{line}would remain in the file; `repair`, run first, retains valid frames" in dry_run
    assert f"{line}remain in the file: `repair`, or an archive that extends" in printed
    tool(directory, "repair", "0", expect=None)
    [copy] = (directory / "aerotape-quarantine").glob(f"*/{LAST}.{FRAME}-*")
    assert copy.read_bytes() == frames[FRAME : FRAME + behind]
    assert "bytes after it" not in aerotape(*verify, expect=None).out


def test_a_recording_with_other_damage_is_not_truncated(directory: Path) -> None:
    """Its start position is damaged: valid frames there look like a torn one."""
    tool(directory, "checksum", CRC_32, "0", "-a", expect=None)
    with Catalog.open(directory, read_only=True) as catalog:
        begin = catalog.entry(0).offset + 32 + START_POSITION_OFFSET
    overwrite(directory / "archive.catalog", begin, (2 * SEGMENT_LENGTH + 64).to_bytes(8, "little"))
    before = content(directory)
    arguments = ["tool", str(directory), "verify", "0", "-a", "-checksum", CRC_32, "--yes"]
    printed = aerotape(*arguments, expect=3).out
    assert "it is damaged, or was changed by a program that does not renew the checksum" in printed
    assert "INVALID" not in printed
    assert content(directory) == before


def test_a_directory_in_use_has_one_reason(directory: Path) -> None:
    """The process, and to stop it first: of a run, which locks, and of a dry run, which cannot."""
    with in_use(directory):
        for options in ([], ["--dry-run"]):
            message = aerotape("tool", str(directory), "verify", *options, expect=None).err
            assert f"another archive, process {os.getpid()}: stop it first" in message


def test_files_that_a_recorder_creates_meanwhile_are_not_missing(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is listed before the end of a live recording is determined."""

    def listed_before(path: Path) -> tuple[dict[int, list[SegmentFile]], list[Path]]:
        index, others = index_segment_files(path)
        return {**index, 3: index[3][:1]}, others

    monkeypatch.setattr("aerotape.catalog.maintenance.verify.index_segment_files", listed_before)
    with in_use(directory):
        for options, segments in ((["-a"], 3), ([], 1)):
            (check,) = tool(directory, "verify", "3", *options, "--json").json
            assert (check["segments"], check["problems"]) == (segments, [])
        (directory / f"3-{SEGMENT_LENGTH}.rec").unlink()
        tool(directory, "verify", "3", expect=3)
