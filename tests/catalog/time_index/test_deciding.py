"""The points that decide where a range of times begins and ends."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.builders import built_archive
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog.time_index import file as files
from aerotape.catalog.time_index.deciding import Deciding
from aerotape.catalog.time_index.file import Provenance, time_index_path, write_time_index
from aerotape.catalog.time_index.index import TimeIndex
from aerotape.catalog.time_index.points import TimePoint, TimePoints
from aerotape.replay.offline.directory import open_directory
from aerotape.times import TimeRange


@pytest.mark.parametrize("seed", range(300))
def test_they_decide_as_all_points_do(seed: int) -> None:
    """Also where the clock was put back, and however the points are parted."""
    rng = random.Random(seed)
    time_ns, position, points = 1_000, 0, []
    for _ in range(rng.randrange(12)):
        time_ns += rng.choice([-40, -7, 0, 1, 5, 30])
        position += rng.choice([0, 32, 64])
        points.append(TimePoint(time_ns, position))
    whole = TimeIndex(points, 0, 1_000)
    for _ in range(20):
        begin, end = sorted(rng.randrange(880, 1_300) for _ in range(2))
        times = TimeRange(rng.choice([None, begin]), rng.choice([None, end + 1]))
        deciding, left = Deciding(times), points
        while left:
            count = rng.randrange(1, 5)
            deciding.append(TimePoints.of(left[:count]))
            left = left[count:]
        found = deciding.points()
        assert len(found) <= 8
        assert TimeIndex(found, 0, 1_000).positions(times) == whole.positions(times)
        extremes = [(min(p.time_ns for p in each), max(p.time_ns for p in each), each[0], each[-1])
                    for each in (points, list(found)) if points]
        assert extremes[:1] == extremes[1:]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive with a recording, whose time index is read three points at a time."""
    builder = SegmentBuilder()
    for _ in range(20):
        builder.message(b"message")
    built_archive.add_recording(tmp_path, builder)
    recording = open_directory(tmp_path).recording(0)
    points = [TimePoint(10_000 + number, number * 64) for number in range(20)]
    path = time_index_path(tmp_path, 0)
    write_time_index(path, Provenance.of(recording.entry), points)
    monkeypatch.setattr(files, "_PART", 96)
    return tmp_path


@pytest.mark.parametrize("bad", [[], [19], [16, 17, 18, 19], [11], [5, 6, 7, 8, 9], [0], [0, 19]])
@pytest.mark.parametrize("rest", [0, 7])
def test_a_file_in_parts(folder: Path, bad: list[int], rest: int) -> None:
    """It has the positions and the problem of the whole file, whatever of it is damaged."""
    path = time_index_path(folder, 0)
    data = bytearray(path.read_bytes()) + bytes(rest)
    for number in bad:
        data[64 + 32 * number] ^= 1
    path.write_bytes(data)
    recording = open_directory(folder).recording(0)
    for times in (TimeRange(10_003, 10_009), TimeRange(None, 10_018), TimeRange(10_018, None)):
        whole, found = TimeIndex.of(recording), TimeIndex.of(recording, times)
        assert found.problem == whole.problem
        assert found.positions(times) == whole.positions(times)
        assert bool(found.problem) == (bad not in ([], [19], [16, 17, 18, 19]))


def test_positions_that_go_back(folder: Path) -> None:
    path = time_index_path(folder, 0)
    data = path.read_bytes()
    path.write_bytes(data[:64] + data[64 + 96 :] + data[64 : 64 + 96])
    recording = open_directory(folder).recording(0)
    problem = TimeIndex.of(recording, TimeRange(None, 10_005)).problem
    assert "its positions go back to 0" in problem and problem == recording.time_index.problem
