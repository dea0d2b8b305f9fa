"""Recordings truncated and purged through the Java client, by our daemon and the Java archive.

The Java archive of these tests is older than ours: it refuses to truncate a recording that is
replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.daemon.control_rig import RawClient, await_true
from support.jvm import java
from support.jvm.java import JavaClient
from support.jvm.java_streams import (
    IPC,
    SEGMENT_LENGTH,
    Recorded,
    Signals,
    channel_at,
    descriptor,
    error_code,
    new_stream_id,
    record,
    segment_bases,
)
from support.model.messages import digest, messages

from aerotape import _native
from aerotape.codecs.generated import archive as codecs

pytestmark = pytest.mark.jvm

NOBODY = 10_000


@pytest.fixture
def client_of_ours(start_daemon: Callable[..., Any]) -> Iterator[JavaClient]:
    """A Java client connected to our daemon."""
    daemon = start_daemon()
    with JavaClient(daemon.aeron_dir) as connected:
        connected.connect(daemon.control_channel)
        yield connected


def replay(client: JavaClient, recording_id: int, length: int, **options: Any) -> dict[str, Any]:
    """Replay a recording from its start; return what was polled."""
    subscription = client.call("replay", recording_id, 0, length, "aeron:ipc", new_stream_id())
    played = client.poll(subscription, 100_000, **options)
    client.close_resource(subscription)
    return played


def message_ends(client: JavaClient, stream: Recorded) -> list[int]:
    """Return the end position of each message of a recording."""
    played = replay(client, stream.recording_id, stream.position, details=True)
    return [message["position"] for message in played["messages"]]


def sent(stream: Recorded, count: int) -> str:
    """Return the digest of the first messages of a stream."""
    return digest(messages(stream.publication["streamId"], count, max_length=4000))


def test_truncating_within_a_segment(either: Any, client: JavaClient) -> None:
    """Later segments are deleted, the rest of the last one is zeroed; data below remains."""
    stream = record(client, count=300)
    ends = message_ends(client, stream)
    assert stream.position > 4 * SEGMENT_LENGTH
    retained = next(index for index, end in enumerate(ends) if end > SEGMENT_LENGTH + 100) + 1
    position = ends[retained - 1]
    before = descriptor(client, stream.recording_id)
    files = segment_bases(either.archive_dir, stream.recording_id)
    path = Path(either.archive_dir, f"{stream.recording_id}-{SEGMENT_LENGTH}.rec")
    bytes_before = path.read_bytes()
    signals = Signals(client)

    deleted = client.call("truncateRecording", stream.recording_id, position)
    assert deleted == len(files) - 2
    assert signals.await_of(stream.recording_id, 3)[2:] == [("DELETE", -1)]
    assert signals.taken[-1]["subscriptionId"] == -1
    assert segment_bases(either.archive_dir, stream.recording_id) == files[:2]
    offset = position - SEGMENT_LENGTH
    assert path.read_bytes() == bytes_before[:offset].ljust(SEGMENT_LENGTH, b"\0")
    assert descriptor(client, stream.recording_id) == {
        **before,
        "stopPosition": position,
        "correlationId": client.call("lastCorrelationId"),
    }
    played = replay(client, stream.recording_id, position)
    assert (played["count"], played["digest"]) == (retained, sent(stream, retained))
    assert error_code(client, "startReplay", stream.recording_id, position, 1, IPC, 1) == 16


def test_truncating_at_a_segment_boundary(either: Any, client: JavaClient) -> None:
    """The file that begins at the boundary is deleted too, and counted."""
    stream = record(client, count=300)
    files = segment_bases(either.archive_dir, stream.recording_id)
    deleted = client.call("truncateRecording", stream.recording_id, 2 * SEGMENT_LENGTH)
    assert deleted == len(files) - 2
    signals = Signals(client)
    signals.await_of(stream.recording_id, 3)
    assert segment_bases(either.archive_dir, stream.recording_id) == files[:2]
    # The file does not exist, but is counted.
    assert client.call("truncateRecording", stream.recording_id, 2 * SEGMENT_LENGTH) == 1
    signals.await_of(stream.recording_id, 4)
    assert client.call("truncateRecording", stream.recording_id, SEGMENT_LENGTH) == 2
    await_true(lambda: segment_bases(either.archive_dir, stream.recording_id) == files[:1])


def test_truncating_to_the_end_changes_nothing(either: Any, client: JavaClient) -> None:
    """Response and signal are those of any truncation."""
    stream = record(client, count=100)
    files = segment_bases(either.archive_dir, stream.recording_id)
    signals = Signals(client)
    assert client.call("truncateRecording", stream.recording_id, stream.position) == 0
    assert signals.await_of(stream.recording_id, 3)[2:] == [("DELETE", -1)]
    assert segment_bases(either.archive_dir, stream.recording_id) == files
    played = replay(client, stream.recording_id, stream.position)
    assert played["digest"] == sent(stream, 100)


def test_truncating_to_the_start_leaves_no_file(either: Any, client: JavaClient) -> None:
    """No file remains, not even a renamed one; the recording is empty and can be extended."""
    stream = record(client, count=200)
    files = segment_bases(either.archive_dir, stream.recording_id)
    left_over = Path(either.archive_dir, f"{stream.recording_id}-6553600.rec.del")
    left_over.write_bytes(b"x")
    assert client.call("truncateRecording", stream.recording_id, 0) == len(files) + 1
    Signals(client).await_of(stream.recording_id, 3)
    assert segment_bases(either.archive_dir, stream.recording_id) == []
    assert not left_over.exists()
    row = descriptor(client, stream.recording_id)
    assert (row["startPosition"], row["stopPosition"]) == (0, 0)
    assert error_code(client, "startReplay", stream.recording_id, 0, -2, IPC, 1) in (15, 16)

    stream_id = row["streamId"]
    client.call("extendRecording", stream.recording_id, IPC, stream_id, "LOCAL")
    publication = client.add_exclusive_publication(channel_at(row, 0), stream_id)
    counter = client.recording_counter(publication["sessionId"])
    offered = client.offer(publication, seed=stream_id, count=60, max_length=4000)
    client.await_counter(counter["counterId"], offered["position"])
    client.call("stopRecording", IPC, stream_id)
    await_true(lambda: client.call("getStopPosition", stream.recording_id) == offered["position"])
    played = replay(client, stream.recording_id, offered["position"])
    assert (played["count"], played["digest"]) == (60, offered["digest"])


def test_truncated_and_extended(either: Any, client: JavaClient) -> None:
    """New messages follow the remaining ones without a trace of those that were truncated."""
    stream = record(client, count=300)
    ends = message_ends(client, stream)
    left = 120
    client.call("truncateRecording", stream.recording_id, ends[left - 1])
    Signals(client).await_of(stream.recording_id, 3)
    row = descriptor(client, stream.recording_id)
    stream_id = row["streamId"]
    client.call("extendRecording", stream.recording_id, IPC, stream_id, "LOCAL", True)
    publication = client.add_exclusive_publication(channel_at(row, ends[left - 1]), stream_id)
    counter = client.recording_counter(publication["sessionId"])
    assert counter["recordingId"] == stream.recording_id
    new = client.offer(publication, seed=stream_id, first_index=left, count=250, max_length=4000)
    client.await_counter(counter["counterId"], new["position"])
    client.close_resource(publication)
    await_true(lambda: client.call("getStopPosition", stream.recording_id) == new["position"])
    played = replay(client, stream.recording_id, new["position"])
    assert (played["count"], played["digest"]) == (left + 250, sent(stream, left + 250))


def test_refused_truncations(either: Any, client: JavaClient) -> None:
    """Unknown and live recordings, and positions out of range, unaligned or within a frame."""
    stream = record(client, count=100)
    recording_id, end = stream.recording_id, stream.position
    files = segment_bases(either.archive_dir, recording_id)
    assert error_code(client, "truncateRecording", NOBODY, 0) == 5
    for position in (-32, end + 32, 33, 1 << 62, -(1 << 63)):
        assert error_code(client, "truncateRecording", recording_id, position) == 16
    assert descriptor(client, recording_id)["stopPosition"] == end

    client.call("startRecording", IPC, new_stream_id(), "LOCAL")
    live_id = new_stream_id()
    client.call("startRecording", IPC, live_id, "LOCAL")
    live = Recorded(client, IPC, live_id, count=3)
    assert error_code(client, "truncateRecording", live.recording_id, 0) == 2
    assert error_code(client, "purgeRecording", live.recording_id) == 2

    # Aligned, but within the first message.
    assert error_code(client, "truncateRecording", recording_id, 32) == 0
    if not isinstance(either, java.JavaArchive):
        # The Java archive has moved the stop position by now.
        assert descriptor(client, recording_id)["stopPosition"] == end
    assert segment_bases(either.archive_dir, recording_id) == files


def test_purging_a_recording(either: Any, client: JavaClient) -> None:
    """Its entry and files are removed; others remain, and its id is not used again."""
    other, stream = record(client, count=10), record(client, count=200)
    recording_id = stream.recording_id
    files = segment_bases(either.archive_dir, recording_id)
    signals = Signals(client)
    assert len(client.call("listRecording", recording_id)) == 1
    assert client.call("purgeRecording", recording_id) == len(files)
    assert signals.await_of(recording_id, 3)[2:] == [("DELETE", -1)]
    assert segment_bases(either.archive_dir, recording_id) == []
    assert client.call("listRecording", recording_id) == []
    for method in ("getStopPosition", "getStartPosition", "purgeRecording"):
        assert error_code(client, method, recording_id) == 5
    assert error_code(client, "truncateRecording", recording_id, 0) == 5
    assert error_code(client, "startReplay", recording_id, 0, -1, IPC, 1) == 5
    assert error_code(client, "extendRecording", recording_id, IPC, 1, "LOCAL") == 5
    assert replay(client, other.recording_id, other.position)["count"] == 10
    assert record(client, count=1).recording_id > recording_id


def test_a_replayed_recording_is_not_purged(either: Any, client: JavaClient) -> None:
    """The purge is refused, and the replay continues."""
    stream = record(client, count=200)
    subscription = client.add_subscription(IPC, new_stream_id())
    replay_id = client.call(
        "startReplay", stream.recording_id, 0, stream.position, IPC, subscription["streamId"]
    )
    assert error_code(client, "purgeRecording", stream.recording_id) == 2
    assert client.poll(subscription, 200)["digest"] == sent(stream, 200)
    client.call("stopReplay", replay_id)


def test_truncating_stops_replays_first(client_of_ours: JavaClient) -> None:
    """Replays of this recording end, with or without flow control; others continue."""
    client = client_of_ours
    stream, other = record(client, count=300), record(client, count=300)
    ends = message_ends(client, stream)
    subscriptions = [client.add_subscription(IPC, new_stream_id()) for _ in range(3)]
    replayed = [stream, stream, other]
    for each, subscription in zip(replayed, subscriptions, strict=True):
        client.call(
            "startReplay", each.recording_id, 0, each.position, IPC, subscription["streamId"]
        )
    await_true(lambda: all(client.call("images", each["handle"]) for each in subscriptions))
    signals = Signals(client)
    client.call("truncateRecording", stream.recording_id, SEGMENT_LENGTH)
    assert signals.await_of(stream.recording_id, 3)[2:] == [("DELETE", -1)]
    for subscription in subscriptions[:2]:
        await_true(lambda: client.call("images", subscription["handle"]) == [])  # noqa: B023
    assert client.poll(subscriptions[2], 300)["digest"] == sent(other, 300)
    # The session continues, and the remaining data can be replayed.
    count = sum(end <= SEGMENT_LENGTH for end in ends)
    assert replay(client, stream.recording_id, SEGMENT_LENGTH)["digest"] == sent(stream, count)


def test_replayed_recordings_in_the_older_archive(either: Any, client: JavaClient) -> None:
    """The older Java archive refuses to truncate them; ours acts as the newer one."""
    stream = record(client, count=300)
    subscription = client.add_subscription(IPC, new_stream_id())
    client.call(
        "startReplay", stream.recording_id, 0, stream.position, IPC, subscription["streamId"]
    )
    if isinstance(either, java.JavaArchive):
        assert error_code(client, "truncateRecording", stream.recording_id, SEGMENT_LENGTH) == 2
    else:
        assert client.call("truncateRecording", stream.recording_id, SEGMENT_LENGTH) > 1


def test_a_client_that_disconnects_during_a_truncation(either: Any, client: JavaClient) -> None:
    """The request of the client is completed."""
    streams = [record(client, count=300) for _ in range(4)]
    with JavaClient(either.aeron_dir) as second:
        second.connect(either.control_channel, response_stream_id=21)
        for stream in streams[:2]:
            second.call("truncateRecording", stream.recording_id, SEGMENT_LENGTH)
        for stream in streams[2:]:
            second.call("purgeRecording", stream.recording_id)
        second.process.kill()
    for stream, left in zip(streams, [[0], [0], [], []], strict=True):
        await_true(
            lambda stream=stream, left=left: (  # type: ignore[misc]
                segment_bases(either.archive_dir, stream.recording_id) == left
            )
        )
    again = record(client, count=10)
    assert replay(client, again.recording_id, again.position)["count"] == 10


def test_deleting_many_files_delays_no_client(client_of_ours: JavaClient, tmp_path: Path) -> None:
    """Thousands of files are deleted and counted while other clients get responses."""
    client = client_of_ours
    stream, other = record(client, count=10), record(client, count=200)
    archive_dir = tmp_path / "archive"
    for index in range(1, 5000):
        (archive_dir / f"{stream.recording_id}-{index * SEGMENT_LENGTH}.rec").touch()
    signals = Signals(client)
    assert client.call("purgeRecording", stream.recording_id) == 5000
    assert client.call("truncateRecording", other.recording_id, SEGMENT_LENGTH) > 1
    assert replay(client, other.recording_id, SEGMENT_LENGTH)["count"] > 10
    assert signals.await_of(stream.recording_id, 3)[2:] == [("DELETE", -1)]
    assert signals.await_of(other.recording_id, 3)[2:] == [("DELETE", -1)]
    assert not list(archive_dir.glob(f"{stream.recording_id}-*"))


def test_a_replay_that_is_about_to_begin(start_daemon: Callable[..., Any]) -> None:
    """A replay requested right before a truncation is refused, or starts and is stopped."""
    daemon = start_daemon()
    with (
        JavaClient(daemon.aeron_dir) as client,
        closing(_native.AeronClient(str(daemon.aeron_dir))) as aeron,
    ):
        client.connect(daemon.control_channel)
        raw = RawClient(aeron, "aeron:ipc")
        raw.connect()
        subscription = client.add_subscription(IPC, new_stream_id())
        for _ in range(5):
            stream = record(client, count=200)
            replay_id = raw.request(
                codecs.ReplayRequest,
                recording_id=stream.recording_id,
                position=0,
                length=stream.position,
                replay_stream_id=subscription["streamId"],
                replay_channel=IPC,
            )
            truncated = raw.call(
                codecs.TruncateRecordingRequest,
                recording_id=stream.recording_id,
                position=SEGMENT_LENGTH,
            )
            assert truncated.code is codecs.ControlResponseCode.OK
            answer = raw.response(replay_id)
            if answer.code is codecs.ControlResponseCode.ERROR:
                assert "before its replay began" in answer.error_message
        assert "replay failed" not in daemon.log()
