"""Directories of the Java archive, read offline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.jvm.java import JavaArchive, JavaClient
from support.model.messages import digest, messages

from aerotape.errors import SegmentError
from aerotape.replay.offline.directory import open_directory

if TYPE_CHECKING:
    from aerotape.frame_header import ChecksumName

StartClient = Callable[[Path | str], JavaClient]

# Starts in the middle of the third term: the recording's start position is not 0.
CHANNEL = "aeron:ipc?term-length=65536|init-term-id=5|term-id=7|term-offset=4096"
START_POSITION = 2 * 65_536 + 4096
SEED, COUNT, MAX_LENGTH = 11, 600, 4000


@pytest.mark.parametrize(
    ("java_class", "checksum"),
    [
        ("io.aeron.archive.checksum.Crc32c", "crc-32c"),
        ("io.aeron.archive.checksum.Crc32", "crc-32"),
    ],
)
def test_recording_of_the_java_archive(
    tmp_path: Path,
    aeron_dir: Path,
    java_client: StartClient,
    java_class: str,
    checksum: ChecksumName,
) -> None:
    """Live and stopped: every message with its fragments, over padding, terms and segments, and
    each frame's checksum as Java wrote it; a flipped bit is found."""
    properties = {
        "aeron.archive.record.checksum": java_class,
        "aeron.archive.segment.file.length": "131072",
    }
    with JavaArchive(tmp_path / "archive", aeron_dir, properties=properties) as archive:
        client = java_client(aeron_dir)
        client.connect(archive.control_channel)
        client.call("startRecording", "aeron:ipc", 33, "LOCAL")
        publication = client.add_exclusive_publication(CHANNEL, 33)
        counter = client.recording_counter(publication["sessionId"])
        offered = client.offer(publication, seed=SEED, count=COUNT, max_length=MAX_LENGTH)
        client.await_counter(counter["counterId"], offered["position"])

        live = open_directory(archive.archive_dir).recording(counter["recordingId"])
        assert live.descriptor.stop_position == -1
        assert live.recorded_position == offered["position"]
        from_live = list(live.messages(checksum=checksum))
        client.call("stopRecording", "aeron:ipc", 33)

    recording = open_directory(archive.archive_dir).recording(counter["recordingId"])
    assert recording.start_position == START_POSITION
    assert recording.descriptor.stop_position == offered["position"]
    assert len(recording.segment_files()) >= 5
    read = list(recording.messages(checksum=checksum))
    assert read == from_live
    assert [m.payload for m in read] == list(messages(SEED, COUNT, 32, MAX_LENGTH))
    assert digest(m.payload for m in read) == offered["digest"]
    assert any(m.length > recording.descriptor.mtu_length for m in read)
    assert (read[0].position, read[-1].end_position) == (START_POSITION, offered["position"])
    assert {m.session_id for m in read} == {publication["sessionId"]}
    assert all(
        m.term_id == 5 + m.position // 65_536 and m.term_offset == m.position % 65_536 for m in read
    )

    victim = read[COUNT // 2]
    segment = [s for s in recording.segment_files() if s.base_position <= victim.position][-1]
    data = bytearray(segment.path.read_bytes())
    data[victim.position - segment.base_position + 40] ^= 4
    segment.path.write_bytes(data)
    with pytest.raises(SegmentError, match="checksum") as caught:
        list(recording.messages(checksum=checksum))
    assert caught.value.position == victim.position


def test_a_recording_that_joined_in_the_middle_of_a_stream(
    java_archive: JavaArchive, java_client: StartClient
) -> None:
    """Recording that begins while a stream runs holds the messages from its join position on."""
    client = java_client(java_archive.aeron_dir)
    client.connect(java_archive.control_channel)
    channel = "aeron:ipc?term-length=65536"
    subscription = client.add_subscription(channel, 34)
    publication = client.add_exclusive_publication(channel, 34)
    client.offer(publication, seed=2, count=10, max_length=3000)
    client.poll(subscription, 10)
    client.call("startRecording", channel, 34, "LOCAL")
    counter = client.recording_counter(publication["sessionId"])
    client.close_resource(subscription)
    offered = client.offer(publication, seed=2, first_index=10, count=50, max_length=3000)
    client.await_counter(counter["counterId"], offered["position"])
    recording = open_directory(java_archive.archive_dir).recording(counter["recordingId"])
    assert recording.start_position > 0
    read = [message.payload for message in recording.messages()]
    assert read == list(messages(2, 50, 32, 3000, first_index=10))
