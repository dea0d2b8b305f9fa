"""The time index file: when a recording had which position.

``aerotape-<recordingId>.time-index`` lies beside the segment files; the Java archive and
ArchiveTool pass over names that do not end in ``.rec`` or ``.del``. All numbers are little endian.

The header, 64 bytes:

======  =====================================================================================
offset
======  =====================================================================================
0       magic, ``AEROTIDX``
8       version (uint16), 1
10      length of a point (uint16), 32
12      zero (uint32)
16      recording id (int64)
24      start timestamp of the recording, epoch milliseconds (int64): another recording's if it
        is not that of the catalog
32      control session id and correlation id, as they stood in the catalog when the recording was
40      begun or extended last (int64 each)
48      session id, likewise (int32)
52      zero (uint32)
56      zero (uint32)
60      CRC-32 of what is before it (uint32)
======  =====================================================================================

Points follow, 32 bytes each, so that none crosses a page:

======  =====================================================================================
offset
======  =====================================================================================
0       time, nanoseconds since 1970, by the clock of the machine that recorded (int64)
8       position that the recording had then, where a frame ends (int64)
16      session id of the image that was recorded, 0 for an estimate (int32)
20      flags (uint32): 1 for an estimate, added afterwards
24      zero (uint32)
28      CRC-32 of what is before it (uint32)
======  =====================================================================================

Data before a point's position was recorded by its time, data after it not before that. Positions
never descend. Times do where the clock was put back; there are three
points with one position then: with the time that the old clock would have shown, with the one that
the new clock would have shown at the point before, and with what it shows.

Points are appended, one write for each; nothing forces them to storage. An incomplete one at the
end is ignored. A point in the middle that fails its CRC makes the file useless: it may have
recorded a change of the clock. Losing the file loses no data.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.catalog import layout
from aerotape.catalog.durability import write_atomically
from aerotape.catalog.segment_files import open_regular_file
from aerotape.catalog.time_index.points import POINT_LENGTH, TimePoint, TimePoints
from aerotape.errors import StorageError, StorageErrors

if TYPE_CHECKING:
    from aerotape.catalog.file.entries import CatalogEntry

MAGIC: Final = b"AEROTIDX"
VERSION: Final = 1
HEADER_LENGTH: Final = 64

_HEADER: Final = struct.Struct("<8sHHIqqqqiII")
_CRC: Final = struct.Struct("<I")
_PART: Final = 32 << 10
_OFFSET: Final = re.compile(r"(?<=offset )[0-9]+")


class DamagedTimeIndexError(StorageError):
    """A file that is not an index, or incomplete, and will stay so."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The recording of an index, and the last request and session that recorded it.

    The Java archive changes the two ids of a request also when it describes the recording to a
    client: equal ids prove that nothing changed, different ones prove nothing.
    """

    recording_id: int
    start_timestamp_ms: int
    control_session_id: int
    correlation_id: int
    session_id: int

    @classmethod
    def of(cls, entry: CatalogEntry) -> Provenance:
        """Return the provenance in a recording's current entry."""
        control_session_id, correlation_id, *_ = layout.DESCRIPTOR_BLOCK.unpack_from(entry.body)
        start_timestamp_ms = entry.descriptor.start_timestamp_ms
        session_id = entry.descriptor.session_id
        return cls(
            entry.recording_id, start_timestamp_ms, control_session_id, correlation_id, session_id
        )

    def is_same_recording(self, other: Provenance) -> bool:
        """Whether both are of one recording."""
        return (self.recording_id, self.start_timestamp_ms) == (
            other.recording_id,
            other.start_timestamp_ms,
        )

    def encode(self) -> bytes:
        """Return the header of a file with this provenance."""
        return _with_crc(
            _HEADER.pack(
                MAGIC,
                VERSION,
                POINT_LENGTH,
                0,
                self.recording_id,
                self.start_timestamp_ms,
                self.control_session_id,
                self.correlation_id,
                self.session_id,
                0,
                0,
            )
        )


@dataclass(frozen=True, slots=True)
class TimeIndexFile:
    """The content of a time index file.

    Attributes:
        path: the file.
        provenance: whose it is.
        points: in the order of the file.
    """

    path: Path
    provenance: Provenance
    points: TimePoints


