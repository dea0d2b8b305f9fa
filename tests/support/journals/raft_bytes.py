"""Journals of raft logs byte for byte, written with `struct` and without the codec under test."""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from pathlib import Path

NAME = "raft-partition-partition-1"
FORMATS = ("1.0", "8.2", "8.3")
# Schema versions of journal and raft entries by format, and bytes of a descriptor.
VERSIONS = {"1.0": 1, "8.2": 1, "8.3": 2}
HEAD_LENGTHS = {"1.0": 29, "8.2": 45, "8.3": 57}
# The worked example of an InitialEntry of Zeebe 1.0.0: term 1, index 1.
EXAMPLE = bytes.fromhex(
    "01 0c00010007000100 f3670f2000000000 2d000000 1000020007000100 0100000000000000"
    "ffffffffffffffff 11000000 0900010008000100 0100000000000000 02"
)


@functools.cache
def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


def crc32c(data: bytes) -> int:
    """CRC-32C bit by bit: Castagnoli's polynomial, reflected, all ones before and after."""
    table = _table()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def message(
    schema_id: int, template_id: int, version: int, block: bytes, rest: bytes = b""
) -> bytes:
    """An SBE message: its header, its block, and what follows."""
    return struct.pack("<HHHH", len(block), template_id, schema_id, version) + block + rest


def blob(data: bytes) -> bytes:
    """Variable data: its length, then the data."""
    return struct.pack("<I", len(data)) + data


def initial(term: int = 1, version: int = 1) -> bytes:
    """A serialized InitialEntry."""
    return message(8, 1, version, struct.pack("<QB", term, 2))


def application(
    lowest: int, highest: int, data: bytes = b"", term: int = 1, version: int = 1
) -> bytes:
    """A serialized ApplicationEntry."""
    entry = message(8, 2, version, struct.pack("<QQ", lowest, highest), blob(data))
    return message(8, 1, version, struct.pack("<QB", term, 0)) + entry


def configuration(
    timestamp: int,
    *groups: Sequence[tuple[int, int, bytes]],
    term: int = 1,
    version: int = 1,
) -> bytes:
    """A serialized ConfigurationEntry; members are type, time of the update, id."""
    rest = b""
    for members in groups:
        rest += struct.pack("<HB", 9, len(members))
        rest += b"".join(struct.pack("<Bq", kind, at) + blob(name) for kind, at, name in members)
    entry = message(8, 4, version, struct.pack("<Q", timestamp), rest)
    return message(8, 1, version, struct.pack("<QB", term, 1)) + entry


def meta(flushed: int, *, version: int = 1, commit_index: int | None = None) -> bytes:
    """A broker's metadata of a partition: term 1, no vote; later releases have a commit index."""
    block = struct.pack("<QQ", 1, flushed)
    if commit_index is not None:
        block += struct.pack("<Q", commit_index)
    return (b"\x01" + message(8, 6, version, block, blob(b""))).ljust(256, b"\0")


def record(index: int, asqn: int, entry: bytes, version: int = 1) -> bytes:
    """A record of a journal."""
    data = message(7, 2, version, struct.pack("<Qq", index, asqn), blob(entry))
    metadata = message(7, 1, version, struct.pack("<qi", crc32c(data), len(data)))
    return b"\x01" + metadata + data


def descriptor(
    journal_format: str,
    segment_id: int,
    index: int,
    size: int,
    last_index: int = 0,
    last_position: int = 0,
) -> bytes:
    """A segment descriptor in a format."""
    block = struct.pack("<QQi", segment_id, index, size)
    if journal_format == "8.3":
        block += struct.pack("<QI", last_index, last_position)
    version = VERSIONS[journal_format]
    body = message(7, 3, version, block)
    if journal_format == "1.0":
        return b"\x01" + body
    return b"\x02" + message(7, 4, version, struct.pack("<q", crc32c(body))) + body


def write_segment(
    folder: Path,
    segment_id: int,
    index: int,
    records: Sequence[bytes],
    *,
    journal_format: str = "8.3",
    size: int = 4096,
    rest: bytes = b"",
) -> Path:
    """Write a segment file, `rest` after its records and zeros to its size; return its path."""
    content = descriptor(journal_format, segment_id, index, size) + b"".join(records) + rest
    path = folder / f"{NAME}-{segment_id}.log"
    path.write_bytes(content.ljust(size, b"\0"))
    return path


def write_journal(folder: Path, counts: Sequence[int] = (3, 4, 2)) -> list[Path]:
    """Write a journal of format 8.3 in segments of so many records; return their paths.

    The first record is an InitialEntry without asqn; the others are application entries of one
    record each, whose positions are one below their index.
    """
    paths, index = [], 1
    for number, count in enumerate(counts, start=1):
        records = []
        for each in range(index, index + count):
            if each == 1:
                records.append(record(1, -1, initial(version=2), 2))
            else:
                data = b"x" * (each * 7 % 40)
                entry = application(each - 1, each - 1, data, version=2)
                records.append(record(each, each - 1, entry, 2))
        paths.append(write_segment(folder, number, index, records))
        index += count
    return paths
