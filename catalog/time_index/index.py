"""Time index of a recording: from wall-clock times to positions and back.

    index = TimeIndex.of(aerotape.open_directory("recordings").recording(3))
    begin, end = index.positions(TimeRange.of("2026-03-01T09:30Z", "2026-03-01T10:00Z"))
    index.time_at(position)

The recorder stores *points* (`file`): a time, and the position that the recording had then. A
message was recorded between the points before and after it. `positions` returns all that may have
been recorded in a range of times, so a little more at both ends, up to about a second of a steady
stream.

Without points, as in a recording of another archive, there are bounds: data was not recorded after
the last write to its segment file or after the recording's stop, nor before its start. A copied
file may have a later time. `aerotape tool DIR time-index ID --rebuild` derives *estimates* from
these times, for files that are known to be as recorded.

Times are those of the recording machine's clock; of a replica, when it was copied. Where that clock
was put back, a time may belong to two ranges of positions; `positions` spans both.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal

from aerotape.catalog.segment_files import SegmentFile
from aerotape.catalog.time_index.deciding import deciding
from aerotape.catalog.time_index.file import Provenance, parse_parts, time_index_path
from aerotape.catalog.time_index.points import NO_POINTS, TimePoint, TimePoints
from aerotape.errors import StorageError
from aerotape.times import TimeRange
from aerotape.units import MAX_LONG

if TYPE_CHECKING:
    from aerotape.catalog.time_index.recording import IndexedRecording

Source = Literal["recorded", "estimated", "none"]

_NS_PER_MS: Final = 1_000_000
# Times of files may lag the clock by one tick of the system.
_TICK_NS: Final = 10 * _NS_PER_MS


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """Bounds of the time at which something was recorded, nanoseconds since 1970.

    Attributes:
        not_before_ns: earliest possible time; None when unknown.
        not_after_ns: latest possible time; None when unknown.
    """

    not_before_ns: int | None
    not_after_ns: int | None


class TimeIndex:
    """The time index of one recording.

    Attributes:
        points: recorded or estimated, by ascending position. Of two with one position the first
            has the time when it was reached, the second when it was left: in between nothing was
            recorded, or the clock was put back.
        start_position: the recording's, bytes.
        recorded_position: the recording's when the index was read, bytes.
        problem: why points are missing; else empty.
    """

    def __init__(
        self,
        points: Sequence[TimePoint],
        start_position: int,
        recorded_position: int,
        *,
        not_before: Sequence[tuple[int, int]] = (),
        not_after: Sequence[tuple[int, int]] = (),
        problem: str = "",
    ) -> None:
        """Create an index from points and bounds.

        Args:
            points: by ascending position.
            start_position: where the recording begins, bytes.
            recorded_position: where it ends, bytes.
            not_before: further times and positions: nothing from the position on was recorded
                before the time.
            not_after: further times and positions: nothing before the position was recorded
                after the time.
            problem: why points are missing.
        """
        self.points = TimePoints.of(points)
        self.start_position = start_position
        self.recorded_position = recorded_position
        self.problem = problem
        self._not_before = not_before
        self._not_after = not_after
        self._positions = self.points.positions
        # Where the clock was put back, data before a point may be as late as the latest point so
        # far, data after it as early as the earliest from there on.
        self._latest, self._earliest = self.points.extremes()

    @classmethod
    def of(cls, recording: IndexedRecording, times: TimeRange | None = None) -> TimeIndex:
        """Read the index of a recording in an opened directory.

        A file of points that cannot be used is reported in `problem`, never raised.

        Args:
            recording: the recording.
            times: the only ones of which `positions` will be asked: then the index has just the
                points that decide these, and needs little memory however long the file is.

        Raises:
            CatalogError: the recording's descriptor is damaged.
            StorageError: its segment files cannot be listed.
        """
        recording.check()
        descriptor = recording.descriptor
        start = recording.start_position
        end = max(recording.recorded_position, start)
        segments = recording.segment_files()
        points, problem = read_points(recording, end, segments, times)
        written = last_writes(segments, descriptor.segment_file_length)
        covered = range(points[0].position, points[-1].position) if points else range(0)
        times_so_far, times_from_here = points.extremes()
        # A segment before another may have been written after it: by another archive, or before
        # the clock was put back.
        latest = accumulate((time_ns for time_ns, _ in written), max)
        not_after = [
            (time_ns + _TICK_NS, min(position, end))
            for time_ns, (_, position) in zip(latest, written, strict=True)
            if min(position, end) - 1 not in covered
        ]
        # Points are more exact for the ends that they reach.
        not_before = []
        start_ns = descriptor.start_timestamp_ms * _NS_PER_MS
        is_known = bool(points) and points[0].position <= start
        # Segments that the recording has taken over from another one may be older than its start,
        # and so may be what it was extended by after the clock was put back.
        is_older = any(time_ns + _TICK_NS < start_ns for time_ns, _ in written) or any(
            time_ns < start_ns for time_ns in times_from_here[:1]
        )
        if start_ns >= 0 and not is_known and not is_older:
            not_before.append((start_ns, start))
        # To the end of that millisecond; and what was taken over may be younger than its stop.
        stop_ns = (descriptor.stop_timestamp_ms + 1) * _NS_PER_MS - 1
        is_known = bool(points) and points[-1].position >= end
        is_younger = any(time_ns > stop_ns for time_ns, _ in written) or any(
            time_ns > stop_ns for time_ns in times_so_far[-1:]
        )
        if not descriptor.is_active and not is_known and not is_younger:
            not_after.append((stop_ns, end))
        return cls(points, start, end, not_before=not_before, not_after=not_after, problem=problem)

    @property
    def source(self) -> Source:
        """The origin of the points: ``none`` without points."""
        if not self.points:
            return "none"
        return "estimated" if self.points.has_estimates else "recorded"

    def positions(self, times: TimeRange) -> tuple[int, int]:
        """Return the begin and end of all that may have been recorded in a range of times.

        Both are where frames begin. They are equal when nothing can have been recorded then.
        """
        begin, end = self.start_position, self.recorded_position
        if times.from_ns is not None:
            begin = self.position_from(times.from_ns)
        if times.to_ns is not None:
            end = self.position_to(times.to_ns)
        return begin, max(begin, end)

    def position_from(self, time_ns: int) -> int:
        """Return the position before which all was recorded before this time."""
        known = bisect_left(self._latest, time_ns)
        found = [self._positions[known - 1]] if known else []
        found += [position for bound_ns, position in self._not_after if bound_ns < time_ns]
        return self._clip(max(found, default=self.start_position))

    def position_to(self, time_ns: int) -> int:
        """Return the position from which on all was recorded at this time or later."""
        known = bisect_left(self._earliest, time_ns)
        found = list(self._positions[known : known + 1])
        found += [position for bound_ns, position in self._not_before if bound_ns >= time_ns]
        return self._clip(min(found, default=self.recorded_position))

    def time_at(self, position: int) -> TimeBounds:
        """Return the bounds of the time at which the data at a position was recorded."""
        after = bisect_right(self._positions, position)
        earliest = list(self._earliest[after - 1 : after]) if after else []
        earliest += [time_ns for time_ns, bound in self._not_before if bound <= position]
        latest = list(self._latest[after : after + 1])
        latest += [time_ns for time_ns, bound in self._not_after if bound > position]
        return TimeBounds(max(earliest, default=None), min(latest, default=None))

    def estimate(self, position: int) -> int | None:
        """Estimate when the data at a position was recorded, nanoseconds since 1970.

        Linear between two points; else the one bound that is known; None without any.
        """
        bounds = self.time_at(position)
        if bounds.not_before_ns is None or bounds.not_after_ns is None:
            return bounds.not_before_ns if bounds.not_after_ns is None else bounds.not_after_ns
        after = bisect_right(self._positions, position)
        if not 0 < after < len(self.points):
            return bounds.not_before_ns
        first, second = self.points[after - 1], self.points[after]
        share = (second.time_ns - first.time_ns) * (position - first.position)
        return first.time_ns + share // (second.position - first.position)

    def _clip(self, position: int) -> int:
        return min(max(position, self.start_position), self.recorded_position)


def read_points(
    recording: IndexedRecording,
    end: int,
    segments: Sequence[SegmentFile] | None = None,
    times: TimeRange | None = None,
) -> tuple[TimePoints, str]:
    """Return the valid points of a recording, and why others were ignored.

    Args:
        recording: of an opened directory.
        end: points after this position are left out.
        segments: the recording's segment files; when None they are listed if they are needed.
        times: return just the points that decide where these begin and end, as `deciding` does.
    """
    path = time_index_path(recording.archive_dir, recording.recording_id)
    provenance = Provenance.of(recording.entry)
    limit, ignored = MAX_LONG, 0

    def held(parts: Iterator[TimePoints]) -> Iterator[TimePoints]:
        """Iterate over points that hold; those after the end are void, as a crash leaves them."""
        nonlocal ignored
        for part in parts:
            count = bisect_right(part.positions, limit)
            ignored += len(part) - count
            yield part[: min(count, bisect_right(part.positions, end))]

    try:
        if (opened := parse_parts(path, recording.time_index_parts())) is None:
            return NO_POINTS, ""
        found, parts = opened
        if not found.is_same_recording(provenance):
            return NO_POINTS, f"time index {path} is of another recording: it is ignored"
        if found != provenance:
            segments = recording.segment_files() if segments is None else segments
            last_ns = 0
            for part in parts:
                last_ns = part[-1].time_ns if part else last_ns
            limit = untouched(last_ns, recording.descriptor.segment_file_length, segments)
            _, parts = parse_parts(path, recording.time_index_parts()) or (found, iter(()))
        points = TimePoints.in_order(held(parts)) if times is None else deciding(held(parts), times)
    except StorageError as error:
        return NO_POINTS, str(error)
    problem = ""
    if ignored:
        problem = (
            f"time index {path}: {ignored} of its points are ignored, "
            "because another archive may have overwritten those positions"
        )
    return points, problem


def untouched(last_ns: int, segment_length: int, segments: Sequence[SegmentFile]) -> int:
    """Return up to where points hold although another archive has changed the recording.

    It may have cut the recording back and extended it, and then points after the cut describe data
    that no longer exists. A recording is only ever overwritten from some position on, so a segment
    file that was not written to after the last point proves all points up to its end.

    Args:
        last_ns: the time of the last point, nanoseconds since 1970.
        segment_length: of the recording, bytes.
        segments: its segment files.
    """
    written = last_writes(segments, segment_length)
    return max((end for time_ns, end in written if time_ns <= last_ns), default=-1)


def last_writes(segments: Sequence[SegmentFile], segment_length: int) -> list[tuple[int, int]]:
    """Return the time of the last write to each segment file, and its end position."""
    written = []
    for segment in segments:
        try:
            modified_ns = segment.path.stat().st_mtime_ns
        except OSError:  # reading it will fail and say so
            continue
        written.append((modified_ns, segment.base_position + segment_length))
    return written
