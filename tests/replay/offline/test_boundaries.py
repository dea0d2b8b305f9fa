"""Message boundaries: the last message of a range, and recognising it later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import BEGIN, BuiltMessage, SegmentBuilder

from aerotape.replay.offline.boundaries import LastMessage, last_message, message_checksum
from aerotape.replay.offline.directory import open_directory
from aerotape.replay.offline.reader import RecordingRange, recording_range


@pytest.fixture
def built(tmp_path: Path) -> Iterator[tuple[SegmentBuilder, RecordingRange, Path]]:
    """A recording of several terms that ends within a message, after a term without a message
    end."""
    builder = fill(SegmentBuilder(start_position=98_304), 100)
    builder.pad_term()
    builder.pad_term()
    builder.frame(b"begun and never ended", flags=BEGIN)
    add_recording(tmp_path, builder)
    yield builder, recording_range(open_directory(tmp_path).recording(0)), tmp_path


def ends_with(message: BuiltMessage, count: int = 0) -> LastMessage:
    return LastMessage(message.position, message.end_position, count)


def test_the_last_message_of_a_range(
    built: tuple[SegmentBuilder, RecordingRange, Path],
) -> None:
    """It is found whatever follows: padding, a term of padding, or an incomplete message."""
    builder, whole, _ = built
    messages = builder.messages
    assert last_message(whole) == ends_with(messages[-1])
    assert last_message(whole.part(messages[-1].end_position, whole.to_position)) is None
    middle = whole.part(messages[10].position, messages[20].position + 1)
    assert last_message(middle) == ends_with(messages[20])
    assert last_message(whole.part(messages[5].position, messages[5].position)) is None


def test_limits_cut_between_messages(
    built: tuple[SegmentBuilder, RecordingRange, Path],
) -> None:
    """Limits of bytes or messages are not exceeded, and messages are never cut."""
    builder, whole, _ = built
    messages, start = builder.messages, builder.start_position
    for index in (0, 1, 7, 50, 98):
        size = messages[index].end_position - start
        assert last_message(whole, size) == ends_with(messages[index])
        assert last_message(whole, size + 31) == ends_with(messages[index])
        assert last_message(whole, None, index + 1) == ends_with(messages[index], index + 1)
        assert last_message(whole, size, 1000) == ends_with(messages[index], index + 1)
        assert last_message(whole, 1 << 40, index + 1) == ends_with(messages[index], index + 1)
    assert last_message(whole, messages[0].end_position - start - 1) is None
    assert last_message(whole, None, 1000) == ends_with(messages[-1], 100)
    assert last_message(whole, None, 0) is None


def test_a_message_is_recognised(
    built: tuple[SegmentBuilder, RecordingRange, Path],
) -> None:
    """A checksum of the content without session ids identifies a message."""
    builder, whole, archive_dir = built
    places = [(m.position, m.end_position) for m in builder.messages]
    sums = [message_checksum(whole, *place) for place in places]
    assert None not in sums
    # Equal payloads (the empty ones) differ in the reserved value.
    assert len(set(sums)) == len(sums)
    assert message_checksum(whole, places[3][0], places[4][1]) is None
    assert message_checksum(whole, places[3][0] + 32, places[3][1]) is None
    builder.session_id += 1
    again = SegmentBuilder(start_position=98_304, session_id=77)
    fill(again, 100).write(archive_dir)
    assert [message_checksum(whole, *place) for place in places] == sums
    fill(SegmentBuilder(start_position=98_304), 100, seed=9).write(archive_dir)
    assert not set(sums) & {message_checksum(whole, *place) for place in places}
    builder.segment_path(archive_dir, places[0][0]).unlink()
    assert message_checksum(whole, *places[0]) is None
