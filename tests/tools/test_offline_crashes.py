"""Commands that write, cut short at each change to a file: nothing is lost, and they can go on.

They are killed there, or the power fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from built_archive import add_recording
from segment_builder import SegmentBuilder, crc32
from support.crash_points import crashes
from support.offline_directory import build, content
from support.old_directory import build_old, version
from support.power_cut import power_cuts

from aerotape.catalog.catalog import Catalog
from aerotape.catalog.directory import open_directory
from aerotape.catalog.time_index_file import Provenance, time_index_path, write_time_index
from aerotape.catalog.time_points import TimePoint
from aerotape.tools.main import main


class CutShort(Protocol):
    """Gives what a command leaves of copies of a directory, with None; at last its exit code."""

    def __call__(
        self, directory: Path, *arguments: str, step: int = 1
    ) -> Iterator[tuple[Path, int | None]]: ...


@pytest.fixture(params=["killed", "power cut"])
def cut_short(request: pytest.FixtureRequest, tmp_path: Path) -> CutShort:
    """A function that runs a command of `aerotape tool` on a directory, and cuts it short."""

    def killed(
        directory: Path, *arguments: str, step: int = 1
    ) -> Iterator[tuple[Path, int | None]]:
        return crashes(
            directory, tmp_path, lambda copy: main(["tool", str(copy), *arguments]), step=step
        )

    def power_cut(
        directory: Path, *arguments: str, step: int = 1
    ) -> Iterator[tuple[Path, int | None]]:
        return power_cuts(directory, tmp_path, arguments, step=step)

    return killed if request.param == "killed" else power_cut


def messages(directory: Path, recording_id: int) -> list[tuple[int, bytes]]:
    recording = open_directory(directory).recording(recording_id)
    return [(message.position, bytes(message.payload)) for message in recording.messages()]


def make_stream(stream_id: int, count: int = 30) -> SegmentBuilder:
    stream = SegmentBuilder(checksum=crc32, stream_id=stream_id, segment_length=65_536)
    for number in range(count):
        stream.message(number.to_bytes(4, "little") * 1200)
    return stream


def test_compact(tmp_path: Path, cut_short: CutShort) -> None:
    """Valid recordings are there throughout, and in the end what an undisturbed run leaves."""
    directory = build(tmp_path / "archive")
    expected = {each: messages(directory, each) for each in (0, 3)}
    end = None
    for copy, code in cut_short(directory, "compact", "--yes"):
        assert {each: messages(copy, each) for each in (0, 3)} == expected
        with Catalog.open(copy, read_only=True) as catalog:
            assert list(catalog.recording_ids()) == [0, 3, 4]
        assert main(["tool", str(copy), "compact", "--yes"]) == 0
        with Catalog.open(copy, read_only=True) as catalog:
            assert list(catalog.all_recording_ids()) == [0, 3, 4]
            assert catalog.next_recording_id == 5
        assert not list(copy.glob("1-*.rec")) + list(copy.glob("2-*.rec"))
        end = content(copy) if end is None else end
        assert content(copy) == end
        assert code in (None, 0)


def test_migrate(tmp_path: Path, cut_short: CutShort) -> None:
    """It goes on where it was, and leaves what an undisturbed run leaves."""
    directory = build_old(tmp_path / "archive", version(0, 0, 1))
    undisturbed = None
    copies = []
    for copy, code in cut_short(directory, "migrate", "--yes"):
        assert main(["tool", str(copy), "migrate", "--yes"]) == 0
        left = content(copy)
        copies.append(left)
        for recording_id in (0, 2):
            assert messages(copy, recording_id)
        if code is not None:
            assert code == 0
            undisturbed = left
    assert undisturbed is not None
    for left in copies:
        assert left == undisturbed
    assert len(copies) > 10


def damaged_archive(tmp_path: Path) -> tuple[Path, SegmentBuilder]:
    directory = tmp_path / "archive"
    directory.mkdir()
    stream = make_stream(1)
    for each in (make_stream(7, 3), stream):
        add_recording(directory, each)
    return directory, stream


def damage(directory: Path, position: int, length: int) -> None:
    base = position - position % 65_536
    with (directory / f"1-{base}.rec").open("r+b") as file:
        file.seek(position - base)
        file.write(b"\xee" * length)


@pytest.mark.parametrize(("options", "step"), [([], 1), (["--cut"], 5)], ids=str)
def test_repair_of_a_bad_middle_and_a_bad_end(
    tmp_path: Path, cut_short: CutShort, options: list[str], step: int
) -> None:
    """What is good before the damage is served, what is cut is a copy, and it can be ended."""
    directory, stream = damaged_archive(tmp_path)
    frames = sorted(stream.frames)
    middle, end = frames[20], frames[-30]
    damage(directory, middle, frames[22] - middle)
    damage(directory, end, stream.position - end)
    before = [(m.position, m.payload) for m in stream.messages if m.end_position <= middle]
    others = messages(directory, 0)
    served = None
    for copy, code in cut_short(directory, "repair", *options, step=step):
        assert messages(copy, 0) == others
        recording = open_directory(copy).recording(1)
        there = [(m.position, bytes(m.payload)) for m in recording.messages(0, before[-1][0] + 1)]
        assert there == before
        assert is_somewhere(copy, directory)
        # 0 where only the end of the work was missing.
        assert main(["tool", str(copy), "repair", *options]) in ((0, 3) if code is None else (0,))
        served = messages(copy, 1) if served is None else served
        assert messages(copy, 1) == served
        assert served[: len(before)] == before
        assert is_somewhere(copy, directory)
        assert open_directory(copy).recording(1).suspect_notes
    assert served is not None
    assert (len(served) > len(before)) == (not options)


def test_repair_where_the_last_file_is_gone(
    tmp_path: Path, cut_short: CutShort, capsys: pytest.CaptureFixture[str]
) -> None:
    """However far the empty file that takes its place has come, verify has nothing to hide."""
    directory, stream = damaged_archive(tmp_path)
    last = stream.segment_path(directory, stream.position - 1)
    last.unlink()
    end = stream.segment_base(stream.position - 1)
    expected = [(m.position, m.payload) for m in stream.messages if m.end_position <= end]
    assert expected
    for copy, _ in cut_short(directory, "repair"):
        if open_directory(copy).recording(1).descriptor.stop_position == end:
            assert (copy / last.name).read_bytes() == bytes(stream.segment_length)
        assert main(["tool", str(copy), "repair"]) in (0, 3)
        assert messages(copy, 1) == expected
        assert (copy / last.name).read_bytes() == bytes(stream.segment_length)
        capsys.readouterr()
        main(["tool", str(copy), "verify", "-a", "--dry-run", "--json"])
        assert [row["marked"] for row in json.loads(capsys.readouterr().out)] == [None, None]


def is_somewhere(copy: Path, directory: Path) -> bool:
    """Whether all that was in segment files still is, or is in quarantine."""
    return pieces(directory, "*.rec") <= (
        pieces(copy, "*.rec") | pieces(copy, "aerotape-quarantine/*/*")
    )


def pieces(directory: Path, pattern: str) -> set[bytes]:
    """Return the runs of 32 bytes, of which frames are made, without zeros behind."""
    return {
        data[offset : offset + 32].rstrip(b"\0")
        for data in (path.read_bytes() for path in directory.glob(pattern))
        for offset in range(0, len(data), 32)
    }


def test_import(tmp_path: Path, cut_short: CutShort) -> None:
    """There is the whole recording or none of it, and the others are untouched."""
    source = tmp_path / "source"
    source.mkdir()
    stream = make_stream(9)
    add_recording(source, stream)
    with Catalog.open(source, read_only=True) as catalog:
        provenance = Provenance.of(catalog.entry(0))
    points = [TimePoint(10**18, 0, 5), TimePoint(10**18 + 5, stream.position, 5)]
    write_time_index(time_index_path(source, 0), provenance, points)
    file = tmp_path / "file"
    assert main(["tool", str(source), "export", "0", str(file)]) == 0
    target = tmp_path / "archive"
    target.mkdir()
    add_recording(target, make_stream(1, 3))
    before = messages(target, 0)
    expected = messages(source, 0)
    seen = set()
    for copy, code in cut_short(target, "import", str(file)):
        directory = open_directory(copy)
        ids = [recording.recording_id for recording in directory.recordings()]
        seen.add(len(ids))
        assert messages(copy, 0) == before
        assert all(messages(copy, each) == expected for each in ids[1:])
        assert len(ids) == 2 if code is not None else len(ids) <= 2
        # What brings hidden recordings back does not present half of one.
        for command in (["repair"], ["repair", "1"], ["verify"], ["mark-valid", "1"]):
            main(["tool", str(copy), *command])
            again = [recording.recording_id for recording in directory.recordings()]
            assert again == ids, command
        assert all(messages(copy, each) == expected for each in ids[1:])
        assert all(directory.recording(each).time_index.points == points for each in ids[1:])
        assert main(["tool", str(copy), "import", str(file)]) == 0
        last = open_directory(copy).recordings()[-1].recording_id
        assert messages(copy, last) == expected
        assert not (copy / "aerotape-import").exists()
    assert seen == {1, 2}
