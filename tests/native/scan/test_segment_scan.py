"""The native scan over segment files that `support.builders.segment_builder` wrote byte by byte."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders.built_archive import fill
from support.builders.segment_builder import BEGIN, END, PAD, BuiltMessage, SegmentBuilder

from aerotape import _native
from aerotape.errors import SegmentError


def tuples(scan: _native.SegmentScan) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    while (batch := scan.next_messages()) is not None:
        rows.extend(batch)
    return rows


def expected(messages: list[BuiltMessage]) -> list[tuple[Any, ...]]:
    return [
        (m.position, m.end_position, m.term_id, m.term_offset, m.flags, m.reserved_value, m.payload)
        for m in messages
    ]


def test_arrow_columns_equal_the_tuples(tmp_path: Path) -> None:
    """All eleven columns have design.md's names and types and the written values."""
    pyarrow = pytest.importorskip("pyarrow")
    builder = SegmentBuilder(recording_id=3)
    fill(builder, 400).write(tmp_path)
    result = builder.scan(tmp_path, batch_rows=37)
    batches = []
    while (batch := result.next_batch()) is not None:
        batches.append(pyarrow.record_batch(batch))
    assert [batch.num_rows for batch in batches] == [37] * 10 + [30]
    table = pyarrow.Table.from_batches(batches)
    assert [(field.name, str(field.type), field.nullable) for field in table.schema] == [
        ("recording_id", "int64", False), ("position", "int64", False),
        ("end_position", "int64", False), ("stream_id", "int32", False),
        ("session_id", "int32", False), ("term_id", "int32", False),
        ("term_offset", "int32", False), ("flags", "int32", False),
        ("reserved_value", "int64", False), ("length", "int32", False),
        ("payload", "binary", False),
    ]  # fmt: skip
    assert pyarrow.schema(result.schema) == table.schema
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (3, m.position, m.end_position, 1001, -42, m.term_id, m.term_offset, m.flags,
         m.reserved_value, len(m.payload), m.payload)
        for m in builder.messages
    ]  # fmt: skip


def test_only_the_requested_columns_are_built(tmp_path: Path) -> None:
    """Columns are in the requested order, lengths also without payloads."""
    pyarrow = pytest.importorskip("pyarrow")
    builder = SegmentBuilder()
    fill(builder, 50).write(tmp_path)
    scan = builder.scan(tmp_path, columns=["length", "position"])
    batch = pyarrow.record_batch(scan.next_batch())
    assert batch.schema.names == ["length", "position"]
    assert batch.column(0).to_pylist() == [len(m.payload) for m in builder.messages]
    assert batch.column(1).to_pylist() == [m.position for m in builder.messages]


def test_batches_end_at_the_byte_limit(tmp_path: Path) -> None:
    """A batch ends with the message that reaches `batch_bytes`, so memory is bounded."""
    builder = SegmentBuilder()
    for _ in range(100):
        builder.message(bytes(1000))
    builder.write(tmp_path)
    result = builder.scan(tmp_path, batch_bytes=2500)
    sizes = []
    while (batch := result.next_messages()) is not None:
        sizes.append(len(batch))
    assert sizes == [3] * 33 + [1]


def test_large_term_with_frames_across_windows(tmp_path: Path) -> None:
    """Frames that straddle the reading window and padding longer than it are handled."""
    builder = SegmentBuilder(term_length=4 << 20, segment_length=4 << 20, mtu_length=65_504)
    rng = random.Random(5)
    for _ in range(40):
        builder.message(rng.randbytes(60_001))
    builder.pad_term()
    builder.message(b"after the padding")
    builder.write(tmp_path)
    assert tuples(builder.scan(tmp_path)) == expected(builder.messages)


