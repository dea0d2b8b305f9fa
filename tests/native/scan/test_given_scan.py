"""The native scan of segment bytes that the caller supplies instead of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import fill
from support.builders.segment_builder import BEGIN, SegmentBuilder, crc32

from aerotape import _native
from aerotape.errors import SegmentError


def scan_of(builder: SegmentBuilder, **changes: Any) -> _native.SegmentScan:
    """Return a scan of a whole recording with supplied bytes, unless `changes` differ."""
    return builder.scan(Path("/nowhere"), **{"given": True, **changes})


def drain(scan: _native.SegmentScan, data: bytes, base: int, piece: int) -> list[Any]:
    """Read all messages, supplying so many bytes at once."""
    rows: list[Any] = []
    while True:
        batch = scan.next_messages()
        if batch is not None:
            rows.extend(batch)
        elif scan.wanted is None:
            return rows
        else:
            at = scan.wanted - base
            scan.give(data[at : at + piece])


def recorded(builder: SegmentBuilder) -> tuple[bytes, int]:
    """Return the recording's bytes and the position of the first."""
    data = bytearray(builder.position - builder.start_position)
    for position, frame in builder.frames.items():
        at = position - builder.start_position
        data[at : at + len(frame)] = frame
    return bytes(data), builder.start_position


@pytest.mark.parametrize("piece", [1000, 4096, 65_536, 1 << 20])
@pytest.mark.parametrize("start_position", [0, 98_304])
def test_supplied_bytes_produce_the_same_messages(
    tmp_path: Path, piece: int, start_position: int
) -> None:
    """With any size of the pieces: fragments, padding and frames cross their boundaries."""
    builder = fill(SegmentBuilder(checksum=crc32, start_position=start_position), 120)
    builder.pad_term()
    fill(builder, 30, seed=2).write(tmp_path)
    of_files = scan_of(builder, archive_dir=str(tmp_path), checksum="crc-32", given=False)
    expected: list[Any] = []
    while (batch := of_files.next_messages()) is not None:
        expected.extend(batch)
    given = scan_of(builder, checksum="crc-32")
    assert drain(given, *recorded(builder), piece) == expected
    assert len(expected) == 150
    assert given.rows == of_files.rows


def test_batches_continue_over_pieces() -> None:
    """A batch continues over pieces until it is full."""
    builder = fill(SegmentBuilder(), 100)
    scan = scan_of(builder, columns=["position"], batch_rows=30)
    data, base = recorded(builder)
    sizes: list[int] = []
    while True:
        batch = scan.next_batch()
        if batch is not None:
            sizes.append(scan.rows - sum(sizes))
        elif scan.wanted is None:
            break
        else:
            scan.give(data[scan.wanted - base :][:3000])
    assert sizes == [30, 30, 30, 10]


def test_a_missing_piece_ends_the_scan_after_the_preceding_messages() -> None:
    """A missing piece is an error with its position, after all whole messages."""
    builder = fill(SegmentBuilder(), 20)
    half = builder.messages[10].position + 32
    scan = scan_of(builder, archive_dir="s3://b/a")
    data, _ = recorded(builder)
    assert scan.next_messages() is None
    scan.give(data[:half])
    assert scan.next_messages() is None
    scan.refuse("it is gone")
    rows = scan.next_messages()
    assert rows is not None
    assert [row[0] for row in rows] == [m.position for m in builder.messages[:10]]
    for _ in range(2):
        with pytest.raises(SegmentError, match=r"recording 0: it is gone \(file s3://b/a/0-0.rec"):
            scan.next_messages()


def test_a_message_without_its_end_is_counted_at_the_limit() -> None:
    """As for files: an incomplete message at the end of the recorded data is not a message."""
    builder = fill(SegmentBuilder(), 5)
    builder.frame(b"the rest never came", flags=BEGIN)
    scan = scan_of(builder)
    assert len(drain(scan, *recorded(builder), 500)) == 5
    assert scan.unfinished_fragments == 1


def test_bytes_that_were_not_requested_are_refused() -> None:
    """When the scan has not requested them, and for a scan that reads files."""
    builder = fill(SegmentBuilder(), 5)
    for given in (True, False):
        scan = scan_of(builder, given=given)
        with pytest.raises(ValueError, match="no bytes are wanted"):
            scan.give(b"1")
