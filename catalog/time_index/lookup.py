"""A time index that is searched in its file, without reading all of it.

The index of a recording that lasts for weeks has many megabytes, and takes several times that in
memory. This is for programs that show a few messages, or a plot.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import TYPE_CHECKING, BinaryIO, Final

from aerotape.catalog.segment_files import open_regular_file
from aerotape.catalog.time_index.file import (
    HEADER_LENGTH,
    DamagedTimeIndexError,
    Provenance,
    parse_provenance,
    time_index_path,
)
from aerotape.catalog.time_index.index import untouched
from aerotape.catalog.time_index.points import POINT_LENGTH, decode_point
from aerotape.context import Closing
from aerotape.errors import AerotapeError, StorageError, StorageErrors
from aerotape.units import MAX_LONG

if TYPE_CHECKING:
    from aerotape.catalog.time_index.points import TimePoint
    from aerotape.catalog.time_index.recording import IndexedRecording

_INCOMPLETE: Final = 8
"""The most points at the end that may be incomplete: a write that is not finished, or was not."""


class StoredPoints(Closing):
    """The points of the time index of a recording in a local directory, read one by one.

    There are none if there is no index, or none that can be used. Use as a context manager.
    """

    def __init__(self, recording: IndexedRecording) -> None:
        """Open the index.

        Raises:
            CatalogError: the recording's descriptor is damaged.
            StorageError: its segment files cannot be listed.
        """
        self._path = time_index_path(recording.archive_dir, recording.recording_id)
        self._file: BinaryIO | None = None
        self._count = 0
        try:
            self._file = open_regular_file(self._path)
            found = parse_provenance(self._path, self._read(0, HEADER_LENGTH))
            provenance = Provenance.of(recording.entry)
            if found.is_same_recording(provenance):
                self._count = self._complete()
        except (OSError, StorageError):
            return
        if self._count and found != provenance:
            try:
                self._count = self._held(recording)
            except AerotapeError:
                self.close()
                raise

    def _complete(self) -> int:
        """Return the number of points, without those at the end that are not complete."""
        assert self._file is not None
        size = os.fstat(self._file.fileno()).st_size
        count = max(size - HEADER_LENGTH, 0) // POINT_LENGTH
        for end in range(count, max(count - _INCOMPLETE, 0), -1):
            if decode_point(self._data(end - 1)) is not None:
                return end
        return 0

    def _held(self, recording: IndexedRecording) -> int:
        """Return the number of points that hold although another archive may have changed it."""
        segments = recording.segment_files()
        length = recording.descriptor.segment_file_length
        try:
            return self.after_position(untouched(self[-1].time_ns, length, segments))
        except StorageError:
            return 0

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> TimePoint:
        """Read a point.

        Raises:
            DamagedTimeIndexError: it fails its checksum.
            StorageError: it cannot be read.
        """
        number = range(self._count)[index]
        point = decode_point(self._data(number))
        if point is None:
            raise DamagedTimeIndexError(f"time index {self._path}: a point is damaged", self._path)
        return point

    def after_position(self, position: int) -> int:
        """Return the index of the first point after a position; errors as of reading points."""
        return bisect_right(range(self._count), position, key=lambda index: self[index].position)

    def after_time(self, time_ns: int) -> int:
        """Return the index of the first point after a time; errors as of reading points."""
        return bisect_right(range(self._count), time_ns, key=lambda index: self[index].time_ns)

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._file is not None:
            self._file.close()

    def _data(self, number: int) -> bytes:
        return self._read(HEADER_LENGTH + number * POINT_LENGTH, POINT_LENGTH)

    def _read(self, offset: int, length: int) -> bytes:
        assert self._file is not None
        with StorageErrors(f"cannot read time index {self._path}", self._path):
            return os.pread(self._file.fileno(), length, offset)


class RecordedTimes(StoredPoints):
    """The times of the last points at or before positions, as in the column `recorded_time`."""

    def __init__(self, recording: IndexedRecording) -> None:
        """Open the index; errors as of `StoredPoints`."""
        super().__init__(recording)
        self._range = range(0)
        self._time_ns: int | None = None

    def time_ns(self, position: int) -> int | None:
        """Return the time of the last point at or before a position, nanoseconds since 1970.

        None if there is no such point, or one that was read is damaged.
        """
        if position not in self._range:
            try:
                self._find(position)
            except StorageError:
                return None
        return self._time_ns

    def _find(self, position: int) -> None:
        """Find the points around a position: messages between them have the same time."""
        after = self.after_position(position)
        before = self[after - 1] if after else None
        end = self[after].position if after < len(self) else MAX_LONG
        self._time_ns = None if before is None else before.time_ns
        self._range = range(0 if before is None else before.position, end)
