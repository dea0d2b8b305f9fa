"""Points of a time index: a bulk conversion equals one by one."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aerotape.catalog.time_index.points import TimePoint, TimePoints

LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
POINTS = st.lists(
    st.builds(
        TimePoint,
        LONGS,
        st.integers(0, (1 << 63) - 1),
        st.integers(-(1 << 31), (1 << 31) - 1),
        st.booleans(),
    )
).map(lambda points: sorted(points, key=lambda point: point.position))


@settings(deadline=None)
@given(POINTS, st.integers(0, 12), st.integers(0, 12))
def test_points_are_a_sequence_with_columns(points: list[TimePoint], first: int, last: int) -> None:
    found = TimePoints.of(points)
    assert found == points
    assert [found[index] for index in range(len(found))] == points
    assert list(found.times) == [point.time_ns for point in points]
    assert list(found.positions) == [point.position for point in points]
    part, expected = found[first:last], points[first:last]
    assert (list(part), list(part.times), list(part.positions)) == (
        expected,
        [point.time_ns for point in expected],
        [point.position for point in expected],
    )
    assert part.has_estimates == any(point.is_estimate for point in expected)
    latest, earliest = part.extremes()
    times = [point.time_ns for point in expected]
    assert list(latest) == [max(times[: index + 1]) for index in range(len(times))]
    assert list(earliest) == [min(times[index:]) for index in range(len(times))]
    assert TimePoints.joined(found[:first], points[first:]) == points


@settings(deadline=None)
@given(POINTS)
def test_points_have_the_documented_encoding(points: list[TimePoint]) -> None:
    encoded = b""
    for point in points:
        data = struct.pack(
            "<qqiII", point.time_ns, point.position, point.session_id, point.is_estimate, 0
        )
        encoded += data + zlib.crc32(data).to_bytes(4, "little")
    assert TimePoints.of(points).encode() == encoded
    found, damage = TimePoints.parse(bytes(7) + encoded, 7)
    assert (list(found), damage) == (points, "")


def test_descending_positions_are_refused() -> None:
    points = [TimePoint(1, 64), TimePoint(2, 32)]
    with pytest.raises(ValueError, match="its positions go back to 32"):
        TimePoints.of(points)
    with pytest.raises(ValueError, match="its positions go back to 32"):
        TimePoints.joined(points[:1], points[1:])
