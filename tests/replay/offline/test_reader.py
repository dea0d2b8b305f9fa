"""Offline reading of recordings through `aerotape.replay.offline.reader`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

from aerotape.errors import ConfigurationError
from aerotape.message import Message
from aerotape.replay.offline.directory import open_directory
from aerotape.replay.offline.reader import recording_range
from aerotape.replay.offline.selection import Selection


def expected(builder: SegmentBuilder) -> list[Message]:
    return [
        Message(
            m.payload, m.end_position, builder.session_id, builder.stream_id, m.term_id,
            m.term_offset, m.flags, m.reserved_value, m.position, builder.recording_id,
        )
        for m in builder.messages
    ]  # fmt: skip


def test_messages_of_every_recording(tmp_path: Path) -> None:
    """Each recording of a directory has its messages with its ids."""
    builders = [
        fill(SegmentBuilder(stream_id=10, session_id=5), 60),
        fill(SegmentBuilder(start_position=98_304, stream_id=11), 90, seed=2),
        SegmentBuilder(start_position=64, stream_id=12),
    ]
    for builder in builders:
        add_recording(tmp_path, builder)
    read = [list(recording.messages()) for recording in open_directory(tmp_path).recordings()]
    assert read == [expected(builder) for builder in builders]
    assert [len(messages) for messages in read] == [60, 90, 0]
    assert read[0][7].length == len(read[0][7].payload)


def test_a_range_has_the_messages_that_begin_in_it(tmp_path: Path) -> None:
    """Messages that begin at `from_position` or later, but below `to_position`, are in the
    range."""
    builder = fill(SegmentBuilder(), 100)
    add_recording(tmp_path, builder)
    recording = open_directory(tmp_path).recording(0)
    all_messages = expected(builder)
    begin, end = all_messages[20].position, all_messages[50].position
    assert list(recording.messages(begin, end)) == all_messages[20:50]
    assert list(recording.messages(begin + 1, end + 1)) == all_messages[21:51]
    assert list(recording.messages(end)) == all_messages[50:]
    assert list(recording.messages(to_position=begin)) == all_messages[:20]
    assert list(recording.messages(1 << 60)) == []


def test_a_live_recording_is_read_to_its_last_whole_frame(tmp_path: Path) -> None:
    """A recording without a stop position is read up to the last complete frame on disk."""
    builder = fill(SegmentBuilder(), 80)
    add_recording(tmp_path, builder, live=True)
    recording = open_directory(tmp_path).recording(0)
    messages = recording.messages()
    first = next(messages)
    fill(builder, 10, seed=9).write(tmp_path)
    assert [first, *messages] == expected(builder)[:80]
    assert list(open_directory(tmp_path).recording(0).messages()) == expected(builder)


def test_batches_hold_the_same_messages(tmp_path: Path) -> None:
    """Arrow batches of any size have the messages of the reader."""
    pyarrow = pytest.importorskip("pyarrow")
    add_recording(tmp_path, fill(SegmentBuilder(), 70))
    recording = open_directory(tmp_path).recording(0)
    table = pyarrow.Table.from_batches(recording.to_batches(1000, batch_rows=9))
    rows = [{**m._asdict(), "length": m.length} for m in recording.messages(1000)]
    assert table.to_pylist() == [{name: row[name] for name in table.schema.names} for row in rows]
    batch = next(recording.to_batches(columns=["payload"]))
    assert batch.schema.names == ["payload"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"from_position": -1}, "from_position -1 is negative"),
        ({"checksum": "md5"}, "unknown checksum"),
    ],
)
def test_bad_arguments_are_refused_at_the_call(
    tmp_path: Path, arguments: dict[str, Any], complaint: str
) -> None:
    """A bad argument raises at the call, not at the first message."""
    add_recording(tmp_path, SegmentBuilder())
    recording = open_directory(tmp_path).recording(0)
    with pytest.raises(ConfigurationError, match=complaint):
        recording.messages(**arguments)


def test_ranges_are_limited_to_recorded_positions(tmp_path: Path) -> None:
    """A range never begins before the start position nor ends after the recorded position."""
    builder = fill(SegmentBuilder(start_position=4096), 30)
    add_recording(tmp_path, builder)
    recording = open_directory(tmp_path).recording(0)
    whole = recording_range(recording, Selection(from_position=0, to_position=1 << 62))
    assert (whole.from_position, whole.to_position) == (4096, builder.position)
    assert (whole.limit_position, whole.length) == (builder.position, builder.position - 4096)
    before = recording_range(recording, Selection(to_position=4000))
    assert before.length == 0
