"""`verify` and `repair` after a power cut, before the start of an archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_entry
from support.builders.offline_directory import content
from support.builders.segment_builder import SegmentBuilder, crc32
from support.daemon.command_line import tool
from support.damage.holes import PAGE_LENGTH, punch

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery.refresh import Outcome, refresh
from aerotape.replay.offline.directory import open_directory

LENGTH = 12_000


class Cut:
    """A recording without a stop position, of frames that contain a whole page."""

    def __init__(self, directory: Path, *, stop_position: int = -1) -> None:
        self.path = directory
        self.stream = SegmentBuilder(mtu_length=4 * PAGE_LENGTH, checksum=crc32)
        for number in range(10):
            self.stream.message(bytes([number + 1]) * LENGTH)
        self.stream.write(directory)
        self.segment = directory / "0-0.rec"
        with Catalog.open(directory, create=True) as catalog:
            add_entry(catalog, self.stream, stop_position=stop_position)

    def frames_with_a_page(self) -> list[int]:
        """Return the numbers of the messages that contain a whole page."""
        return [
            number
            for number, each in enumerate(self.stream.messages)
            if self._page(each.position) + PAGE_LENGTH <= each.position + LENGTH
        ]

    def _page(self, position: int) -> int:
        return (position // PAGE_LENGTH + 1) * PAGE_LENGTH

    def lose(self, number: int) -> int:
        """Replace a page of a message by a hole; return the position of the message."""
        position = self.stream.messages[number].position
        punch(self.segment, self._page(position))
        return position

    def run(self, *arguments: str) -> tuple[int, Any]:
        done = tool(self.path, *arguments, "--json", expect=None)
        [row] = done.json
        return done.code, row

    def served(self) -> list[int]:
        """Return the numbers of all messages of the recording, which are their first bytes."""
        recording = open_directory(self.path).recording(0)
        return [message.payload[0] - 1 for message in recording.messages()]


@pytest.fixture
def cut(tmp_path: Path) -> Cut:
    return Cut(tmp_path)


def end_with(cut: Cut, count: int) -> list[int]:
    """Truncate the recording after `count` frames that can lose a page; return their numbers."""
    able = cut.frames_with_a_page()
    last = next(
        number for number in reversed(able) if {number - each for each in range(count)} <= set(able)
    )
    with cut.segment.open("r+b") as file:
        file.truncate(cut.stream.messages[last].end_position)
        file.truncate(cut.stream.segment_length)
    return list(range(last - count + 1, last + 1))


def test_verify_reports_last_frames_in_holes_and_sets_no_stop_position(cut: Cut) -> None:
    """Holes in front of a stop position that verify sets would not be detected again."""
    first, _ = end_with(cut, 2)
    position = cut.lose(first)
    cut.lose(first + 1)
    before = content(cut.path)
    code, row = cut.run("verify", "-a", "--yes")
    assert (code, row["stop_position"], row["marked"]) == (3, position, None)
    assert "there are holes in its last frames" in row["problems"][0]["detail"]
    assert content(cut.path) == before
    with Catalog.open(cut.path) as catalog:
        [outcome] = refresh(catalog, cut.path, now_ms=1)
    assert (outcome.stop_position, outcome.outcome) == (position, Outcome.SUSPECT_TORN_TAIL)
    assert cut.served() == list(range(first))


def test_verify_reports_frames_in_holes_followed_by_good_ones(cut: Cut) -> None:
    position = cut.lose(cut.frames_with_a_page()[2])
    before = content(cut.path)
    code, row = cut.run("verify", "-a")
    assert (code, row["marked"]) == (3, None)
    assert (
        f"1 frames are partly in holes of the file, at positions {position}:"
        in (row["problems"][0]["detail"])
    )
    assert content(cut.path) == before


def test_repair_removes_frames_that_were_never_written(cut: Cut) -> None:
    """At the end as a start does, by padding in the middle; a copy is retained."""
    [last] = end_with(cut, 1)
    middle = cut.frames_with_a_page()[2]
    end, filled = cut.lose(last), cut.lose(middle)
    code, row = cut.run("repair")
    assert (code, row["stop_position"]) == (3, end)
    assert row["filled"] == [
        {"position": filled, "length": cut.stream.messages[middle].end_position - filled}
    ]
    assert cut.served() == [number for number in range(last) if number != middle]
    kept = b"".join(
        path.read_bytes() for path in sorted((cut.path / "aerotape-quarantine").glob("*/0-0.*"))
    )
    for number in (middle, last):
        frame = cut.stream.frames[cut.stream.messages[number].position]
        assert frame[:100] in kept
    assert cut.run("repair")[0] == 0


@pytest.mark.parametrize("checksum", [True, False])
def test_holes_are_ignored_with_a_checksum_or_a_stop_position(
    tmp_path: Path, checksum: bool
) -> None:
    """Frames with a valid checksum, or up to a stop position set at the end, are complete."""
    cut = Cut(tmp_path)
    zeros = SegmentBuilder(mtu_length=4 * PAGE_LENGTH, checksum=crc32)
    for _ in range(5):
        zeros.message(bytes(LENGTH))
    zeros.write(cut.path)
    punch(cut.segment, zeros.segment_length - 1)
    with Catalog.open(cut.path) as catalog:
        if not checksum:
            catalog.recording_stopped(0, zeros.position, 1)
        else:
            for entry in list(catalog.entries()):
                catalog.update_checksum(entry)
    options = ["-checksum", "crc-32"] if checksum else []
    code, row = cut.run("repair", *options)
    assert (code, row["stop_position"], row["damages"]) == (0, zeros.position, [])
    assert len(cut.served()) == 5
