"""Statistics over time: bins of equal duration from the time index."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog.time_index.file import (
    Provenance,
    time_index_path,
    write_time_index,
)
from aerotape.catalog.time_index.points import TimePoint
from aerotape.errors import ConfigurationError
from aerotape.replay.offline.directory import Recording, open_directory

SECOND = 1_000_000_000
# Within the second that the catalog has for built recordings.
BEGIN = 1_700_000_000 * SECOND


def recorded(tmp_path: Path, builder: SegmentBuilder, points: list[tuple[int, int]]) -> Recording:
    """Add a recording with a time index of these times (after BEGIN) and positions."""
    recording_id = add_recording(tmp_path, builder)
    recording = open_directory(tmp_path).recording(recording_id)
    write_time_index(
        time_index_path(tmp_path, recording_id),
        Provenance.of(recording.entry),
        [TimePoint(BEGIN + time_ns, position, builder.session_id) for time_ns, position in points],
    )
    return open_directory(tmp_path).recording(recording_id)


def test_bins_of_equal_duration(tmp_path: Path) -> None:
    """Half of the messages are in 100 ms, none in 300 ms, the others in 600 ms."""
    builder = fill(SegmentBuilder(), 600)
    half, end = builder.messages[300].position, builder.position
    ms = SECOND // 1000
    points = [(0, 0), (100 * ms, half), (400 * ms, half), (1000 * ms, end)]
    recording = recorded(tmp_path, builder, points)
    stats = recording.stats(over="time", bins=20)
    assert (stats.over, stats.messages, len(stats.bins)) == ("time", 600, 20)
    assert [b.from_time_ns for b in stats.bins] == [BEGIN + i * 50 * ms for i in range(20)]
    assert [b.to_time_ns for b in stats.bins] == [BEGIN + i * 50 * ms for i in range(1, 21)]
    assert [b.from_position for b in stats.bins[1:]] == [b.to_position for b in stats.bins[:-1]]
    for part in stats.bins:
        inside = range(part.from_position, part.to_position)
        expected = [m for m in builder.messages if m.position in inside]
        assert part.messages == len(expected)
        assert part.messages_per_s == pytest.approx(len(expected) / 0.05)
        assert part.bytes_per_s == pytest.approx(part.length_bytes / 0.05)
    counts = [b.messages for b in stats.bins]
    assert counts[2:8] == [0] * 6
    assert sum(counts[:2]) == sum(counts[8:]) == 300
    assert stats.bins[8].from_position == half
    over_position = recording.stats(bins=20)
    assert over_position.over == "position"
    assert {b.messages_per_s for b in over_position.bins} == {None}
    assert over_position.lengths == stats.lengths


@pytest.mark.parametrize("idle_points", [[], [2000]], ids=["one point", "two points"])
def test_an_idle_end_has_no_messages(tmp_path: Path, idle_points: list[int]) -> None:
    """Messages of a burst are counted when it was recorded; the idle time after it has none."""
    builder = fill(SegmentBuilder(), 500)
    ms = SECOND // 1000
    points = [(0, 0), (ms, builder.position)]
    points += [(time_ms * ms, builder.position) for time_ms in (*idle_points, 3000)]
    recording = recorded(tmp_path, builder, points)
    stats = recording.stats(over="time", bins=30)
    assert [part.messages for part in stats.bins] == [500] + [0] * 29
    assert stats.bins[0].messages_per_s == 5000
    assert stats.bins[-1].to_time_ns == BEGIN + 3 * SECOND
    # Half of the burst, which had no idle end.
    half = recording.stats(0, builder.messages[250].position, over="time", bins=5)
    assert sum(part.messages for part in half.bins) == 250
    assert all(part.messages for part in half.bins)


def test_a_clock_that_is_set_back(tmp_path: Path) -> None:
    """No message is lost while the clock is set back."""
    builder = fill(SegmentBuilder(), 300)
    places = [builder.messages[i].position for i in (0, 100, 200)] + [builder.position]
    ms = SECOND // 1000
    times = [0, 500 * ms, 200 * ms, 900 * ms]
    stats = recorded(tmp_path, builder, list(zip(times, places, strict=True))).stats(
        over="time", bins=9
    )
    starts = [b.from_time_ns for b in stats.bins]
    assert None not in starts
    assert [b.messages for b in stats.bins][:5] != [0] * 5
    assert sum(b.messages for b in stats.bins) == 300
    later = [b for b in stats.bins if (b.from_time_ns or 0) >= BEGIN + 500 * ms]
    assert sum(b.messages for b in later) == 100


def test_a_range_of_times(tmp_path: Path) -> None:
    """Only messages recorded in the range count, and its duration."""
    builder = fill(SegmentBuilder(), 400)
    places = [builder.messages[i].position for i in (0, 100, 200, 300)] + [builder.position]
    points = [(i * SECOND // 4, place) for i, place in enumerate(places)]
    recording = recorded(tmp_path, builder, points)
    times = {
        "from_time": BEGIN + SECOND // 4 + 1,
        "to_time": f"{(BEGIN + SECOND * 3 // 4) // 1_000_000}ms",
    }
    stats = recording.stats(**times, over="time", bins=10)  # type: ignore[arg-type]
    assert (stats.from_position, stats.to_position) == (places[1], places[3])
    assert (stats.messages, stats.duration_s) == (200, 0.5)
    assert stats.messages_per_s == 400


def test_a_recording_without_a_time_index(tmp_path: Path) -> None:
    """Statistics over time are refused with the alternative, but not for an empty recording."""
    add_recording(tmp_path, fill(SegmentBuilder(), 20))
    add_recording(tmp_path, SegmentBuilder())
    directory = open_directory(tmp_path)
    with pytest.raises(ConfigurationError, match=r"unknown .*no time index.*over position"):
        directory.recording(0).stats(over="time")
    with pytest.raises(ConfigurationError, match="over must be position or time, got 'age'"):
        directory.recording(0).stats(over="age")  # type: ignore[arg-type]
    assert directory.recording(1).stats(over="time").bins == ()
