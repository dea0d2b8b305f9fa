"""Dates of messages, for tables that are partitioned by date.

Functions take pairs of a position and the wall-clock time, epoch nanoseconds, at which the
recording had it, in ascending order. Messages between two positions have the time of the first.
"""

from __future__ import annotations

import datetime
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from aerotape.replay.offline.directory import Recording
from aerotape.replay.offline.reader import RecordingRange


def recorded_times(recording: Recording) -> list[tuple[int, int]]:
    """Return the times in the recording's time index, or the time when the recording started."""
    points = recording.time_index.points
    if points:
        return list(zip(points.positions, points.times, strict=True))
    descriptor = recording.descriptor
    return [(descriptor.start_position, descriptor.start_timestamp_ms * 1_000_000)]


def dates_problem(recording: Recording) -> str:
    """Return the reason why dates from `recorded_times` may be wrong; "" when none is known."""
    problem = recording.time_index.problem
    if not problem:
        return ""
    source = (
        "the points of its time index that are valid"
        if recording.time_index.points
        else "its start"
    )
    return f"its dates are taken from {source} ({problem})"


def date_at(position: int, times: Sequence[tuple[int, int]]) -> datetime.date:
    """Return the date (UTC) of a position; positions before the first pair have its date."""
    after = bisect_right(times, position, key=lambda pair: pair[0])
    return _date(times[max(after - 1, 0)][1])


def cut_at_midnight(part: RecordingRange, times: Sequence[tuple[int, int]]) -> list[RecordingRange]:
    """Cut a range where the date of its messages changes."""
    edges = [
        position
        for (_, before_ns), (position, time_ns) in pairwise(times)
        if _date(before_ns) != _date(time_ns) and part.from_position < position < part.to_position
    ]
    edges = [part.from_position, *sorted(set(edges)), part.to_position]
    return [part.part(begin, end) for begin, end in pairwise(edges)]


def _date(time_ns: int) -> datetime.date:
    return datetime.datetime.fromtimestamp(time_ns // 1_000_000_000, datetime.UTC).date()
