"""The header of a frame and its position."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pytest

from aerotape.frame_header import (
    TYPE_DATA,
    UNFRAGMENTED,
    FrameHeader,
    align_frame,
    is_frame_at,
    term_id_at,
    to_int32,
)

HEADER = FrameHeader(100, 0, UNFRAGMENTED, TYPE_DATA, 64, -7, 1001, (1 << 31) - 1, 42)


@dataclass(frozen=True)
class Stream:
    """A stream whose second term has the largest id."""

    initial_term_id: int = (1 << 31) - 2
    term_buffer_length: int = 65536
    stream_id: int = 1001


def test_a_header_is_laid_out_as_aerons() -> None:
    """The bytes are those of DataHeaderFlyweight, and decode to the same fields."""
    encoded = HEADER.encode()
    assert encoded == struct.pack("<iBBHiiiiq", 100, 0, 0xC0, 1, 64, -7, 1001, 2147483647, 42)
    assert FrameHeader.decode(b"x" * 32 + encoded, 32) == HEADER


@pytest.mark.parametrize(
    ("position", "term_id"),
    [(0, 2147483646), (65536, 2147483647), (2 * 65536 - 32, 2147483647), (2 * 65536, -2147483648)],
)
def test_term_ids_wrap_around(position: int, term_id: int) -> None:
    """After the largest term id comes the smallest."""
    assert term_id_at(Stream(), position) == term_id


def test_a_header_is_the_frame_of_one_position_of_one_stream() -> None:
    """Term offset, term id and stream id must all match the position."""
    assert is_frame_at(HEADER, Stream(), 65536 + 64)
    assert not is_frame_at(HEADER, Stream(), 64)
    assert not is_frame_at(HEADER, Stream(), 65536 + 96)
    assert not is_frame_at(HEADER, Stream(stream_id=1002), 65536 + 64)


def test_integers_and_lengths() -> None:
    """Integers are reduced to their low 32 bits, lengths rounded up to the next multiple of 32."""
    assert [to_int32(n) for n in (5, 1 << 31, -1, (1 << 32) + 3)] == [5, -(1 << 31), -1, 3]
    assert [align_frame(n) for n in (0, 1, 32, 33)] == [0, 32, 32, 64]