@given(st.lists(st.integers(0, 1_200_000), max_size=12), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_adjacent_ranges_return_each_message_exactly_once(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], start_terms: int
) -> None:
    """However a recording is divided into adjacent ranges, together they return every message
    once."""
    builder, archive_dir = _shared(tmp_path_factory, start_terms)
    inside = {min(max(cut, builder.start_position), builder.position) for cut in cuts}
    edges = sorted({builder.start_position, builder.position} | inside)
    rows = []
    for begin, end in pairwise(edges):
        part = builder.scan(archive_dir, from_position=begin, to_position=end)
        rows.extend(tuples(part))
        assert part.skipped_fragments == 0
    assert rows == expected(builder.messages)


_SHARED: dict[int, tuple[SegmentBuilder, Path]] = {}


def _shared(factory: pytest.TempPathFactory, start_terms: int) -> tuple[SegmentBuilder, Path]:
    if start_terms not in _SHARED:
        builder = SegmentBuilder(start_position=start_terms * 65_536 + start_terms * 320)
        archive_dir = factory.mktemp("recording")
        fill(builder, 400, start_terms).write(archive_dir)
        _SHARED[start_terms] = builder, archive_dir
    return _SHARED[start_terms]


def test_fragments_without_a_beginning_are_skipped_and_counted(tmp_path: Path) -> None:
    """A recording that joined in the middle of a message returns the messages after it."""
    builder = SegmentBuilder(start_position=4096)
    builder.frame(b"middle", flags=0)
    builder.frame(b"end", flags=END)
    builder.message(b"whole")
    builder.write(tmp_path)
    result = builder.scan(tmp_path)
    assert [row[-1] for row in tuples(result)] == [b"whole"]
    assert (result.skipped_fragments, result.unfinished_fragments) == (2, 0)


def test_a_message_broken_off_by_padding_is_skipped(tmp_path: Path) -> None:
    """A publisher that ended within a message leaves its beginning and padding: not a message."""
    builder = SegmentBuilder()
    builder.message(b"before")
    builder.frame(b"begin", flags=BEGIN)
    builder.frame(b"middle", flags=0)
    builder.frame(b"", frame_type=PAD, length=320)
    builder.frame(b"lost end", flags=END)
    builder.frame(b"begin again", flags=BEGIN)
    builder.message(b"after")
    builder.frame(b"begin at the term's end", flags=BEGIN)
    builder.pad_term()
    builder.frame(b"end in the next term", flags=END)
    builder.write(tmp_path)
    result = builder.scan(tmp_path)
    assert [row[-1] for row in tuples(result)] == [b"before", b"after"]
    assert result.skipped_fragments == 6


def test_an_incomplete_message_at_the_recorded_position_is_not_returned(tmp_path: Path) -> None:
    """A live recording may end between fragments: they are counted separately and not returned."""
    builder = SegmentBuilder()
    builder.message(b"whole")
    builder.frame(b"begin", flags=BEGIN)
    builder.frame(b"middle", flags=0)
    builder.write(tmp_path)
    result = builder.scan(tmp_path)
    assert [row[-1] for row in tuples(result)] == [b"whole"]
    assert (result.skipped_fragments, result.unfinished_fragments) == (0, 2)


def test_flags_of_the_first_and_last_fragment_are_joined(tmp_path: Path) -> None:
    """A message has the flags of its first and last frame, as in Aeron's assembler."""
    builder = SegmentBuilder()
    builder.frame(b"a", flags=BEGIN | 0x08)
    builder.frame(b"b", flags=0x02)
    builder.frame(b"c", flags=END | 0x01)
    builder.write(tmp_path)
    assert [row[4] for row in tuples(builder.scan(tmp_path))] == [0xC9]


def test_nothing_after_the_limit_is_read(tmp_path: Path) -> None:
    """Data that the archive writes after the recorded position, whole or not, is not read."""
    builder = SegmentBuilder()
    builder.message(b"first")
    limit = builder.position
    builder.frame(b"\xff" * 500, length=1 << 30)
    builder.frames = {position: frame[:600] for position, frame in builder.frames.items()}
    builder.write(tmp_path)
    result = builder.scan(tmp_path, to_position=limit, limit_position=limit)
    assert [row[-1] for row in tuples(result)] == [b"first"]


