"""The few points of a time index that decide where a range of times begins and ends.

Where the clock was put back, points are not in the order of their times, so that all must be looked
at. Of a recording that lasts for weeks they take hundreds of megabytes: they are looked at a part
at a time, and those that decide are kept.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from aerotape.catalog.time_index.points import TimePoints

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aerotape.catalog.time_index.points import TimePoint
    from aerotape.times import TimeRange


def deciding(parts: Iterable[TimePoints], times: TimeRange) -> TimePoints:
    """Return the points of an index that decide where a range of times begins and ends.

    Args:
        parts: all of its points, in their order.
        times: the range.
    """
    found = Deciding(times)
    for part in parts:
        found.append(part)
    return found.points()


class Deciding:
    """Collects these points from parts of an index.

    They are the first and the last point, one with the earliest and one with the latest time; the
    first one not before the begin of the range, and the one before that; the last one before the
    end of the range, and the one after that. An index of them has the same positions for the range
    as one of all points, and the same ends.
    """

    def __init__(self, times: TimeRange) -> None:
        """Create it, without points.

        Args:
            times: the range.
        """
        self._from_ns, self._to_ns = times.from_ns, times.to_ns
        self._count = 0
        self._ends: list[tuple[int, TimePoint]] = []
        self._earliest: tuple[int, TimePoint] | None = None
        self._latest: tuple[int, TimePoint] | None = None
        self._begin: list[tuple[int, TimePoint]] = []
        self._end: list[tuple[int, TimePoint]] = []

    def append(self, part: TimePoints) -> None:
        """Look at the next points."""
        if not part:
            return
        previous = self._ends[-1:]

        def at(index: int) -> list[tuple[int, TimePoint]]:
            """The point at an index of the part, of which -1 is the one before it."""
            if index == -1:
                return previous
            return [(self._count + index, part[index])] if index < len(part) else []

        latest, earliest = part.extremes()
        if self._from_ns is not None and not self._begin:
            index = bisect_left(latest, self._from_ns)
            if index < len(part):
                self._begin = at(index - 1) + at(index)
        if self._to_ns is not None:
            index = bisect_left(earliest, self._to_ns)
            if index > 0:
                self._end = at(index - 1) + at(index)
            elif len(self._end) == 1:  # the last point so far was before the end of the range
                self._end += at(0)
        if self._latest is None or latest[-1] > self._latest[1].time_ns:
            [self._latest] = at(bisect_left(latest, latest[-1]))
        if self._earliest is None or earliest[0] < self._earliest[1].time_ns:
            [self._earliest] = at(bisect_right(earliest, earliest[0]) - 1)
        self._ends = [*self._ends[:1], *at(0)][:1] + at(len(part) - 1)
        self._count += len(part)

    def points(self) -> TimePoints:
        """Return the points, in their order."""
        found = dict([*self._ends, *self._begin, *self._end])
        found.update(each for each in (self._earliest, self._latest) if each is not None)
        return TimePoints.of(point for _, point in sorted(found.items()))
