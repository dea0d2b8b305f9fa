"""`aerotape tool DIR verify -checksum` of recordings without that checksum, or with it in part."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support.builders.built_archive import add_entry
from support.builders.mark_files import leave
from support.builders.offline_directory import content
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import tool
from support.damage.overwriting import overwrite
from support.jvm.java import archive_tool

from aerotape import _native
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.descriptor_checksum import checksum_kind, checksum_of
from aerotape.catalog.file.entries import CatalogEntry
from aerotape.catalog.layout import STOP_TIMESTAMP_OFFSET
from aerotape.catalog.recovery.refresh import refresh
from aerotape.errors import SegmentError
from aerotape.frame_header import ChecksumName
from aerotape.replay.offline.directory import open_directory

KINDS: tuple[ChecksumName, ...] = ("none", "crc-32", "crc-32c")
CRC_32C = "io.aeron.archive.checksum.Crc32c"
FRAME = 1056
"""Length of each frame; all have the same payload, and so the same checksum."""


def sum_of(kind: ChecksumName) -> Callable[[bytes], int] | None:
    return None if kind == "none" else partial(_native.checksum, kind)


def made(
    directory: Path,
    *sessions: tuple[ChecksumName, int],
    descriptor: ChecksumName = "none",
    live: bool = False,
) -> SegmentBuilder:
    """Write a recording of several sessions, each with a kind of checksum and a number of frames.

    Payloads are all the same, as those of heartbeats are.
    """
    directory.mkdir(exist_ok=True)
    stream = SegmentBuilder()
    for index, (kind, count) in enumerate(sessions):
        stream.session_id, stream.checksum = -1000 + index, sum_of(kind)
        for _ in range(count):
            stream.message(b"x" * (FRAME - 32))
    stream.write(directory)
    with Catalog.open(directory, create=True, checksum=descriptor) as catalog:
        add_entry(
            catalog,
            stream,
            stop_position=-1 if live else stream.position,
            stop_timestamp_ms=-1 if live else 5,
        )
    leave(directory)
    return stream


def entry_of(directory: Path) -> CatalogEntry:
    with Catalog.open(directory, read_only=True) as catalog:
        return catalog.entry(0)


SESSIONS = [
    sessions
    for count in (1, 2, 3)
    for sessions in itertools.product(KINDS, repeat=count)
    if all(one != other for one, other in itertools.pairwise(sessions))
]


@pytest.mark.parametrize("checksum", ["crc-32", "crc-32c"])
@pytest.mark.parametrize("frames", [2, 40, 130], ids=str)
@pytest.mark.parametrize("sessions", SESSIONS, ids="-".join)
def test_no_sound_recording_is_hidden(
    tmp_path: Path, sessions: tuple[ChecksumName, ...], frames: int, checksum: ChecksumName
) -> None:
    """Whatever it was recorded with, and each of its extensions; the directory stays as it is."""
    directory = tmp_path / "a"
    made(directory, *((kind, frames) for kind in sessions), descriptor=sessions[-1])
    before = content(directory)
    for options in (["-a"], []):
        [check] = tool(directory, "verify", *options, "-checksum", checksum, "--json").json
        assert (check["ok"], check["marked"], check["problems"]) == (True, None, [])
    assert content(directory) == before
    [check] = tool(directory, "verify", "-a", "-checksum", checksum, "--json").json
    other: ChecksumName = "crc-32" if checksum == "crc-32c" else "crc-32c"
    assert check["checksums"] == frames * sessions.count(checksum)
    assert check["other_checksums"] == frames * sessions.count(other)
    assert check["unchecked_frames"] == frames * sessions.count("none")
    printed = tool(directory, "verify", "-a", "-checksum", checksum).out
    assert ("payloads not checked" in printed) == (set(sessions) == {"none"})
    assert ("recorded without checksums" in printed) == ("none" in sessions)


@pytest.mark.parametrize("options", [[], ["-a"]], ids=str)
def test_a_session_may_end_with_the_first_frame_of_a_file(
    tmp_path: Path, options: list[str]
) -> None:
    """That frame is known by those in the file before, also where only the last file is checked."""
    directory = tmp_path / "a"
    made(directory, ("none", 125), ("crc-32c", 9))
    [check] = tool(directory, "verify", *options, "-checksum", "crc-32c", "--json").json
    assert check["unchecked_frames"] == (125 if options else 1)


@pytest.mark.parametrize("sessions", SESSIONS, ids="-".join)
def test_damage_is_found_in_each_session_that_has_a_checksum(
    tmp_path: Path, sessions: tuple[ChecksumName, ...]
) -> None:
    """One frame in the middle of each; so is a damaged session id in one that has none."""
    directory, frames = tmp_path / "a", 9
    stream = made(directory, *((kind, frames) for kind in sessions), descriptor=sessions[-1])
    places = list(stream.frames)[frames // 2 :: frames]
    for position, kind in zip(places, sessions, strict=True):
        overwrite(directory / "0-0.rec", position + (12 if kind == "none" else 40), b"??")
    [check] = tool(directory, "verify", "-checksum", "crc-32c", "--json", expect=3).json
    assert [problem["position"] for problem in check["problems"]] == places
    assert check["marked"]["state"] == "INVALID"


def test_two_damaged_frames_with_one_checksum_are_found(tmp_path: Path) -> None:
    """They hold the same value, as two frames of a session without checksums do."""
    directory = tmp_path / "a"
    stream = made(directory, ("crc-32c", 9))
    for position in list(stream.frames)[4:6]:
        overwrite(directory / "0-0.rec", position + 40, b"?")
    [check] = tool(directory, "verify", "-checksum", "crc-32c", "--json", expect=3).json
    assert check["checksums"] == 7
    assert check["problems"]


@pytest.mark.parametrize("recorded", KINDS)
def test_verify_reports_that_payloads_were_not_checked(
    tmp_path: Path, recorded: ChecksumName
) -> None:
    """Without the option, also after a payload was changed; it says how to check them."""
    directory = tmp_path / "a"
    made(directory, (recorded, 9), descriptor=recorded)
    overwrite(directory / "0-0.rec", 40, b"?")
    printed = tool(directory, "verify", "-a").out
    assert "recording 0: OK, positions 0 to 9504, 1 segment files, 9 frames, payloads not " in (
        printed
    )
    hint = f"its payloads are checked with `-checksum {recorded}`"
    assert (hint in printed) == (recorded != "none")
    [check] = tool(directory, "verify", "--json").json
    assert check["payloads"] == "not checked"


@pytest.mark.jvm
@pytest.mark.parametrize("recorded", ["crc-32", "crc-32c"])
def test_the_checksum_of_a_descriptor_is_renewed_with_it(
    tmp_path: Path, recorded: ChecksumName
) -> None:
    """By the verify that sets the stop position; a second one, and ArchiveTool's, accept it."""
    directory = tmp_path / "a"
    made(directory, (recorded, 9), descriptor=recorded, live=True)
    options = ["-a", "-checksum", recorded]
    [check] = tool(directory, "verify", *options, "--json").json
    assert check["marked"]["stop_position"] == 9 * FRAME
    assert checksum_kind(entry_of(directory)) == recorded
    [check] = tool(directory, "verify", *options, "--json").json
    assert (check["ok"], check["marked"]) == (True, None)
    name = CRC_32C if recorded == "crc-32c" else CRC_32C[:-1]
    assert "(recordingId=0) OK" in archive_tool(directory, "verify", "-a", "-checksum", name).stdout


