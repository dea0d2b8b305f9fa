"""The column `recorded_time`, compared with a model that looks at all points of an index."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.builders.timed_directory import EPOCH, START_NS, Built, build, recorded_time

from aerotape.catalog.time_index.points import TimePoint, TimePoints
from aerotape.replay.offline import directory
from aerotape.replay.offline.reader import recording_range
from aerotape.replay.offline.selection import Selection
from aerotape.replay.offline.table import TableReader

pyarrow = pytest.importorskip("pyarrow")


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "archive")


def random_points(rng: random.Random, end: int, count: int) -> list[TimePoint]:
    """Points some of which have one position, with a clock that is put back now and then."""
    positions = sorted(rng.choices(range(64, end, 32), k=count))
    time_ns, points = START_NS, []
    for position in positions:
        time_ns += rng.choice((1, 999, 100_000_000, 7_000_000_001, -9_000_000_000))
        points.append(TimePoint(time_ns, position, 1))
    return points


def model(built: Built, points: list[TimePoint]) -> list[datetime | None]:
    return [recorded_time(points, message.position) for message in built.stream.messages]


def test_times_are_those_of_the_last_point_at_or_before_the_position(built: Built) -> None:
    """Random points, all messages or a range of them, with and without the column `position`."""
    rng = random.Random(5)
    messages = built.stream.messages
    for count in (1, 3, 40, 300):
        built.points = random_points(rng, built.stream.position, count)
        built.put_index()
        expected = model(built, built.points)
        table = built.recording().to_arrow(columns=["length", "recorded_time"])
        assert table.column_names == ["length", "recorded_time"]
        assert table.schema.field("recorded_time").type == pyarrow.timestamp("us", "UTC")
        assert table.column("recorded_time").to_pylist() == expected
        assert None in expected
        first, last = sorted(rng.sample(range(len(messages)), 2))
        part = built.recording().to_arrow(
            messages[first].position,
            messages[last].position,
            columns=["recorded_time", "position"],
            batch_rows=7,
        )
        assert part.column("recorded_time").to_pylist() == expected[first:last]


def test_without_a_usable_index_times_are_null(built: Built) -> None:
    """No file, and a damaged one, which is also a warning."""
    built.path.write_bytes(b"nonsense")
    with pytest.warns(RuntimeWarning, match="time-index is damaged"):
        table = built.recording().to_arrow(columns=["recorded_time"])
    assert table.column(0).null_count == table.num_rows == len(built.stream.messages)
    built.path.unlink()
    assert built.recording().to_arrow(columns=["recorded_time"]) == table


def test_an_index_is_read_only_for_its_column(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the column neither catalog nor index are read again; with it the catalog is read once
    for all ranges."""
    whole = recording_range(built.recording())
    opened: list[Any] = []
    original = directory.directory_at

    def noting(*args: Any) -> Any:
        opened.append(args)
        return original(*args)

    monkeypatch.setattr(directory, "directory_at", noting)
    TableReader().read(whole).read_all()
    assert opened == []
    reader = TableReader(Selection(columns=["recorded_time"]))
    middle = whole.to_position // 2
    for part in (whole.part(0, middle), whole.part(middle, whole.to_position)):
        reader.read(part).read_all()
    assert len(opened) == 1


def test_ranges_of_times_have_all_positions_that_they_may_have() -> None:
    """Compared with the model, for clocks that are put back too; without that the range is
    exact."""
    rng = random.Random(7)
    for ascending in [False] * 30 + [True] * 30:
        points = random_points(rng, 20_000, rng.randrange(1, 30))
        if ascending:
            times = sorted(point.time_ns for point in points)
            points = [p._replace(time_ns=t) for p, t in zip(points, times, strict=True)]
        low, high = (
            (rng.choice(points).time_ns - START_NS) // 1000 + rng.choice((-1, 0, 1))
            for _ in range(2)
        )
        low, high = (START_NS // 1000 + each for each in (low, high))
        begin, end = TimePoints.of(points).positions_between(low, high)
        first, last = (EPOCH + timedelta(microseconds=us) for us in (low, high))
        inside = [
            position
            for position in range(0, 21_000, 32)
            if (time := recorded_time(points, position)) is not None and first <= time <= last
        ]
        assert all(begin <= position < end for position in inside)
        if ascending:
            assert inside == list(range(begin, min(end, 21_000), 32))
    assert TimePoints.of([]).positions_between(0, 1)[0] == (1 << 63) - 1
