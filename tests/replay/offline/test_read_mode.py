"""Modes: the treatment of messages with a frame that fails its checksum."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import BEGIN, SegmentBuilder, crc32

from aerotape.errors import ConfigurationError, SegmentError
from aerotape.replay.offline.directory import Recording, open_directory
from aerotape.replay.offline.reader import COLUMNS, recording_range

pytest.importorskip("pyarrow")


def flip(builder: SegmentBuilder, archive_dir: Path, position: int, at: int = 32) -> None:
    """Flip a bit of the frame at a position."""
    path = builder.segment_path(archive_dir, position)
    data = bytearray(path.read_bytes())
    data[position - builder.segment_base(position) + at] ^= 1
    path.write_bytes(data)


@pytest.fixture
def built(tmp_path: Path) -> SegmentBuilder:
    """A recording with checksums, some of its messages in several frames."""
    builder = fill(SegmentBuilder(checksum=crc32, start_position=98_304), 200)
    add_recording(tmp_path, builder)
    return builder


@pytest.fixture
def victims(built: SegmentBuilder, tmp_path: Path) -> list[int]:
    """Return the numbers of three damaged messages: in their first, second and all frames."""
    long = [i for i, m in enumerate(built.messages) if len(m.payload) > 3 * 1376]
    short = next(i for i, m in enumerate(built.messages) if i > long[2] and m.payload)
    first, second = built.messages[long[0]], built.messages[long[2]]
    flip(built, tmp_path, first.position)
    flip(built, tmp_path, second.position + 1408)
    flip(built, tmp_path, second.position + 2 * 1408)
    flip(built, tmp_path, built.messages[short].position, at=12)  # the offset of the checksum
    return [long[0], long[2], short]


def recording(tmp_path: Path) -> Recording:
    return open_directory(tmp_path).recording(0)


def test_permissive_has_a_row_with_the_error(
    built: SegmentBuilder, victims: list[int], tmp_path: Path
) -> None:
    """A damaged message is one row: no payload, the reason, and all other fields as stored; other
    messages are unchanged, for any batch size."""
    sound = recording(tmp_path).to_arrow().to_pylist()
    table = recording(tmp_path).to_arrow(checksum="crc-32", mode="PERMISSIVE")
    assert table.column_names == list(COLUMNS)
    rows = table.to_pylist()
    reasons = [row.pop("_corrupt") for row in rows]
    assert [number for number, why in enumerate(reasons) if why] == victims
    assert rows == [
        {**row, "payload": None} if number in victims else row for number, row in enumerate(sound)
    ]
    assert [m.payload for m in built.messages if m.position == rows[0]["position"]] == [
        rows[0]["payload"]
    ]
    for number, bad_frame in zip(victims, (0, 1408, 0), strict=True):
        position = built.messages[number].position + bad_frame
        path = built.segment_path(tmp_path, position)
        assert reasons[number].startswith("recording 0: frame checksum does not match: stored ")
        assert reasons[number].endswith(
            f"(file {path}, offset {position - built.segment_base(position)}, position {position})"
        )
    chosen = recording_range(recording(tmp_path))
    scan = chosen.scan(None, "crc-32", mode="PERMISSIVE", batch_rows=7, batch_bytes=5000)
    import pyarrow

    batches = []
    while (batch := scan.next_batch()) is not None:
        batches.append(pyarrow.record_batch(batch))
    assert pyarrow.Table.from_batches(batches).combine_chunks() == table.combine_chunks()


def test_dropmalformed_leaves_out_and_counts(
    built: SegmentBuilder, victims: list[int], tmp_path: Path
) -> None:
    """Damaged messages are left out, fragmented ones too, and counted."""
    rows = recording(tmp_path).to_arrow(checksum="crc-32", mode="DROPMALFORMED").to_pylist()
    assert [(row["position"], row["payload"]) for row in rows] == [
        (m.position, m.payload) for i, m in enumerate(built.messages) if i not in victims
    ]
    scan = recording_range(recording(tmp_path)).scan(None, "crc-32", mode="DROPMALFORMED")
    while scan.next_messages() is not None:
        pass
    assert (scan.rows, scan.dropped_messages) == (197, 3)


def test_failfast_reports_the_first_bad_frame(
    built: SegmentBuilder, victims: list[int], tmp_path: Path
) -> None:
    """The first bad frame is an error with recording, file, offset and position; what is before
    it comes first."""
    stream = recording(tmp_path).to_batches(checksum="crc-32")
    assert stream.read_next_batch().num_rows == victims[0]
    position = built.messages[victims[0]].position
    with pytest.raises(SegmentError, match="recording 0: frame checksum") as caught:
        stream.read_next_batch()
    assert caught.value.position == position
    assert caught.value.offset == position - built.segment_base(position)
    assert caught.value.path == built.segment_path(tmp_path, position)


@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
def test_cut_ranges_have_the_same_rows(
    built: SegmentBuilder, victims: list[int], tmp_path: Path, mode: Any
) -> None:
    """Adjacent ranges, even if split within a damaged message, return its row at most once."""
    whole = recording(tmp_path).to_arrow(checksum="crc-32", mode=mode).to_pylist()
    inside = built.messages[victims[1]].position + 1408
    edges = [98_304, inside, inside + 64, built.position]
    parts = [
        recording(tmp_path).to_arrow(begin, end, "crc-32", mode=mode).to_pylist()
        for begin, end in pairwise(edges)
    ]
    assert [row for part in parts for row in part] == whole


def test_damage_outside_of_complete_messages_is_no_row(tmp_path: Path) -> None:
    """A damaged first fragment of an incomplete message is counted as an omitted fragment."""
    builder = fill(SegmentBuilder(checksum=crc32), 5)
    position = builder.frame(b"the rest never came", flags=BEGIN)
    builder.pad_term()
    builder.message(b"after")
    add_recording(tmp_path, builder)
    flip(builder, tmp_path, position)
    scan = recording_range(recording(tmp_path)).scan(None, "crc-32", mode="DROPMALFORMED")
    taken = scan.next_messages()
    assert taken is not None
    assert [row[-1] for row in taken] == [m.payload for m in builder.messages]
    assert (scan.dropped_messages, scan.skipped_fragments) == (0, 1)


def test_a_broken_frame_length_is_an_error_in_every_mode(
    built: SegmentBuilder, tmp_path: Path
) -> None:
    """After an invalid length no frame can be found, so that more than a message is lost."""
    flip(built, tmp_path, built.messages[50].position, at=3)
    for mode in ("FAILFAST", "DROPMALFORMED", "PERMISSIVE"):
        with pytest.raises(SegmentError, match="frame length"):
            recording(tmp_path).to_arrow(checksum="crc-32", mode=mode)


def test_invalid_modes_are_refused(built: SegmentBuilder, tmp_path: Path) -> None:
    """Unknown modes, modes without a checksum, and modes for tuples (no error column) are
    refused."""
    with pytest.raises(ConfigurationError, match="unknown mode 'SOME'"):
        recording(tmp_path).to_arrow(checksum="crc-32", mode="SOME")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="give checksum too"):
        recording(tmp_path).to_batches(mode="PERMISSIVE")
    scan = recording_range(recording(tmp_path)).scan(None, "crc-32", mode="PERMISSIVE")
    with pytest.raises(ValueError, match="PERMISSIVE requires batches"):
        scan.next_messages()
