"""What was recorded over the last hours, as the service has seen it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders import built_archive
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.web import WebService

from aerotape.errors import StorageError
from aerotape.tools._web.observed import ObservedArchive, Snapshot
from aerotape.tools._web.trend import FINE_S, Point, Trend

FRAME = 128
FREE = 1 << 40


class Growing:
    """An archive whose recording of 64 messages, of 128 bytes each with their headers, grows."""

    def __init__(self, directory: Path) -> None:
        builder = SegmentBuilder()
        for _ in range(64):
            builder.message(b"x" * (FRAME - 32))
        built_archive.add_recording(directory, builder)
        self.directory = directory
        self._snapshot = ObservedArchive(directory).snapshot()
        self.now_ms, self.messages, self.free_bytes = 1_000_000, 0, FREE
        self.hangs = False

    def snapshot(self) -> Snapshot:
        if self.hangs:
            raise StorageError("it hangs")
        [recording] = self._snapshot.recordings
        return replace(
            self._snapshot,
            taken_ms=self.now_ms,
            free_bytes=self.free_bytes,
            recordings=[replace(recording, stop_position=self.messages * FRAME)],
        )


@pytest.fixture
def archive(tmp_path: Path) -> Growing:
    return Growing(tmp_path)


def looked(trend: Trend, archive: Any, *steps: tuple[float, int]) -> list[Point]:
    """Look after steps of seconds and messages; return the new points."""
    before = len(trend.points(FINE_S))
    for seconds, messages in steps:
        archive.now_ms += int(seconds * 1e3)
        archive.messages += messages
        trend.look()
    return trend.points(FINE_S)[before:]


def test_points(archive: Growing) -> None:
    """Bytes and messages between two looks; nothing before the first, or while it hangs."""
    trend = Trend(archive)  # type: ignore[arg-type]
    assert looked(trend, archive, (5, 10)) == []
    steady, idle = looked(trend, archive, (4, 20), (2, 0))
    assert steady == Point(archive.now_ms - 2_000, 4.0, 20 * FRAME / 4, 5.0, FREE)
    assert (idle.bytes_per_s, idle.messages_per_s) == (0.0, 0.0)
    archive.hangs = True
    assert looked(trend, archive, (5, 4)) == []
    archive.hangs = False
    [after] = looked(trend, archive, (5, 6))
    assert (after.seconds, after.messages_per_s) == (10.0, 1.0)
    archive.messages -= 30  # truncated
    [truncated] = looked(trend, archive, (5, 0))
    assert truncated.bytes_per_s == 0


def test_messages_are_not_invented(archive: Growing, tmp_path: Path) -> None:
    """Without the file the bytes are known, the messages are not."""
    trend = Trend(archive)  # type: ignore[arg-type]
    trend.look()
    (tmp_path / "0-0.rec").unlink()
    [found] = looked(trend, archive, (5, 10))
    assert (found.bytes_per_s, found.messages_per_s) == (10 * FRAME / 5, None)


def test_a_day_is_kept(archive: Growing) -> None:
    """A point each look for a quarter of an hour, one each minute for a day; no more."""
    trend = Trend(archive)  # type: ignore[arg-type]
    trend.look()
    for number in range(2 * 86_400 // 5):
        archive.now_ms += 5_000
        archive.messages = number // 600
        trend.look()
    assert len(trend.points(FINE_S)) == 180
    day = trend.points(86_400)
    assert 1_438 <= len(day) <= 1_441
    assert {each.seconds for each in day[:-1]} == {60.0}
    hour = trend.points(3_600)
    assert 59 <= len(hour) <= 61
    assert hour == day[-len(hour) :]
    times = [each.time_ms for each in day]
    assert times == sorted(set(times))


def test_when_it_is_full(archive: Growing) -> None:
    """As free space becomes less, whoever uses it; not from a few looks, nor if it does not."""
    trend = Trend(archive)  # type: ignore[arg-type]
    trend.look()
    for number in range(20):
        archive.now_ms += 5_000
        archive.free_bytes = FREE - number * 5_000
        trend.look()
        if number < 12:
            assert trend.full_in_s() is None
    assert trend.full_in_s() == pytest.approx(archive.free_bytes / 1_000)
    archive.free_bytes = FREE + 1
    looked(trend, archive, (5, 0))
    assert trend.full_in_s() is None


def test_the_service_looks(own: CommandLine, archive: Growing) -> None:
    """By itself, also when nobody asks."""
    with WebService(own, archive.directory) as web:
        await_true(lambda: web.get("/api/v1/trend").json["points"] != [])
        found = web.get("/api/v1/trend?seconds=60").json
        assert found["points"][-1]["bytes_per_s"] == 0
        assert web.get("/api/v1/trend?seconds=90000").status == 400
