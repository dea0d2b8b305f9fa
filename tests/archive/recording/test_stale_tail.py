"""Frames after a stop position: quarantined before an extension or a migration replaces them."""

from __future__ import annotations

import functools
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder
from support.daemon.archives import EMBEDDED_DRIVER
from support.daemon.control_rig import await_true
from support.damage.overwriting import overwrite
from support.damage.small_disk import SmallDisk
from support.jvm.java import FAST_ARCHIVE
from support.power_cut.power_cut import Cut, build_shim, recorded, unnoticed

import aerotape
from aerotape.archive.recording.extension import clear_stale_tail
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery import stale_tail, suspect_marks
from aerotape.catalog.recovery.quarantine import NOTE_NAME
from aerotape.errors import ArchiveError
from aerotape.replay.offline.directory import open_directory
from aerotape.tools._cli.main import main

SEGMENT = 65_536
NOW_MS = 1_700_000_000_123
PAGE = 4096


class Lowered:
    """A recording of three segments, with the stop position within the second."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        self.path = directory
        self.stream = SegmentBuilder(segment_length=SEGMENT)
        while self.stream.position < 2.5 * SEGMENT:
            fill(self.stream, 10, seed=self.stream.position)
        add_recording(directory, self.stream)
        self.segments = {path.name: path.read_bytes() for path in directory.glob("*.rec")}
        self.stop = self.lower(1.5 * SEGMENT)
        self.frames_before = self.frames()

    def lower(self, position: float) -> int:
        stop = next(each for each in self.stream.frames if each >= position)
        with Catalog.open(self.path) as catalog:
            catalog.set_stop_position(0, stop)
        return stop

    def frames(self, directory: Path | None = None) -> set[int]:
        """Return the positions of all complete frames in a directory."""
        headers = {frame[:32]: position for position, frame in self.stream.frames.items()}
        found = set()
        for path in (directory or self.path).rglob("*.rec*"):
            # Copies end before the trailing zeros after the last byte that is not zero.
            data = path.read_bytes() + bytes(64)
            for at in range(0, len(data), 32):
                position = headers.get(data[at : at + 32])
                if position is not None and data.startswith(self.stream.frames[position], at):
                    found.add(position)
        return found

    def files(self) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in self.path.rglob("*") if p.is_file()}

    def is_as_it_was(self, directory: Path) -> bool:
        return {p.name: p.read_bytes() for p in directory.glob("*.rec")} == self.segments

    def is_cleared(self, directory: Path) -> bool:
        """Whether there is no stale data; the recorder restores the length of a truncated file."""
        names = sorted(path.name for path in directory.glob("*.rec*"))
        offset = self.stop - SEGMENT
        second = self.segments[f"0-{SEGMENT}.rec"][:offset].ljust(SEGMENT, b"\0")
        return (
            names == ["0-0.rec", f"0-{SEGMENT}.rec"]
            and (directory / f"0-{SEGMENT}.rec").read_bytes().ljust(SEGMENT, b"\0") == second
        )

    def check_left(self, directory: Path, is_over: bool) -> None:
        """Check the result of a clearing, and that another one completes it."""
        assert not is_over or self.is_cleared(directory)
        # No tool would find a copy without a mark.
        marked = {note.quarantine for note in suspect_marks.read_marks(directory).get(0, [])}
        for name in copies(directory).keys() - marked:
            (directory / name).unlink()
        assert all((directory / name).with_name(NOTE_NAME).is_file() for name in marked)
        assert self.frames(directory) == self.frames_before
        for path in directory.glob("*.del"):
            path.unlink()
        clear(directory)
        assert self.frames(directory) == self.frames_before
        assert self.is_cleared(directory)


@pytest.fixture
def lowered(tmp_path: Path) -> Lowered:
    return Lowered(tmp_path / "archive")


def clear(directory: Path) -> list[str]:
    descriptor = open_directory(directory).recording(0).descriptor
    return clear_stale_tail(directory, descriptor, NOW_MS)


def copies(directory: Path) -> dict[str, bytes]:
    """Return the quarantined files by their path in the directory."""
    found = directory.glob("aerotape-quarantine/*/*.rec*")
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in found}


def test_data_after_the_stop_position_is_quarantined(lowered: Lowered) -> None:
    """Stale data is copied with position and time in the file names, and a mark names the
    copies."""
    retained = clear(lowered.path)
    offset = lowered.stop - SEGMENT
    tail = lowered.segments[f"0-{SEGMENT}.rec"][offset:].rstrip(b"\0")
    end, last = offset + len(tail), f"0-{2 * SEGMENT}.rec"
    expected = {
        f"aerotape-quarantine/0-{NOW_MS}/0-{SEGMENT}.rec.{offset}-{end}": tail,
        f"aerotape-quarantine/0-{NOW_MS}-1/{last}": lowered.segments[last],
    }
    assert copies(lowered.path) == expected
    assert lowered.is_cleared(lowered.path)
    notes = suspect_marks.read_marks(lowered.path)[0]
    assert {note.quarantine for note in notes} == expected.keys()
    assert sorted(note.detail for note in notes) == sorted(retained)
    assert all(any(name in each for each in retained) for name in expected)


def refuse(*_: object) -> int:
    raise AssertionError("it was read")


def test_a_stop_position_at_a_segment_boundary(
    lowered: Lowered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that begins at the stop position is stale as a whole."""
    monkeypatch.setattr(stale_tail, "find_data_end", refuse)
    with Catalog.open(lowered.path) as catalog:
        catalog.set_stop_position(0, SEGMENT)
    assert len(clear(lowered.path)) == 2
    assert sorted(copies(lowered.path).values()) == sorted(
        [lowered.segments[f"0-{SEGMENT}.rec"], lowered.segments[f"0-{2 * SEGMENT}.rec"]]
    )
    assert [path.name for path in lowered.path.glob("*.rec*")] == ["0-0.rec"]


