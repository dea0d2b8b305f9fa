"""Points of a time index: a wall-clock time and the position that the recording had then.

There may be millions, one each 100 ms. They are stored as in the file, with arrays of times and
positions to be searched, and become objects one by one.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import starmap
from typing import Final, NamedTuple, overload

from aerotape import _native
from aerotape.units import MAX_LONG

POINT_LENGTH: Final = 32
FLAG_ESTIMATE: Final = 1

_NS_PER_US: Final = 1_000
_NO_POSITION: Final = MAX_LONG

_POINT: Final = struct.Struct("<qqiII")
_CRC: Final = struct.Struct("<I")
_DECODED: Final = struct.Struct("<qqiI8x")


class TimePoint(NamedTuple):
    """A position that a recording had at a time.

    Attributes:
        time_ns: nanoseconds since 1970.
        position: bytes.
        session_id: of the image that was recorded; 0 for an estimate.
        is_estimate: it was added afterwards, not while recording.
    """

    time_ns: int
    position: int
    session_id: int = 0
    is_estimate: bool = False

    def encode(self) -> bytes:
        """Encode it as in the file."""
        flags = FLAG_ESTIMATE if self.is_estimate else 0
        data = _POINT.pack(self.time_ns, self.position, self.session_id, flags, 0)
        return data + _CRC.pack(zlib.crc32(data))


def decode_point(data: bytes) -> TimePoint | None:
    """Decode a point of the file; None if it is incomplete or damaged."""
    if len(data) != POINT_LENGTH or _CRC.pack(zlib.crc32(data[: -_CRC.size])) != data[-_CRC.size :]:
        return None
    return _point(*_DECODED.unpack(data))


class TimePoints(Sequence[TimePoint]):
    """Points by ascending position. Equal to any sequence of the same points.

    Attributes:
        times: nanoseconds since 1970, one for each point.
        positions: bytes, likewise.
    """

    __slots__ = ("_data", "_estimates", "positions", "times")

    def __init__(
        self, data: memoryview, times: memoryview, positions: memoryview, estimates: memoryview
    ) -> None:
        """Use `parse` or `of`."""
        self._data = data
        self.times = times
        self.positions = positions
        self._estimates = estimates

    @classmethod
    def parse(cls, data: bytes, begin: int = 0) -> tuple[TimePoints, str]:
        """Parse the points of a file from an offset on.

        Returns:
            The points, without those that fail their checksum at the end; and the damage when one
            in the middle fails or positions descend, else "".
        """
        times, positions, estimates, damage = _native.decode_time_points(data, begin)
        body = memoryview(data)[begin : begin + len(estimates) * POINT_LENGTH]
        columns = (memoryview(times).cast("q"), memoryview(positions).cast("q"))
        return cls(body, *columns, memoryview(estimates)), damage

    @classmethod
    def of(cls, points: Iterable[TimePoint]) -> TimePoints:
        """Convert points; ValueError when their positions descend."""
        if isinstance(points, TimePoints):
            return points
        found, damage = cls.parse(b"".join(point.encode() for point in points))
        if damage:
            raise ValueError(damage)
        return found

    @classmethod
    def joined(cls, *parts: Iterable[TimePoint]) -> TimePoints:
        """Concatenate points; errors as `of`."""
        encoded = b"".join(cls.of(part).encode() for part in parts)
        found, damage = cls.parse(encoded)
        if damage:
            raise ValueError(damage)
        return found

    @classmethod
    def in_order(cls, parts: Iterable[TimePoints]) -> TimePoints:
        """Concatenate parts of a file, of which positions are known to ascend."""
        data, times, positions, estimates = (bytearray() for _ in range(4))
        for part in parts:
            data += part._data
            times += part.times.cast("B")
            positions += part.positions.cast("B")
            estimates += part._estimates
        whole = [memoryview(each).toreadonly() for each in (data, times, positions, estimates)]
        return cls(whole[0], whole[1].cast("q"), whole[2].cast("q"), whole[3])

    def encode(self) -> bytes:
        """Encode them as in the file."""
        return bytes(self._data)

    def extremes(self) -> tuple[memoryview, memoryview]:
        """Return for each point the latest time up to it, and the earliest from it on."""
        latest, earliest = _native.running_extremes(bytes(self.times))
        return memoryview(latest).cast("q"), memoryview(earliest).cast("q")

    def positions_between(self, first_us: int, last_us: int) -> tuple[int, int]:
        """Return a range with all positions whose last point is of a range of times.

        Args:
            first_us: the earliest time, microseconds since 1970; those of points are rounded down.
            last_us: the latest time.
        """
        latest, earliest = self.extremes()
        first = bisect_left(latest, first_us * _NS_PER_US)
        after = bisect_left(earliest, (last_us + 1) * _NS_PER_US)
        begin, end = (
            self.positions[index] if index < len(self) else _NO_POSITION for index in (first, after)
        )
        return begin, end

    @property
    def has_estimates(self) -> bool:
        """Whether there are estimates among them."""
        return 1 in self._estimates

    def __len__(self) -> int:
        return len(self._estimates)

    @overload
    def __getitem__(self, index: int) -> TimePoint: ...
    @overload
    def __getitem__(self, index: slice) -> TimePoints: ...
    def __getitem__(self, index: int | slice) -> TimePoint | TimePoints:
        if isinstance(index, slice):
            begin, end, step = index.indices(len(self))
            if step != 1:
                raise ValueError("points are in their order: only slices without a step")
            part = slice(begin, max(begin, end))
            data = self._data[part.start * POINT_LENGTH : part.stop * POINT_LENGTH]
            return TimePoints(data, self.times[part], self.positions[part], self._estimates[part])
        number = range(len(self))[index]
        return _point(*_DECODED.unpack_from(self._data, number * POINT_LENGTH))

    def __iter__(self) -> Iterator[TimePoint]:
        return starmap(_point, _DECODED.iter_unpack(self._data))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TimePoints):
            return self._data == other._data
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TimePoints({list(self)!r})"


_NONE = memoryview(b"")
NO_POINTS: Final = TimePoints(_NONE, _NONE.cast("q"), _NONE.cast("q"), _NONE)


def _point(time_ns: int, position: int, session_id: int, flags: int) -> TimePoint:
    return TimePoint(time_ns, position, session_id, flags & FLAG_ESTIMATE != 0)
