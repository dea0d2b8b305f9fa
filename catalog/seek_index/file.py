"""The seek index file: at which position a recording has which record of a raft journal.

``aerotape-<recordingId>.seek-index`` lies beside the segment files; the Java archive and
ArchiveTool ignore names that do not end in ``.rec`` or ``.del``. All numbers are little endian.

The header, 64 bytes:

======  =====================================================================================
offset
======  =====================================================================================
0       magic, ``AEROSEEK``
8       version (uint16), 1
10      length of a point (uint16), 32
12      zero (uint32)
16      recording id (int64)
24      start timestamp of the recording, epoch milliseconds (int64): the file is of another
        recording if it is not that of the catalog
32      zero, up to byte 59
60      CRC-32 of the bytes before it (uint32)
======  =====================================================================================

Points follow, 32 bytes each, by ascending index and position, one for about every 1024 records:

======  =====================================================================================
offset
======  =====================================================================================
0       index of the record (uint64)
8       asqn of the record (int64), -1 if it has none
16      position of the message that holds it (int64)
24      zero (uint32)
28      CRC-32 of the bytes before it (uint32)
======  =====================================================================================

A recording may change after the file was written: it is truncated, extended or purged, by an
archive that does not know of the file. So a reader uses a point only if the record at its position
has its index and asqn. Losing the file loses no data.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aerotape.catalog.durability import write_atomically
from aerotape.errors import StorageErrors

MAGIC: Final = b"AEROSEEK"
VERSION: Final = 1
HEADER_LENGTH: Final = 64
POINT_LENGTH: Final = 32
RECORDS_PER_POINT: Final = 1024
NO_ASQN: Final = -1

_HEADER: Final = struct.Struct("<8sHHIqq28x")
_POINT: Final = struct.Struct("<QqqI")
_CRC: Final = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class SeekPoint:
    """A record and its place.

    Attributes:
        index: of the record.
        asqn: of the record; -1 if it has none.
        position: of its message in the recording, bytes.
    """

    index: int
    asqn: int
    position: int

    def encode(self) -> bytes:
        """Return the point as in the file."""
        return _with_crc(_POINT.pack(self.index, self.asqn, self.position, 0))


def seek_index_name(recording_id: int) -> str:
    """Name the file of a recording."""
    return f"aerotape-{recording_id}.seek-index"


def seek_index_path(archive_dir: Path, recording_id: int) -> Path:
    """Return the path of a recording's file."""
    return archive_dir / seek_index_name(recording_id)


def encode_seek_index(
    recording_id: int, start_timestamp_ms: int, points: Sequence[SeekPoint]
) -> bytes:
    """Return the content of a file."""
    header = _HEADER.pack(MAGIC, VERSION, POINT_LENGTH, 0, recording_id, start_timestamp_ms)
    return b"".join((_with_crc(header), *(point.encode() for point in points)))


def decode_seek_index(
    data: bytes, recording_id: int, start_timestamp_ms: int
) -> list[SeekPoint] | None:
    """Return the points of a file; None if it is damaged, or of another recording or version."""
    if len(data) < HEADER_LENGTH or len(data) % POINT_LENGTH or not _is_whole(data[:HEADER_LENGTH]):
        return None
    expected = (MAGIC, VERSION, POINT_LENGTH, 0, recording_id, start_timestamp_ms)
    if _HEADER.unpack_from(data) != expected:
        return None
    points: list[SeekPoint] = []
    for offset in range(HEADER_LENGTH, len(data), POINT_LENGTH):
        point = SeekPoint(*_POINT.unpack_from(data, offset)[:3])
        if not _is_whole(data[offset : offset + POINT_LENGTH]) or (
            points and (point.index <= points[-1].index or point.position <= points[-1].position)
        ):
            return None
        points.append(point)
    return points


def write_seek_index(
    archive_dir: Path, recording_id: int, start_timestamp_ms: int, points: Sequence[SeekPoint]
) -> Path:
    """Write or replace a file.

    Raises:
        StorageError: it cannot be written; an existing one is unchanged.
    """
    path = seek_index_path(archive_dir, recording_id)
    with StorageErrors(f"cannot write seek index {path}", path):
        # Not forced to storage: losing the file loses no recorded data.
        write_atomically(path, encode_seek_index(recording_id, start_timestamp_ms, points))
    return path


def _with_crc(data: bytes) -> bytes:
    return data + _CRC.pack(zlib.crc32(data))


def _is_whole(data: bytes) -> bool:
    return bool(_CRC.unpack_from(data, len(data) - _CRC.size)[0] == zlib.crc32(data[: -_CRC.size]))