def time_index_name(recording_id: int) -> str:
    """Name the file of a recording."""
    return f"aerotape-{recording_id}.time-index"


def time_index_path(archive_dir: Path, recording_id: int) -> Path:
    """Return the path of a recording's file."""
    return archive_dir / time_index_name(recording_id)


def read_time_index(path: Path) -> TimeIndexFile | None:
    """Read a file, None when there is none. It may be written to meanwhile.

    Raises:
        StorageError: it cannot be read, or is damaged; the message says what to do.
    """
    parsed = parse_parts(path, read_parts(path))
    if parsed is None:
        return None
    provenance, parts = parsed
    return TimeIndexFile(path, provenance, TimePoints.in_order(parts))


def read_parts(path: Path) -> Iterator[bytes]:
    """Read a file a part at a time, nothing when there is none (StorageError).

    The first part begins with the header, and all but the last end with a point.
    """
    with StorageErrors(f"cannot read time index {path}", path):
        try:
            file = open_regular_file(path)
        except FileNotFoundError:
            return
        with file:
            length = HEADER_LENGTH + _PART
            while len(part := file.read(length)) == length:
                yield part
                length = _PART
            yield part


def parse_parts(
    path: Path, parts: Iterator[bytes]
) -> tuple[Provenance, Iterator[TimePoints]] | None:
    """Parse a file a part at a time, None when there is none.

    Args:
        path: the file.
        parts: of it, as of `read_parts`.

    Raises:
        StorageError: it cannot be read, or is damaged; also by iterating over the points.
    """
    if (first := next(parts, None)) is None:
        return None
    provenance = parse_provenance(path, first)
    return provenance, _parts_of_points(path, chain([first[HEADER_LENGTH:]], parts))


def _parts_of_points(path: Path, parts: Iterator[bytes]) -> Iterator[TimePoints]:
    last = bad = b""  # the last point, and after it the first one that fails its checksum
    begin = bad_begin = HEADER_LENGTH
    for part in parts:
        data = last + bad + part
        points, damage = TimePoints.parse(data)
        if damage:
            before = (bad_begin if bad else begin) - len(last)
            raise _damaged(path, _OFFSET.sub(partial(_later, before), damage))
        yield points[len(last) // POINT_LENGTH :]
        if not bad:
            end = len(points) * POINT_LENGTH
            bad_begin = begin - len(last) + end
            last, bad = data[max(end - POINT_LENGTH, 0) : end], data[end : end + POINT_LENGTH]
            bad = bad if len(bad) == POINT_LENGTH else b""
        begin += len(part)


def _later(before: int, offset: re.Match[str]) -> str:
    return str(before + int(offset[0]))


def write_time_index(path: Path, provenance: Provenance, points: Iterable[TimePoint]) -> None:
    """Write or replace a file.

    Raises:
        StorageError: it cannot be written; an existing one is unchanged.
    """
    # Not forced to storage: losing the file loses no recorded data.
    with StorageErrors(f"cannot write time index {path}", path):
        write_atomically(path, provenance.encode() + TimePoints.of(points).encode())


def _with_crc(data: bytes) -> bytes:
    return data + _CRC.pack(zlib.crc32(data))


def parse_provenance(path: Path, data: bytes) -> Provenance:
    """Parse the header of a file (StorageError)."""
    header = data[:HEADER_LENGTH]
    if len(header) < HEADER_LENGTH or header[: len(MAGIC)] != MAGIC:
        raise _damaged(path, "it does not begin as one")
    if _CRC.unpack_from(header, HEADER_LENGTH - _CRC.size)[0] != zlib.crc32(header[: -_CRC.size]):
        raise _damaged(path, "its header fails its checksum")
    _, version, point_length, _, *fields = _HEADER.unpack_from(header)
    if (version, point_length) != (VERSION, POINT_LENGTH):
        raise StorageError(
            f"time index {path} has version {version}, known is {VERSION}: use the version of "
            "aerotape that wrote it",
            path,
        )
    return Provenance(*fields[:5])


def _damaged(path: Path, why: str) -> DamagedTimeIndexError:
    return DamagedTimeIndexError(
        f"time index {path} is damaged, {why}: it is ignored; rebuild it with "
        "`aerotape tool DIR time-index ID --rebuild`, or remove it",
        path,
    )