@pytest.mark.jvm
def test_a_descriptor_that_archive_tool_changed_is_not_hidden(tmp_path: Path) -> None:
    """Its stop position was set and its checksum not renewed: verify renews it."""
    directory = tmp_path / "a"
    made(directory, ("crc-32c", 9), descriptor="crc-32c", live=True)
    options = ["-a", "-checksum", CRC_32C]
    assert "(recordingId=0) OK" in archive_tool(directory, "verify", *options).stdout
    assert checksum_kind(entry_of(directory)) == "none"
    theirs = shutil.copytree(directory, tmp_path / "theirs")
    assert "(recordingId=0) ERR" in archive_tool(theirs, "verify", *options).stdout
    printed = tool(directory, "verify", *options).out
    assert "recording 0: OK, " in printed
    assert "the descriptor's checksum was not renewed when its stop position was set" in printed
    assert checksum_kind(entry_of(directory)) == "crc-32c"
    assert "(recordingId=0) OK" in archive_tool(directory, "verify", *options).stdout


def test_a_descriptor_with_a_wrong_checksum_is_reported_and_left(tmp_path: Path) -> None:
    """It may be damaged, or changed by another program; `checksum` ends that."""
    directory = tmp_path / "a"
    made(directory, ("crc-32c", 9), descriptor="crc-32c")
    entry = entry_of(directory)
    begin = entry.offset + 32 + STOP_TIMESTAMP_OFFSET
    overwrite(directory / "archive.catalog", begin, b"\x07")
    before = content(directory)
    [check] = tool(directory, "verify", "-a", "-checksum", "crc-32c", "--json", expect=3).json
    assert check["marked"] is None
    assert "`checksum crc-32c 0` renews it" in check["problems"][0]["detail"]
    assert content(directory) == before
    tool(directory, "checksum", "crc-32c", "0")
    tool(directory, "verify", "-a", "-checksum", "crc-32c")


