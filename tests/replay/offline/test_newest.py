"""The newest messages, found from the end backwards, are those that all messages end with."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_entry, add_recording, fill
from support.builders.segment_builder import BEGIN, END, HEADER, SegmentBuilder

from aerotape.catalog.directory import StoredRecording
from aerotape.catalog.file.catalog import Catalog
from aerotape.errors import SegmentError
from aerotape.replay.offline import newest
from aerotape.replay.offline.directory import Recording, open_directory


@pytest.fixture
def archive_dir(tmp_path: Path) -> Path:
    path = tmp_path / "archive"
    path.mkdir()
    return path


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows that begin in the middle of what the tests write."""
    monkeypatch.setattr(newest, "_FIRST_WINDOW", 4096)
    monkeypatch.setattr(newest, "_GROWTH", 2)
    monkeypatch.setattr(newest, "_MAX_WINDOW", 32_768)


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that has an item for each term that is scanned instead."""
    calls: list[int] = []
    real = newest._from_scan

    def scan(part: Any, count: int) -> tuple[list[int], bool]:
        calls.append(part.from_position)
        return real(part, count)

    monkeypatch.setattr(newest, "_from_scan", scan)
    return calls


def positions(recording: Recording, **options: Any) -> list[int]:
    return [message.position for message in recording.messages(**options)]


def check(recording: Recording, **options: Any) -> None:
    """Compare the newest messages with the end of all, for numbers up to more than there are."""
    every = positions(recording, **options)
    for count in {0, 1, 2, 3, 7, 50, len(every) - 1, len(every), len(every) + 1}:
        if count >= 0:
            wanted = every[-count:] if count else []
            assert positions(recording, last=count, **options) == wanted, count


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("seed", range(5))
def test_random_recordings(archive_dir: Path, seed: int) -> None:
    """Of any lengths, fragmented, with padding, with an unfinished message at the end, with a start
    in the middle of a term; of a range of positions, too."""
    rng = random.Random(seed)
    builder = fill(SegmentBuilder(start_position=rng.choice([0, 96, 4096])), 150, seed)
    if seed % 2:
        builder.frame(b"begun", flags=BEGIN)
    add_recording(archive_dir, builder)
    recording = open_directory(archive_dir).recording(0)
    check(recording)
    check(recording, from_position=rng.randrange(builder.position))
    check(recording, to_position=rng.randrange(builder.position))
    assert recording.to_arrow(last=3).num_rows == 3


def imitation(builder: SegmentBuilder, length: int, first: int) -> bytes:
    """Return a payload in which each place has the header of a frame that leads to the next one.

    The last one leads to the end of the frame that has the payload.
    """
    payload = bytearray(length)
    at = builder.position + 32
    for offset in range(first, length - 31, 32):
        place = at + offset
        header = (32, 0, BEGIN | END, 1, place % builder.term_length, 5, builder.stream_id,
                  builder.term_id(place), 0)  # fmt: skip
        payload[offset : offset + 32] = HEADER.pack(*header)
    return bytes(payload)


@pytest.mark.usefixtures("small_windows")
def test_payloads_that_imitate_frames(archive_dir: Path, scanned: list[int]) -> None:
    """They are never taken for messages; the term is scanned from its start if need be."""
    builder = SegmentBuilder()
    for number in range(100):
        builder.message(bytes(300))
        builder.message(imitation(builder, 1344, 32 * (number % 3)))
    add_recording(archive_dir, builder)
    check(open_directory(archive_dir).recording(0))
    assert scanned


@pytest.mark.usefixtures("small_windows")
def test_an_imitation_where_a_window_begins_is_left_out(
    archive_dir: Path, scanned: list[int]
) -> None:
    """The window begins in the payload, whose frames join the others at its end."""
    builder = fill(SegmentBuilder(), 10)
    builder.message(imitation(builder, 1344, 0))
    while builder.position - builder.messages[-1].end_position < 1:
        if builder.position > builder.messages[10].end_position + 3200:
            break
        builder.message(bytes(100))
    add_recording(archive_dir, builder)
    recording = open_directory(archive_dir).recording(0)
    assert positions(recording, last=8) == positions(recording)[-8:]
    assert not scanned
    check(recording)


def damage(builder: SegmentBuilder, archive_dir: Path, number: int) -> Recording:
    """Destroy the header of a message; return the recording."""
    add_recording(archive_dir, builder)
    at = builder.messages[number].position
    path = builder.segment_path(archive_dir, at)
    data = bytearray(path.read_bytes())
    data[at % builder.segment_length : at % builder.segment_length + 4] = b"\xff\xff\xff\x7f"
    path.write_bytes(data)
    return open_directory(archive_dir).recording(0)


def until_damage(recording: Recording, **options: Any) -> list[int]:
    """The positions of the messages that are returned before damage is reported."""
    found = []
    with pytest.raises(SegmentError):
        for message in recording.messages(**options):
            found.append(message.position)
    return found


@pytest.mark.parametrize("count", [100, 1000])
def test_damage_among_the_newest(archive_dir: Path, count: int) -> None:
    """Messages after it are returned if they are enough. Else those before it, as many as there
    would be with those after it, and then it is reported: in a term that is read as a whole, too.
    """
    builder = SegmentBuilder()
    for number in range(count):
        builder.message(bytes(number % 200))
    every = [each.position for each in builder.messages]
    recording = damage(builder, archive_dir, count - 10)
    for last in (1, 8, 9):
        assert positions(recording, last=last) == every[-last:]
        assert recording.to_arrow(last=last).num_rows == last
    assert until_damage(recording, last=10) == every[-11:-10]
    assert until_damage(recording, last=50) == every[-51:-10]
    assert until_damage(recording, last=2 * count) == every[:-10]
    assert until_damage(recording, last=5, to_position=every[-3]) == every[-15:-10]


@pytest.mark.usefixtures("small_windows")
def test_damage_before_the_newest(archive_dir: Path) -> None:
    """If it is not within the windows that are read, it is not noticed."""
    builder = fill(SegmentBuilder(), 100)
    recording = damage(builder, archive_dir, 80)
    every = [each.position for each in builder.messages]
    assert positions(recording, last=3) == every[-3:]
    assert until_damage(recording, last=50)[-1] == every[79]


def test_the_last_file_is_missing(archive_dir: Path) -> None:
    """The newest messages of the files before it are returned, and then it is reported."""
    builder = fill(SegmentBuilder(), 100)
    add_recording(archive_dir, builder)
    last = builder.segment_path(archive_dir, builder.messages[-1].position)
    last.unlink()
    before = builder.segment_base(builder.messages[-1].position)
    every = [each.position for each in builder.messages if each.position < before]
    assert until_damage(open_directory(archive_dir).recording(0), last=5) == every[-5:]


def test_of_100_gigabytes_less_than_a_megabyte_is_read(
    archive_dir: Path, scanned: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the end of the last file; the others are holes."""
    segment_length, term_length = 1 << 30, 1 << 26
    end = 100 * segment_length - 5 * term_length - 1_000_000 // 32 * 32
    builder = SegmentBuilder(
        start_position=end, term_length=term_length, segment_length=segment_length
    )
    fill(builder, 200)
    builder.start_position = 0
    with Catalog.open(archive_dir, create=True) as catalog:
        add_entry(catalog, builder)
        catalog.recording_stopped(0, builder.position, 2)
    for base in range(0, builder.position, segment_length):
        with (archive_dir / f"0-{base}.rec").open("wb") as file:
            os.truncate(file.fileno(), segment_length)
            if base + segment_length > end:
                for at, frame in builder.frames.items():
                    file.seek(at - base)
                    file.write(frame)
    assert sum(path.stat().st_size for path in archive_dir.glob("*.rec")) == 100 << 30
    lengths: list[int] = []
    read = StoredRecording.read_segment

    def counting(self: StoredRecording, base: int, offset: int, length: int) -> bytes:
        lengths.append(length)
        return read(self, base, offset, length)

    monkeypatch.setattr(StoredRecording, "read_segment", counting)
    recording = open_directory(archive_dir).recording(0)
    list(recording.messages(last=1))
    lengths.clear()
    before, begun = bytes_read(), time.perf_counter()
    found = [message.payload for message in recording.messages(last=50)]
    elapsed, counted = time.perf_counter() - begun, bytes_read() - before
    assert found == [message.payload for message in builder.messages[-50:]]
    assert not scanned
    assert sum(lengths) <= counted < 1 << 20, (counted, lengths)
    # Measured 4 ms; the limit is for machines that do other things.
    assert elapsed < 1, elapsed


def bytes_read() -> int:
    """Return the bytes that this process has read from files."""
    return int(Path("/proc/self/io").read_text().split()[1])
