"""When single messages were recorded, without reading a whole time index.

The index of a recording that lasts for weeks has many megabytes. For a program that shows a few
messages, it is searched in its file.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from aerotape.catalog.time_index.file import (
    HEADER_LENGTH,
    Provenance,
    parse_provenance,
    time_index_path,
)
from aerotape.catalog.time_index.index import read_points
from aerotape.catalog.time_index.points import POINT_LENGTH, decode_point
from aerotape.context import Closing
from aerotape.errors import StorageError
from aerotape.units import MAX_LONG

if TYPE_CHECKING:
    from aerotape.catalog.time_index.points import TimePoint
    from aerotape.catalog.time_index.recording import IndexedRecording

_INCOMPLETE: Final = 8
"""The most points at the end that may be incomplete: a write that is not finished, or was not."""


class RecordedTimes(Closing):
    """The times of the last points at or before positions, as those of the column `recorded_time`.

    Of a local directory. Without an index no time is known; if one of its points is damaged, a time
    may be that of an earlier point. Use as a context manager.
    """

    def __init__(self, recording: IndexedRecording) -> None:
        """Open the index of a recording.

        Raises:
            CatalogError: the recording's descriptor is damaged.
            StorageError: its segment files cannot be listed.
        """
        self._file = -1
        self._points: bytes | None = None
        self._count = 0
        self._range = range(0)
        self._time_ns: int | None = None
        path = time_index_path(recording.archive_dir, recording.recording_id)
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            found = parse_provenance(path, os.pread(self._file, HEADER_LENGTH, 0))
        except (OSError, StorageError):
            return
        if found == Provenance.of(recording.entry):
            self._count = max(os.fstat(self._file).st_size - HEADER_LENGTH, 0) // POINT_LENGTH
            end = self._count
            while self._count > max(end - _INCOMPLETE, 0) and self._point(self._count - 1) is None:
                self._count -= 1
        else:  # some of its points may not hold
            points, _ = read_points(recording, MAX_LONG)
            self._points, self._count = points.encode(), len(points)

    def time_ns(self, position: int) -> int | None:
        """Return the time of the last point at or before a position, nanoseconds since 1970.

        None if there is no such point, or if it is damaged.
        """
        if position in self._range:
            return self._time_ns
        after = bisect_right(range(self._count), position, key=self._position)
        point = self._point(after - 1) if after else None
        self._time_ns = None if point is None else point.time_ns
        begin = 0 if point is None else point.position
        self._range = range(begin, self._position(after) if after < self._count else begin)
        return self._time_ns

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _read(self, index: int) -> bytes:
        if self._points is not None:
            return self._points[index * POINT_LENGTH : (index + 1) * POINT_LENGTH]
        try:
            return os.pread(self._file, POINT_LENGTH, HEADER_LENGTH + index * POINT_LENGTH)
        except OSError:
            return b""

    def _point(self, index: int) -> TimePoint | None:
        return decode_point(self._read(index))

    def _position(self, index: int) -> int:
        point = self._point(index)
        return MAX_LONG if point is None else point.position
