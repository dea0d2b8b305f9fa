"""Commands that write, and a power cut at each change to a file: no data is lost, a rerun works.

Among the states after a power cut is that after a kill, in which all changes are visible.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from support.builders.built_archive import add_recording
from support.builders.offline_directory import build, content
from support.builders.old_directory import build_old, version
from support.builders.segment_builder import SegmentBuilder, crc32
from support.power_cut.power_cut import Cut, Run, directories_after, recorded_command, unnoticed

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.maintenance.export_import import IMPORT_FOLDER_NAME
from aerotape.catalog.recovery.quarantine import NOTE_NAME, folders_of
from aerotape.catalog.time_index.file import Provenance, time_index_path, write_time_index
from aerotape.catalog.time_index.points import TimePoint
from aerotape.replay.offline.directory import open_directory
from aerotape.tools._cli.main import main

pytestmark = pytest.mark.crash


class CutShort(Protocol):
    """Yields copies of a directory after an interrupted command, with None; finally its exit
    code."""

    def __call__(
        self, directory: Path, *arguments: str, step: int = 1
    ) -> Iterator[tuple[Path, int | None]]: ...


MIN_CUTS = 5
SEGMENT_LENGTH = 65_536


@pytest.fixture
def cut_short(tmp_path: Path) -> CutShort:
    """A function that runs a command of `aerotape tool` on a directory, and interrupts it."""

    def cut(directory: Path, *arguments: str, step: int = 1) -> Iterator[tuple[Path, int | None]]:
        run = recorded_command(directory, tmp_path, ["tool", "DIR", *arguments])
        count = 0
        for left in with_code(run, directory, tmp_path, list(run.power_cuts(1, 1, step))):
            count += 1
            yield left
        assert count > MIN_CUTS

    return cut


def with_code(
    run: Run, directory: Path, scratch: Path, cuts: Sequence[Cut]
) -> Iterator[tuple[Path, int | None]]:
    """Yield the copies; power cuts after the end of the command must have all its changes."""
    done = tree(run.root / directory.name)
    for number, left in enumerate(directories_after(run, directory.name, scratch, cuts)):
        is_over = number == len(cuts) or cuts[number].place == len(run.changes)
        if is_over:
            assert tree(left) == done
        yield left, run.code if is_over else None


def tree(directory: Path) -> dict[str, bytes]:
    """Return the bytes of each file in a directory and its subdirectories."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.parent.name != IMPORT_FOLDER_NAME
    }


def messages(directory: Path, recording_id: int) -> list[tuple[int, bytes]]:
    recording = open_directory(directory).recording(recording_id)
    return [(message.position, bytes(message.payload)) for message in recording.messages()]


def make_stream(stream_id: int, count: int = 30) -> SegmentBuilder:
    stream = SegmentBuilder(checksum=crc32, stream_id=stream_id, segment_length=SEGMENT_LENGTH)
    for number in range(count):
        stream.message(number.to_bytes(4, "little") * 1200)
    return stream


def test_compact(tmp_path: Path, cut_short: CutShort) -> None:
    """Valid recordings always exist, and the final state is that of an undisturbed run."""
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


def test_migrate(tmp_path: Path, cut_short: CutShort, capsys: pytest.CaptureFixture[str]) -> None:
    """A rerun completes, or is refused and changes nothing if it was interrupted within a step."""
    assert migrations_refused(tmp_path, cut_short, capsys) > 0


def migrations_refused(
    tmp_path: Path, cut_short: CutShort, capsys: pytest.CaptureFixture[str]
) -> int:
    """Check each interrupted migration; return how many must be restored from a copy."""
    directory = build_old(tmp_path / "archive", version(0, 0, 1))
    undisturbed = None
    completed = []
    refused = 0
    for copy, code in cut_short(directory, "migrate", "--yes"):
        before = content(copy)
        capsys.readouterr()
        if main(["tool", str(copy), "migrate", "--yes"]) == 0:
            completed.append(content(copy))
            for recording_id in (0, 2):
                assert messages(copy, recording_id)
        else:
            error = capsys.readouterr().err
            assert "was interrupted" in error
            assert "restore the directory from a copy" in error
            assert content(copy) == before
            assert any(path.name in error for path in copy.glob("migration-*.dat"))
            refused += 1
        if code is not None:
            assert code == 0
            undisturbed = content(copy)
    assert undisturbed is not None
    for left in completed:
        assert left == undisturbed
    return refused


def damaged_archive(tmp_path: Path) -> tuple[Path, SegmentBuilder]:
    directory = tmp_path / "archive"
    directory.mkdir()
    stream = make_stream(1)
    for each in (make_stream(7, 3), stream):
        add_recording(directory, each)
    return directory, stream


def damage(directory: Path, position: int, length: int) -> None:
    """Overwrite part of recording 1; with different bytes everywhere."""
    noise = random.Random(position).randbytes(length)
    for at in range(position - position % SEGMENT_LENGTH, position + length, SEGMENT_LENGTH):
        begin, end = max(at, position), min(at + SEGMENT_LENGTH, position + length)
        with (directory / f"1-{at}.rec").open("r+b") as file:
            os.pwrite(file.fileno(), noise[begin - position : end - position], begin - at)


@pytest.mark.parametrize(("options", "step"), [([], 1), (["--cut"], 5)], ids=str)
def test_repair_of_a_bad_middle_and_a_bad_end(
    tmp_path: Path, cut_short: CutShort, options: list[str], step: int
) -> None:
    """Messages preceding the damage are served, removed data is copied, and a rerun completes."""
    directory, stream = damaged_archive(tmp_path)
    frames = sorted(stream.frames)
    middle, end = frames[20], frames[-5]
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
        check_kept(copy, directory)
        # 0 where only the end of the work was missing.
        assert main(["tool", str(copy), "repair", *options]) in ((0, 3) if code is None else (0,))
        served = messages(copy, 1) if served is None else served
        assert messages(copy, 1) == served
        assert served[: len(before)] == before
        check_kept(copy, directory)
        assert open_directory(copy).recording(1).suspect_notes
    assert served is not None
    assert (len(served) > len(before)) == (not options)