def test_without_stale_data_nothing_is_read(
    lowered: Lowered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the block with the stop position is read, whatever the segment length."""
    with Catalog.open(lowered.path) as catalog:
        catalog.set_stop_position(0, lowered.stream.position)
    last = lowered.path / f"0-{2 * SEGMENT}.rec"
    with last.open("r+b") as file:
        file.truncate(lowered.stream.position - 2 * SEGMENT)
        file.truncate(SEGMENT)
    monkeypatch.setattr(stale_tail, "find_data_end", refuse)
    before = {path.name: path.read_bytes() for path in lowered.path.iterdir()}
    assert clear(lowered.path) == []
    assert {path.name: path.read_bytes() for path in lowered.path.iterdir()} == before


def test_zeros_after_the_stop_position_are_not_quarantined(lowered: Lowered) -> None:
    """Zeros are ignored even where they are allocated, as in a copy without holes."""
    offset = lowered.stop - SEGMENT
    cut = lowered.segments[f"0-{SEGMENT}.rec"][:offset].ljust(SEGMENT, b"\0")
    (lowered.path / f"0-{SEGMENT}.rec").write_bytes(cut)
    (lowered.path / f"0-{2 * SEGMENT}.rec").write_bytes(bytes(SEGMENT))
    assert clear(lowered.path) == []
    assert lowered.is_cleared(lowered.path)
    assert copies(lowered.path) == {} and not suspect_marks.read_marks(lowered.path)


CLEAR = """
import sys
from pathlib import Path
from aerotape.archive.recording.extension import clear_stale_tail
from aerotape.replay.offline.directory import open_directory
from support.power_cut.places import say_places

say_places()
directory = Path(sys.argv[1])
clear_stale_tail(directory, open_directory(directory).recording(0).descriptor, 1)
"""


# Omitted together: at the end, the directory is forced for all deleted files.
TOGETHER = ("quarantine.py move_segment|extension.py clear_stale_tail",)
AT_THE_END = [*TOGETHER, "quarantine.py erase_tail < quarantine.py Quarantine.remove"]
# Names of folders and copies: the directories are forced for the note and the mark, before
# anything is deleted.
NAMES = [
    "quarantine.py copy_tail < quarantine.py Quarantine.remove",
    "quarantine.py make_folder < quarantine.py Quarantine.folder",
]
# The fsync of the copy's directory happens at the end; the old name still refers to the shared
# file.
OWN = "hard_links.py break_hard_link < quarantine.py erase_tail"


@pytest.mark.crash
@pytest.mark.parametrize(
    ("is_shared", "covered"),
    [(False, NAMES), (True, [OWN, *NAMES])],
    ids=["own files", "hard links"],
)
def test_a_power_cut_at_any_step_loses_nothing(
    tmp_path: Path, is_shared: bool, covered: list[str]
) -> None:
    """The copy is durable before the first byte is removed, and at the end no stale data remains.

    Each fsync is needed: without one of them, the same test fails.
    """
    root, left = tmp_path / "root", tmp_path / "left"
    root.mkdir()
    lowered = Lowered(root / "archive")
    if is_shared:
        root.joinpath("backup").mkdir()
        for name in lowered.segments:
            root.joinpath("backup", name).hardlink_to(lowered.path / name)
    command = [sys.executable, "-c", CLEAR, str(lowered.path)]
    run = recorded(build_shim(tmp_path), root, tmp_path / "log", command, 60)
    run.check_complete()
    assert lowered.is_cleared(lowered.path)

    def check(cuts: list[Cut]) -> None:
        for cut in cuts:
            cut.write(left)
            try:
                assert not is_shared or lowered.is_as_it_was(left / "backup"), str(cut)
                lowered.check_left(left / "archive", is_over=cut.place == len(run.changes))
            finally:
                shutil.rmtree(left)

    cuts = list(run.power_cuts(1, 1))
    assert len(cuts) > 10
    check(cuts)
    at_the_end, unneeded = unnoticed(run, check, TOGETHER)
    assert sorted(at_the_end) == sorted(AT_THE_END)
    assert sorted(unneeded) == covered


# ---- with an archive -----------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Directories for an archive and a driver."""
    with tempfile.TemporaryDirectory(prefix="aerotape-kept-", dir="/dev/shm") as parent:
        yield Path(parent, "archive"), Path(parent, "aeron")


PROPERTIES = {
    **EMBEDDED_DRIVER,
    **FAST_ARCHIVE,
    "aeron.archive.control.channel.enabled": "false",
    "aeron.archive.low.storage.space.threshold": "1m",
}


def connected(archive: aerotape.Archive, aeron_dir: Path) -> Any:
    return aerotape.connect(
        aeron_dir=aeron_dir,
        control_request_channel="aeron:ipc",
        control_response_channel="aeron:ipc",
    )


def extend(client: aerotape.ArchiveClient, payloads: list[bytes]) -> None:
    descriptor = client.list_recording(0)
    assert descriptor is not None
    channel = aerotape.extension_channel(descriptor, "aeron:ipc")
    stream_id = descriptor.stream_id
    subscription_id = client.extend_recording(0, channel, stream_id)
    with client.aeron.add_exclusive_publication(channel, stream_id) as publication:
        failed = functools.partial(raise_first, client)
        for payload in payloads:
            publication.send(payload)
        await_true(lambda: failed() or client.recording_position(0) == publication.position)
    client.stop_recording_subscription(subscription_id)


def raise_first(client: aerotape.ArchiveClient) -> bool:
    for error in client.poll_for_errors():
        raise error
    return False


def test_frames_after_a_lost_page_survive_verify_and_an_extension(
    places: tuple[Path, Path],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Verify ends the recording before the page, and the extension is recorded there."""
    archive_dir, aeron_dir = places
    lowered = Lowered(archive_dir)
    lowered.lower(lowered.stream.messages[-1].position)
    last = archive_dir / f"0-{2 * SEGMENT}.rec"
    overwrite(last, 3 * PAGE, bytes(PAGE))
    every = lowered.frames()
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    main(["tool", str(archive_dir), "verify"])
    stop = open_directory(archive_dir).recording(0).descriptor.stop_position
    assert 2 * SEGMENT < stop < 2 * SEGMENT + 4 * PAGE
    assert any(position > stop for position in every)
    with (
        aerotape.Archive.launch(archive_dir, aeron_dir, properties=PROPERTIES) as archive,
        connected(archive, aeron_dir) as client,
    ):
        extend(client, [b"new" * 300] * 30)
        # The recorder stops asynchronously.
        await_true(lambda: client.stop_position(0) > stop)
    assert lowered.frames() == every
    messages = [bytes(each.payload) for each in open_directory(archive_dir).recording(0).messages()]
    before = [each.payload for each in lowered.stream.messages if each.end_position <= stop]
    assert messages == before + [b"new" * 300] * 30
    [copy] = copies(archive_dir)
    assert any(
        record.levelname == "WARNING"
        and "recording 0 is extended" in record.getMessage()
        and copy in record.getMessage()
        for record in caplog.records
    )


@pytest.mark.parametrize("pages", [4, 8])
def test_an_archive_on_a_full_disk_refuses_to_extend(
    disk: SmallDisk, aeron_dir: Path, pages: int
) -> None:
    """The client receives the code for space, and all frames are unchanged.

    This holds whether the copy or the mark does not fit.
    """
    lowered = Lowered(disk.path / "archive")
    files = dict(lowered.segments)
    properties = {**PROPERTIES, "aeron.archive.low.storage.space.threshold": "1"}
    with (
        aerotape.Archive.launch(lowered.path, aeron_dir, properties=properties) as archive,
        connected(archive, aeron_dir) as client,
    ):
        disk.fill(leave_bytes=pages * PAGE)
        with pytest.raises(ArchiveError, match="free space"):
            extend(client, [b"new"])
        assert {path.name: path.read_bytes() for path in lowered.path.glob("*.rec")} == files
        assert not copies(lowered.path)
