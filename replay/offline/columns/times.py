"""The column `recorded_time`: when messages were recorded, as a recording's time index has it.

It is the time of the last point of the index at or before the position of a message. The message
was recorded then or later: in a steady stream up to a second later. It is null at positions before
the first point, and so in recordings without an index.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

from aerotape import _native
from aerotape.catalog.time_index.index import read_points
from aerotape.catalog.time_index.points import NO_POINTS

if TYPE_CHECKING:
    import pyarrow

    from aerotape.catalog.directory import StoredRecording
    from aerotape.catalog.time_index.points import TimePoints
    from aerotape.replay.offline.reader import RecordingRange

_LENGTH: Final = 8


def points_in(recording: StoredRecording | None, part: RecordingRange) -> TimePoints:
    """Return the points that date the messages of a range, with a warning for a damaged index."""
    if recording is None:
        return NO_POINTS
    points, problem = read_points(recording, part.limit_position)
    if problem:
        warnings.warn(problem, RuntimeWarning, stacklevel=2)
    first = max(bisect_right(points.positions, part.from_position) - 1, 0)
    return points[first : bisect_left(points.positions, part.to_position)]


def recorded_between(
    recording: StoredRecording, part: RecordingRange, first_us: int, last_us: int
) -> RecordingRange:
    """Limit a range to positions whose `recorded_time` may be from `first_us` to `last_us`."""
    begin, end = points_in(recording, part).positions_between(first_us, last_us)
    begin = min(max(begin, part.from_position), part.to_position)
    return part.part(begin, max(begin, min(end, part.to_position)))


def time_column(
    points: TimePoints, positions: pyarrow.Array, kind: pyarrow.DataType
) -> pyarrow.Array:
    """Return the times of messages at ascending positions, as timestamps in microseconds."""
    import pyarrow

    count = len(positions)
    if not count or not points:
        return pyarrow.nulls(count, kind)
    begin = positions.offset * _LENGTH
    wanted = memoryview(positions.buffers()[1])[begin : begin + count * _LENGTH]
    times = _native.last_times_us(bytes(points.times), bytes(points.positions), bytes(wanted))
    known = len(times) // _LENGTH
    column = pyarrow.Array.from_buffers(kind, known, [None, pyarrow.py_buffer(times)])
    if known == count:
        return column
    return pyarrow.concat_arrays([pyarrow.nulls(count - known, kind), column])
