"""Positions of a recording against wall-clock time, for statistics over time.

Times are known at the points of the recording's time index (`aerotape.catalog.time_index.index`);
between two of them the rate is assumed to be constant. If the clock was set back, time stands still
until it reaches its former value.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from aerotape.frame_header import FRAME_ALIGNMENT

if TYPE_CHECKING:
    from aerotape.catalog.directory import StoredRecording


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Times at which a range of positions was recorded.

    Attributes:
        times_ns: nanoseconds since 1970, ascending, from the range's start to its end.
        positions: recorded position at each of these times, ascending.
    """

    times_ns: Sequence[int]
    positions: Sequence[int]

    @property
    def duration_ns(self) -> int:
        """Duration of the range in nanoseconds."""
        return self.times_ns[-1] - self.times_ns[0]

    def edges(self, bins: int) -> tuple[list[int], list[int]]:
        """Divide the range into parts of equal time.

        Returns:
            Times, ascending, one more than parts; and the position at each, on a frame boundary.
            Two adjacent positions are equal if nothing was recorded between them.
        """
        begin = self.times_ns[0]
        bins = max(min(bins, self.duration_ns), 1)
        times = [begin + self.duration_ns * i // bins for i in range(bins + 1)]
        inner = [self._position_at(time_ns) for time_ns in times[1:-1]]
        return times, [self.positions[0], *inner, self.positions[-1]]

    def _position_at(self, time_ns: int) -> int:
        after = bisect_right(self.times_ns, time_ns)
        if after == len(self.times_ns):
            return self.positions[-1]
        first, second = self.positions[after - 1], self.positions[after]
        since, until = self.times_ns[after - 1], self.times_ns[after]
        position = first + (second - first) * (time_ns - since) // (until - since)
        return max(position // FRAME_ALIGNMENT * FRAME_ALIGNMENT, self.positions[0])


def time_scale(
    recording: StoredRecording, from_position: int, to_position: int
) -> TimeScale | None:
    """Return the times of a range of a recording; None if its time index has no points.

    Raises:
        CatalogError: the recording's descriptor is damaged.
        StorageError: its segment files cannot be listed.
    """
    index = recording.time_index
    begin, end = index.estimate(from_position), index.estimate(to_position)
    if not index.points or begin is None or end is None:
        return None
    points = index.points
    first = bisect_right(points.positions, from_position)
    # Up to the first point at the end position, from which on nothing was recorded.
    reached = bisect_left(points.positions, to_position) + 1
    inner = slice(first, min(reached, bisect_right(points.positions, to_position)))
    times = [begin, *points.times[inner], end]
    positions = [from_position, *points.positions[inner], to_position]
    return TimeScale(list(accumulate(times, max)), positions)