@pytest.mark.parametrize(
    ("at", "patch", "complaint"),
    [
        (0, b"\0\0\0\0", "no frame here"),
        (0, b"\xff\xff\xff\xff", "no frame here"),
        (0, b"\x05\0\0\0", "less than a header"),
        (0, b"\0\0\0\x7f", "beyond the end of the term"),
        (6, b"\x07", "frame type 7"),
        (8, b"\x21", "not a frame of this place"),
        (16, b"\x63", "not a frame of this place"),
        (20, b"\x63", "not a frame of this place"),
    ],
)
def test_invalid_headers_are_reported(
    tmp_path: Path, at: int, patch: bytes, complaint: str
) -> None:
    """Invalid lengths, types, term ids and offsets are an error and never a crash."""
    builder = SegmentBuilder()
    fill(builder, 400).write(tmp_path)
    victim = builder.messages[30]
    path = builder.segment_path(tmp_path, victim.position)
    offset = victim.position - builder.segment_base(victim.position)
    data = bytearray(path.read_bytes())
    data[offset + at : offset + at + len(patch)] = patch
    path.write_bytes(data)
    with pytest.raises(SegmentError, match=complaint) as caught:
        tuples(builder.scan(tmp_path))
    assert caught.value.position == victim.position


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"term_length": 65_537}, "term length 65537"),
        ({"segment_length": 2 << 30}, "segment length"),
        ({"segment_length": 65_536, "term_length": 131_072}, "less than term length"),
        ({"start_position": 33}, "not a frame boundary"),
        ({"from_position": 10, "to_position": 9}, "not a range"),
        ({"columns": ["payload", "colour"]}, 'unknown column "colour"'),
        ({"columns": ["length", "length"]}, "named twice"),
        ({"columns": []}, "at least one column"),
        ({"checksum": "md5"}, "unknown checksum"),
        ({"batch_rows": 0}, "batch_rows"),
        ({"batch_bytes": (1 << 30) + 1}, "batch_bytes"),
    ],
)
def test_invalid_arguments_are_refused(
    tmp_path: Path, changes: dict[str, object], complaint: str
) -> None:
    """Each invalid argument is reported before any file is opened."""
    with pytest.raises(ValueError, match=complaint):
        SegmentBuilder().scan(tmp_path, **changes)


def test_a_scan_can_begin_at_the_end_of_a_message(tmp_path: Path) -> None:
    """From a known boundary, a scan returns the same as a search from the start of the term, and
    does not read preceding bytes: damage there is not detected."""
    builder = SegmentBuilder()
    fill(builder, 60).write(tmp_path)
    message = next(m for m in builder.messages if m.term_offset > 20_000)
    known = builder.scan(tmp_path, from_position=message.position, from_boundary=True)
    assert tuples(known) == expected(builder.messages)[builder.messages.index(message) :]
    path = builder.segment_path(tmp_path, message.position)
    data = bytearray(path.read_bytes())
    before = message.position - message.term_offset - builder.segment_base(message.position)
    data[before : before + 64] = bytes(64)
    path.write_bytes(data)
    known = builder.scan(tmp_path, from_position=message.position, from_boundary=True)
    assert tuples(known)[0][0] == message.position
    with pytest.raises(SegmentError, match=rf"position {message.position - message.term_offset}"):
        tuples(builder.scan(tmp_path, from_position=message.position))


def test_a_missing_piece_ends_the_scan_after_the_preceding_messages() -> None:
    """A missing piece is an error with its position, after all whole messages."""
    builder = fill(SegmentBuilder(), 20)
    half = builder.messages[10].position + 32
    scan = builder.scan(Path("s3://b/a"), given=True, archive_dir="s3://b/a")
    data = b"".join(builder.frames.values())
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


def test_bytes_that_were_not_requested_are_refused(tmp_path: Path) -> None:
    """When the scan has not requested them, and for a scan that reads files."""
    builder = fill(SegmentBuilder(), 5)
    for is_given in (True, False):
        scan = builder.scan(tmp_path, given=is_given)
        with pytest.raises(ValueError, match="no bytes are wanted"):
            scan.give(b"1")
