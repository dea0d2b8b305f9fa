"""Segment descriptors, against bytes written with `struct`."""

from __future__ import annotations

import struct

import pytest
from support.journals import raft_bytes as built

from aerotape.codecs.raft.descriptor import Descriptor, decode_descriptor, encode_descriptor
from aerotape.codecs.raft.formats import FORMATS, journal_format
from aerotape.errors import (
    ConfigurationError,
    CorruptJournalError,
    InvalidChecksumError,
    UnknownVersionError,
)


@pytest.mark.parametrize("name", built.FORMATS)
def test_descriptors_byte_for_byte(name: str) -> None:
    """The three layouts have 29, 45 and 57 bytes; the last one also the last index and offset."""
    last = (9, 77) if name == "8.3" else (0, 0)
    expected = built.descriptor(name, 3, 5, 65536, *last)
    assert len(expected) == built.HEAD_LENGTHS[name]
    encoded = encode_descriptor(Descriptor(3, 5, 65536, 9, 77), FORMATS[name])
    assert encoded == expected
    found = decode_descriptor(expected + b"\0\0")
    assert (found.id, found.index, found.max_segment_size) == (3, 5, 65536)
    assert (found.last_index, found.last_position) == last
    assert (found.length, found.format.name) == (len(expected), name)


@pytest.mark.parametrize("name", ["8.2", "8.3"])
def test_a_flipped_bit_is_found(name: str) -> None:
    """Every bit that the checksum covers, and the checksum, in the formats that have one."""
    sound = built.descriptor(name, 3, 5, 65536)
    for at in range(9 * 8, len(sound) * 8):
        damaged = bytearray(sound)
        damaged[at // 8] ^= 1 << at % 8
        with pytest.raises((InvalidChecksumError, CorruptJournalError)):
            decode_descriptor(damaged)


@pytest.mark.parametrize("version", [0, 3, 255])
def test_unknown_versions_are_refused(version: int) -> None:
    """Only versions 1 and 2 are known."""
    with pytest.raises(UnknownVersionError, match=f"version is {version}, expected 1 or 2"):
        decode_descriptor(bytes([version]) + built.descriptor("8.3", 1, 1, 64)[1:])
    with pytest.raises(UnknownVersionError):
        decode_descriptor(b"")


def test_other_messages_are_refused() -> None:
    """A descriptor that is cut, or whose messages are others."""
    for name in built.FORMATS:
        sound = built.descriptor(name, 1, 1, 64)
        with pytest.raises(CorruptJournalError):
            decode_descriptor(sound[:-1])
        with pytest.raises(CorruptJournalError):
            decode_descriptor(sound[:1] + built.record(1, 1, b"")[1:])


def test_later_schema_versions_are_read() -> None:
    """A longer block is skipped, and counts in the length."""
    body = built.message(7, 3, 3, struct.pack("<QQiQI", 1, 2, 64, 3, 4) + b"later")
    metadata = built.message(7, 4, 3, struct.pack("<q", built.crc32c(body)))
    found = decode_descriptor(b"\x02" + metadata + body)
    assert (found.index, found.last_index, found.last_position) == (2, 3, 4)
    assert (found.schema_version, found.length, found.format.name) == (3, 62, "8.3")


def test_unknown_formats_are_refused() -> None:
    """An error names the formats that there are."""
    with pytest.raises(ConfigurationError, match=r"'8.4': expected one of 1.0, 8.2, 8.3"):
        journal_format("8.4")
