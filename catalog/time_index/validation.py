"""Validation of a time index after another archive has changed the recording.

Another archive does not know of the index. It may have cut the recording back and extended it, and
then points after the cut describe data that no longer exists. A recording is only ever overwritten
from some position on, so one valid point proves all before it. A point is valid that lies

* in a segment file, or before its end, that was not written to after the last point; or
* where a frame begins that still has the session id of the point's image. With checksums frames
  have none, and an image may have the session id of an earlier one.

Points that cannot be proven are ignored.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.segment_files import SegmentFile
from aerotape.catalog.time_index.points import TimePoint, TimePoints
from aerotape.frame_header import HEADER_LENGTH, FrameHeader


def proven_points(
    points: TimePoints,
    descriptor: RecordingDescriptor,
    segments: Sequence[SegmentFile],
) -> TimePoints:
    """Return the points at the beginning that are proven to hold.

    Args:
        points: of the index, by ascending position.
        descriptor: of the recording as it is now.
        segments: its segment files, ascending.
    """
    if not points:
        return points
    untouched = _end_of_untouched(segments, descriptor.segment_file_length, points[-1].time_ns)
    proven = bisect_right(points.positions, untouched)
    unproven_to = len(points)
    while proven < unproven_to:
        middle = (proven + unproven_to) // 2
        if _is_of_its_image(points[middle], descriptor, segments):
            proven = middle + 1
        else:
            unproven_to = middle
    return points[:proven]


def _end_of_untouched(segments: Sequence[SegmentFile], segment_length: int, time_ns: int) -> int:
    """Return the end of the last segment that was not written to after a time, -1 for none."""
    for segment in reversed(segments):
        try:
            if segment.path.stat().st_mtime_ns <= time_ns:
                return segment.base_position + segment_length
        except OSError:
            continue
    return -1


def _is_of_its_image(
    point: TimePoint, descriptor: RecordingDescriptor, segments: Sequence[SegmentFile]
) -> bool:
    """Whether the frame at a point is of the point's image."""
    if point.is_estimate or point.session_id == descriptor.session_id:
        return False
    bases = [segment.base_position for segment in segments]
    index = bisect_right(bases, point.position) - 1
    if index < 0:
        return False
    segment = segments[index]
    try:
        with segment.path.open("rb", buffering=0) as file:
            data = os.pread(file.fileno(), HEADER_LENGTH, point.position - segment.base_position)
    except OSError:
        return False
    if len(data) < HEADER_LENGTH:
        return False
    header = FrameHeader.decode(data)
    return (
        header.frame_length > 0
        and header.term_offset == point.position % descriptor.term_buffer_length
        and header.session_id == point.session_id
    )
