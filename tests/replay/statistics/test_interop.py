"""Statistics compared with a replay of the same recording to a Java client."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.daemon import archives
from support.daemon.control_rig import await_true
from support.jvm.java import JavaClient

from aerotape.replay.offline.directory import open_directory
from aerotape.replay.statistics.model import RecordingStatistics

# Starts in the middle of the third term: the recording's start position is not 0.
CHANNEL = "aeron:ipc?term-length=65536|init-term-id=5|term-id=7|term-offset=4096"
START_POSITION = 2 * 65_536 + 4096
STREAM_ID, SEED, COUNT, MAX_LENGTH = 33, 11, 400, 4000
SEGMENT_LENGTH = 131_072


def agree(archive_dir: Path, client: JavaClient, recording_id: int) -> RecordingStatistics:
    """Assert that a replay and the offline reader return what the statistics count."""
    recording = open_directory(archive_dir).recording(recording_id)
    stats = recording.stats(bins=30)
    begin, length = stats.from_position, stats.length_bytes
    replay = client.call("replay", recording_id, begin, length, "aeron:ipc", 99)
    replayed = client.poll(replay, COUNT)
    client.close_resource(replay)
    assert (stats.messages, stats.payload_bytes) == (replayed["count"], replayed["bytes"])
    table = recording.to_arrow(columns=["position", "length"])
    lengths = table.column("length").to_pylist()
    assert (stats.min_bytes, stats.max_bytes) == (min(lengths), max(lengths))
    places = table.column("position").to_pylist()
    for part in stats.bins:
        inside = sum(part.from_position <= place < part.to_position for place in places)
        assert part.messages == inside
    # Frames have 32 bytes of header and begin at multiples of 32.
    frames = stats.length_bytes - stats.padding_bytes
    slack = frames - stats.payload_bytes - 32 * (stats.fragments + stats.incomplete_fragments)
    assert 0 <= slack < 32 * stats.fragments or stats.incomplete_fragments
    assert (stats.gap_count, stats.filler_frames) == (0, 0)
    return stats


@pytest.mark.parametrize("kind", archives.KINDS)
def test_a_replay_to_a_java_client(
    kind: archives.Kind, java_client: Callable[[Path | str], JavaClient]
) -> None:
    """They agree for live, stopped, truncated and purged recordings, with fragments and padding."""
    properties = {
        "aeron.archive.record.checksum": "io.aeron.archive.checksum.Crc32c",
        "aeron.archive.segment.file.length": str(SEGMENT_LENGTH),
    }
    with archives.serve(kind, properties) as archive:
        client = java_client(archive.aeron_dir)
        client.connect(archive.control_channel)
        client.call("startRecording", "aeron:ipc", STREAM_ID, "LOCAL")
        publication = client.add_exclusive_publication(CHANNEL, STREAM_ID)
        counter = client.recording_counter(publication["sessionId"])
        recording_id = counter["recordingId"]
        offered = client.offer(publication, seed=SEED, count=COUNT, max_length=MAX_LENGTH)
        client.await_counter(counter["counterId"], offered["position"])
        live = agree(archive.archive_dir, client, recording_id)
        assert (live.from_position, live.to_position) == (START_POSITION, offered["position"])
        assert live.messages == COUNT
        assert live.fragmented_messages > 50 and live.padding_frames > 5
        assert live.duration_s is not None

        client.close_resource(publication)
        client.call("stopRecording", "aeron:ipc", STREAM_ID)
        await_true(lambda: client.call("getStopPosition", recording_id) == offered["position"])
        stopped = agree(archive.archive_dir, client, recording_id)
        assert stopped.lengths == live.lengths

        recording = open_directory(archive.archive_dir).recording(recording_id)
        cut = next(m.end_position for i, m in enumerate(recording.messages()) if i == 299)
        client.call("truncateRecording", recording_id, cut)
        await_true(lambda: client.call("getStopPosition", recording_id) == cut)
        assert agree(archive.archive_dir, client, recording_id).messages == 300

        purged = 2 * 65_536 + 2 * SEGMENT_LENGTH
        client.call("purgeSegments", recording_id, purged)
        await_true(lambda: client.call("getStartPosition", recording_id) == purged)
        rest = agree(archive.archive_dir, client, recording_id)
        assert rest.from_position == purged
        assert 0 < rest.messages < 300