COMMANDS = [
    ("mark-invalid", "0"),
    ("verify", "-a"),
    ("capacity", "99999"),
    ("repair", "0"),
    ("repair", "0", "--cut"),
]


@pytest.mark.parametrize("recorded", KINDS)
@pytest.mark.parametrize("command", COMMANDS, ids="-".join)
def test_commands_leave_the_checksum_of_a_descriptor_right(
    tmp_path: Path, recorded: ChecksumName, command: tuple[str, ...]
) -> None:
    """Or absent, if it had none: of a recording without a stop position, with a torn end."""
    directory = tmp_path / "a"
    stream = made(directory, (recorded, 9), descriptor=recorded, live=True)
    overwrite(directory / "0-0.rec", stream.position - FRAME, b"\x05\x05\x05")
    tool(directory, *command, expect=None)
    with Catalog.open(directory, read_only=True) as catalog:
        [entry] = catalog.entries()
    assert entry.checksum == checksum_of(entry.body, recorded)


@pytest.mark.parametrize("recorded", KINDS)
@pytest.mark.parametrize("configured", KINDS)
def test_each_change_leaves_the_checksum_right(
    tmp_path: Path, recorded: ChecksumName, configured: ChecksumName
) -> None:
    """Of an archive with any setting: that of the setting, and without one the kind it had."""
    directory = tmp_path / "a"
    made(directory, (recorded, 9), descriptor=recorded)
    wanted = recorded if configured == "none" else configured
    longer = "aeron:udp?endpoint=localhost:20121|alias=" + "x" * 500
    with Catalog.open(directory, checksum=configured) as catalog:
        changes: list[Callable[[], object]] = [
            lambda: catalog.set_start_position(0, FRAME),
            lambda: catalog.set_stop_position(0, 2 * FRAME),
            lambda: catalog.extend_recording(
                0, control_session_id=1, correlation_id=2, session_id=3
            ),
            lambda: catalog.recording_stopped(0, 9 * FRAME, 77),
            lambda: catalog.set_start_in_any_state(0, 0),
            lambda: catalog.set_end_in_any_state(0, 8 * FRAME, 78),
            lambda: catalog.replace_channel(
                0, stripped_channel="aeron:ipc", original_channel="aeron:ipc?alias=y"
            ),
            lambda: catalog.replace_channel(0, stripped_channel=longer, original_channel=longer),
            lambda: catalog.replace_recording(catalog.descriptor(0)),
        ]
        for change in changes:
            change()
            entry = catalog.entry(0)
            assert entry.checksum == checksum_of(entry.body, wanted)


@pytest.mark.parametrize("configured", ["crc-32", "crc-32c"])
@pytest.mark.parametrize("sessions", SESSIONS, ids="-".join)
def test_a_start_after_a_crash_with_another_setting_loses_nothing(
    tmp_path: Path, sessions: tuple[ChecksumName, ...], configured: ChecksumName
) -> None:
    """The whole recording remains, without a mark."""
    directory = tmp_path / "a"
    stream = made(directory, *((kind, 9) for kind in sessions), live=True)
    with Catalog.open(directory, checksum=configured) as catalog:
        [outcome] = refresh(catalog, directory, checksum=configured, now_ms=9)
    assert (outcome.stop_position, outcome.suspect) == (stream.position, False), str(outcome)


@pytest.mark.parametrize("sessions", [("none", "crc-32c"), ("crc-32c", "none"), ("none",)])
def test_repair_leaves_frames_without_checksums(
    tmp_path: Path, sessions: tuple[ChecksumName, ...]
) -> None:
    """They are not replaced by padding."""
    directory = tmp_path / "a"
    made(directory, *((kind, 9) for kind in sessions))
    before = content(directory)
    assert tool(directory, "repair", "-checksum", "crc-32c").out == "recording 0: OK\n"
    assert content(directory) == before


@pytest.mark.parametrize(
    ("recorded", "text"),
    [
        ("none", "the frame holds the session id: it was recorded without checksums"),
        ("crc-32", "the frame was recorded with the other checksum"),
    ],
)
def test_readers_report_why_no_checksum_matches(
    tmp_path: Path, recorded: ChecksumName, text: str
) -> None:
    directory = tmp_path / "a"
    made(directory, (recorded, 9))
    with pytest.raises(SegmentError, match=text):
        list(open_directory(directory).recording(0).messages(checksum="crc-32c"))
