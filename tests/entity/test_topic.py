"""The recordings of a topic."""

from __future__ import annotations

import pytest

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.entity.partition import Partition
from aerotape.entity.topic import recordings_of
from aerotape.errors import EntityError


def recording_of(recording_id: int, partition: Partition) -> RecordingDescriptor:
    channel = partition.channel("aeron:ipc")
    return RecordingDescriptor(
        recording_id=recording_id,
        start_timestamp_ms=0,
        stop_timestamp_ms=0,
        start_position=0,
        stop_position=64,
        initial_term_id=0,
        segment_file_length=65536,
        term_buffer_length=65536,
        mtu_length=1408,
        session_id=1,
        stream_id=partition.stream_id,
        stripped_channel=channel,
        original_channel=channel,
        source_identity="aeron:ipc",
    )


def test_recordings_of_two_kinds_of_a_topic_are_named() -> None:
    """The error says which recordings there are of which number of partitions and type."""
    partitions = [Partition("t", 0, 3, True), *(Partition("t", index, 2) for index in range(2))]
    recordings = [recording_of(7 + at, partition) for at, partition in enumerate(partitions)]
    with pytest.raises(EntityError) as refused:
        recordings_of("t", recordings)
    assert str(refused.value) == (
        "topic t has 3 partitions of type PD_JOURNAL (recordings 7) and 2 partitions of type "
        "VD_JOURNAL (recordings 8, 9): purge those that are not its log"
    )