def test_repair_with_a_missing_last_file(
    tmp_path: Path, cut_short: CutShort, capsys: pytest.CaptureFixture[str]
) -> None:
    """However far the empty replacement file was written, verify has nothing to hide."""
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


def check_kept(copy: Path, directory: Path) -> None:
    """Check that all data of recording 1 can be restored, and that a mark has the position."""
    before, now = segments(directory), segments(copy)
    notes = open_directory(copy).recording(1).suspect_notes
    assert notes or now == before
    for note in notes:
        assert (copy / note.quarantine / NOTE_NAME).is_file()
    # The data that was removed first is the original data.
    for folder in reversed(folders_of(copy, 1)):
        if (folder / NOTE_NAME).exists():
            put_back(folder, now)
    assert now == before


def put_back(folder: Path, files: dict[str, bytes]) -> None:
    note = json.loads((folder / NOTE_NAME).read_text())
    for name in note["segment_files"]:
        if (folder / name).exists():
            files[name] = (folder / name).read_bytes()
    for part in note["copies"]:
        data = (folder / part["copy"]).read_bytes()
        begin, end = part["offset"], part["offset"] + part["length"]
        assert len(data) == part["length"]
        whole = files[part["segment_file"]]
        files[part["segment_file"]] = whole[:begin] + data + whole[end:]


def segments(directory: Path) -> dict[str, bytes]:
    """Return the content of the files of recording 1; a truncated one is filled with zeros."""
    return {
        path.name: path.read_bytes().ljust(SEGMENT_LENGTH, b"\0")
        for path in directory.glob("1-*.rec")
    }


def test_import(tmp_path: Path, cut_short: CutShort) -> None:
    """The recording is imported completely or not, and the others are unchanged."""
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
        # Commands that restore hidden recordings do not restore a part of one.
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


SCENARIOS: dict[str, Callable[[Path, CutShort, pytest.CaptureFixture[str]], object]] = {
    "compact": lambda path, cut_short, _: test_compact(path, cut_short),
    "migrate": migrations_refused,
    "repair": lambda path, cut_short, _: test_repair_of_a_bad_middle_and_a_bad_end(
        path, cut_short, [], 1
    ),
    "repair --cut": lambda path, cut_short, _: test_repair_of_a_bad_middle_and_a_bad_end(
        path, cut_short, ["--cut"], 1
    ),
    "repair of what is gone": test_repair_with_a_missing_last_file,
    "import": lambda path, cut_short, _: test_import(path, cut_short),
}
# Omitted together, because either is sufficient.
TOGETHER = (
    "mapped_file.py CatalogFile.close",
    "quarantine.py move_segment",
)
# Data that needs to be on storage only when the command reports success.
AT_THE_END = {
    "compact": ["catalog.py Catalog.compact < compaction.py compact"],
    "migrate": ["migrate_version.py _store_version < migrate_version.py migrate"],
    "repair": [
        "mapped_file.py CatalogFile.close",
        "quarantine.py erase_tail < quarantine.py Quarantine.remove",
        "repair.py _fill < repair.py _fill_damages",
    ],
    "repair --cut": [
        "mapped_file.py CatalogFile.close",
        "quarantine.py erase_tail < quarantine.py Quarantine.remove",
        "quarantine.py move_segment",
    ],
    "repair of what is gone": [
        "mapped_file.py CatalogFile.close",
        "segment_files.py make_blank_segment < trailing_segment.py make_if_lacking",
    ],
    "import": ["mapped_file.py CatalogFile.close"],
}
OTHERS_COVER = {
    # The catalog was not changed after it was rewritten.
    "compact": ["mapped_file.py CatalogFile.close"],
    # The names of the quarantine, and of the copies in it: the same directories are forced for the
    # mark and the note, before any data is removed.
    "repair": [
        "quarantine.py copy_tail < quarantine.py Quarantine.remove",
        "quarantine.py make_folder < quarantine.py Quarantine.folder",
    ],
    # For the mark the same directory is forced; later, files next to it are moved.
    "repair --cut": [
        "quarantine.py copy_tail < quarantine.py Quarantine.remove",
        "quarantine.py make_folder < quarantine.py Quarantine.folder",
    ],
    # Names of new files, and of the new catalog: changes to a directory are ordered, and the files
    # are moved into the archive's directory later, by an atomic rename.
    "import": [
        "catalog.py Catalog.insert_recording < export_import.py enter",
        "export_import.py _write < export_import.py import_recording",
    ],
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_missing_force_to_storage_is_detected(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of the previous tests fails if any one place does not force its data to storage."""
    runs: list[Run] = []

    def check(cuts: list[Cut]) -> None:
        scratch = tmp_path / str(len(list(tmp_path.iterdir())))
        scratch.mkdir()

        def cut_short(
            directory: Path, *arguments: str, step: int = 1
        ) -> Iterator[tuple[Path, int | None]]:
            if not runs:
                runs.append(recorded_command(directory, scratch, ["tool", "DIR", *arguments]))
            return with_code(runs[0], directory, scratch, cuts or [next(runs[0].power_cuts(1, 1))])

        SCENARIOS[name](scratch, cut_short, capsys)

    check([])
    at_the_end, never = unnoticed(runs[0], check, TOGETHER)
    assert sorted(at_the_end) == AT_THE_END[name]
    assert sorted(never) == OTHERS_COVER.get(name, [])
