"""The seek index file."""

from __future__ import annotations

import zlib
from pathlib import Path

from aerotape.catalog.indexes import remove_indexes
from aerotape.catalog.seek_index.file import (
    SeekPoint,
    decode_seek_index,
    encode_seek_index,
    seek_index_path,
    write_seek_index,
)

POINTS = [SeekPoint(5, -1, 0), SeekPoint(6, 1 << 62, 64), SeekPoint((1 << 64) - 1, 7, 1 << 40)]


def with_crc(data: bytes) -> bytes:
    return data + zlib.crc32(data).to_bytes(4, "little")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """The layout is that of the module's description."""
    path = write_seek_index(tmp_path, 3, 1_700, POINTS)
    assert path == seek_index_path(tmp_path, 3) and path.name == "aerotape-3.seek-index"
    data = path.read_bytes()
    header = b"AEROSEEK" + bytes([1, 0, 32, 0, 0, 0, 0, 0]) + (3).to_bytes(8, "little")
    assert data[:64] == with_crc((header + (1_700).to_bytes(8, "little")).ljust(60, b"\0"))
    second = (6).to_bytes(8, "little") + (1 << 62).to_bytes(8, "little") + bytes([64]) + bytes(11)
    assert data[96:128] == with_crc(second)
    assert decode_seek_index(data, 3, 1_700) == POINTS
    remove_indexes(tmp_path, 3)
    remove_indexes(tmp_path, 3)
    assert not path.exists()


def test_another_recording_or_a_change_is_noticed() -> None:
    """Every bit is under a checksum, and points ascend."""
    data = encode_seek_index(3, 1_700, POINTS)
    assert decode_seek_index(data, 4, 1_700) is None
    assert decode_seek_index(data, 3, 1_701) is None
    for bit in range(len(data) * 8):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert decode_seek_index(bytes(changed), 3, 1_700) is None, bit
    for length in range(len(data)):
        found = decode_seek_index(data[:length], 3, 1_700)
        assert found in (None, POINTS[: (length - 64) // 32]), length
    for descending in ([POINTS[1], POINTS[0]], [POINTS[0], POINTS[0]]):
        assert decode_seek_index(encode_seek_index(3, 1, descending), 3, 1) is None
