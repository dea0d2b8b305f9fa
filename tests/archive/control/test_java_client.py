"""The Java client against our daemon, and against the Java archive as the reference."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.daemon.control_rig import await_true
from support.jvm import java
from support.jvm.java import JavaClient
from support.jvm.java_streams import IPC, Recorded, error_code

pytestmark = pytest.mark.jvm

NULL = -1
# Not the id of a recording.
NOBODY = 10_000


def test_recording_an_ipc_stream(either: Any, client: JavaClient) -> None:
    """Positions, descriptor, counter and files of a recorded IPC stream."""
    subscription_id = client.call("startRecording", IPC, 1001, "LOCAL")
    stream = Recorded(client, IPC, 1001)
    assert stream.counter["isActive"] is True
    archive_id = client.call("archiveId")
    assert stream.counter["label"] == (
        f"rec-pos: {stream.recording_id} {stream.session_id} 1001 aeron:ipc"
        f" - archiveId={archive_id}"
    )
    assert stream.counter["sourceIdentity"] == "aeron:ipc"
    recording_id = stream.recording_id
    assert client.call("getRecordingPosition", recording_id) == stream.position
    assert client.call("getMaxRecordedPosition", recording_id) == stream.position
    assert client.call("getStartPosition", recording_id) == 0
    assert client.call("getStopPosition", recording_id) == NULL

    client.call("stopRecording", subscription_id)
    await_true(lambda: stream.is_stopped(client))
    assert client.call("getRecordingPosition", recording_id) == NULL
    assert client.call("getMaxRecordedPosition", recording_id) == stream.position

    [row] = client.call("listRecording", recording_id)
    assert row.pop("startTimestamp") <= row.pop("stopTimestamp")
    assert row == {
        "controlSessionId": client.call("controlSessionId"),
        "correlationId": client.call("lastCorrelationId"),
        "recordingId": recording_id,
        "startPosition": 0,
        "stopPosition": stream.position,
        "initialTermId": stream.publication["initialTermId"],
        "segmentFileLength": 65536,
        "termBufferLength": 65536,
        "mtuLength": 1408,
        "sessionId": stream.session_id,
        "streamId": 1001,
        "strippedChannel": "aeron:ipc",
        "originalChannel": IPC,
        "sourceIdentity": "aeron:ipc",
    }
    files = sorted(
        int(match[1])
        for path in Path(either.archive_dir).iterdir()
        if (match := re.fullmatch(rf"{recording_id}-(\d+)\.rec", path.name))
    )
    assert files == list(range(0, stream.position, 65536))
    assert all(
        (Path(either.archive_dir) / f"{recording_id}-{base}.rec").stat().st_size == 65536
        for base in files
    )


@pytest.mark.parametrize("source", ["LOCAL", "REMOTE"])
def test_recording_a_udp_stream(client: JavaClient, source: str) -> None:
    """A UDP stream is recorded by a spy or a subscription; the stripped channel omits set-up
    parameters."""
    channel = f"aeron:udp?endpoint=localhost:{java.free_port()}"
    given = f"{channel}|term-length=128k|alias=prices-{source}"
    client.call("startRecording", given, 7, source)
    # Without a subscriber a spy alone must count as a connection.
    stream = Recorded(client, f"{given}|ssc=true", 7)
    [row] = client.call("listRecordingsForUri", 0, 10, f"prices-{source}", 7)
    assert row["strippedChannel"] == f"{channel}|alias=prices-{source}"
    assert row["originalChannel"] == given
    assert row["termBufferLength"] == row["segmentFileLength"] == 131072
    identity = "aeron:ipc" if source == "LOCAL" else r"127\.0\.0\.1:\d+"
    assert re.fullmatch(identity, row["sourceIdentity"])
    client.call("stopRecording", given, 7)
    await_true(lambda: stream.is_stopped(client))


def test_ways_to_stop(client: JavaClient) -> None:
    """Recordings are stopped by channel, subscription and recording id, each only once."""
    by_id = client.call("startRecording", IPC, 11, "LOCAL")
    assert client.call("tryStopRecording", by_id) is True
    assert client.call("tryStopRecording", by_id) is False
    assert error_code(client, "stopRecording", by_id) == 4
    client.call("startRecording", IPC, 12, "LOCAL")
    assert client.call("tryStopRecording", IPC, 12) is True
    assert error_code(client, "stopRecording", IPC, 12) == 4
    subscription_id = client.call("startRecording", IPC, 13, "LOCAL")
    stream = Recorded(client, IPC, 13, count=20)
    assert client.call("tryStopRecordingByIdentity", stream.recording_id) is True
    await_true(lambda: stream.is_stopped(client))
    assert client.call("tryStopRecordingByIdentity", stream.recording_id) is False
    assert client.call("tryStopRecording", subscription_id) is False
    assert error_code(client, "tryStopRecordingByIdentity", NOBODY) == 5


def test_signals_of_start_and_stop(client: JavaClient) -> None:
    """The client that started a recording receives its start and its end."""
    subscription_id = client.call("startRecording", IPC, 14, "LOCAL")
    common = {
        "controlSessionId": client.call("controlSessionId"),
        "correlationId": client.call("lastCorrelationId"),
        "subscriptionId": subscription_id,
    }
    stream = Recorded(client, IPC, 14, count=20)
    client.call("stopRecording", subscription_id)
    signals: list[Any] = []

    def have_both() -> bool:
        taken = client.call("takeSignals")
        signals.extend(each for each in taken if each["recordingId"] == stream.recording_id)
        return len(signals) >= 2

    await_true(have_both)
    common["recordingId"] = stream.recording_id
    assert signals == [
        {**common, "position": 0, "signal": "START"},
        {**common, "position": stream.position, "signal": "STOP"},
    ]


def test_listings(client: JavaClient) -> None:
    """Ranges by id, by channel fragment and stream, single ones, and the last that matches."""
    streams: list[Recorded] = []
    for stream_id in (21, 22, 21, 22, 21):
        channel = f"{IPC}|alias=a{len(streams)}"
        client.call("startRecording", channel, stream_id, "LOCAL")
        streams.append(Recorded(client, channel, stream_id, count=3))
        client.call("stopRecording", channel, stream_id)
        await_true(lambda: streams[-1].is_stopped(client))
        client.close_resource(streams[-1].publication)
    ids = [stream.recording_id for stream in streams]
    first = ids[0]
    assert ids == list(range(first, first + 5))

    def listed(*args: Any) -> list[int]:
        rows = client.call("listRecordings" if len(args) == 2 else "listRecordingsForUri", *args)
        return [row["recordingId"] - first for row in rows]

    assert listed(first, 100) == [0, 1, 2, 3, 4]
    assert listed(first, 2) == [0, 1]
    assert listed(first + 3, 100) == [3, 4]
    assert listed(0, first + 1)[-1] == 0
    assert listed(first + 5, 1) == listed(NOBODY, 5) == []
    assert listed(0, 100, "ipc", 21) == [0, 2, 4]
    assert listed(first + 1, 1, "ipc", 21) == [2]
    assert listed(0, 100, "alias=a3", 22) == [3]
    assert listed(0, 100, "alias=a3", 21) == []
    assert listed(0, 100, "", 22) == [1, 3]
    assert client.call("listRecording", NOBODY) == []

    session = streams[2].session_id
    assert client.call("findLastMatchingRecording", 0, "alias=a2", 21, session) == first + 2
    assert client.call("findLastMatchingRecording", first + 3, "alias=a2", 21, session) == NULL
    assert client.call("findLastMatchingRecording", 0, "alias=a1", 21, session) == NULL
    assert error_code(client, "findLastMatchingRecording", -1, "ipc", 21, session) == 5


def test_an_invalid_replay_channel_gets_an_error(start_daemon: Callable[..., Any]) -> None:
    """The reference sends no response, so that the client times out."""
    daemon = start_daemon()
    with JavaClient(daemon.aeron_dir) as client:
        client.connect(daemon.control_channel)
        client.call("startRecording", IPC, 41, "LOCAL")
        stream = Recorded(client, IPC, 41, count=1)
        assert error_code(client, "startReplay", stream.recording_id, 0, -1, "x", 42) == 0


@pytest.mark.parametrize("channel", ["aeron:ipc", "udp"])
def test_replays_of_a_stopped_recording(client: JavaClient, channel: str) -> None:
    """Replays of all, of a part, and with a length past the end, which is shortened."""
    if channel == "udp":
        channel = f"aeron:udp?endpoint=localhost:{java.free_port()}"
    client.call("startRecording", IPC, 51, "LOCAL")
    stream = Recorded(client, IPC, 51, count=400)
    client.call("stopRecording", IPC, 51)
    await_true(lambda: stream.is_stopped(client))

    whole = client.call("replay", stream.recording_id, 0, stream.position, channel, 52)
    played = client.poll(whole, 500, details=True)
    assert (played["count"], played["digest"]) == (400, stream.offered["digest"])
    assert played["ended"] is True
    client.close_resource(whole)

    ends = [message["position"] for message in played["messages"]]
    middle = ends[199]
    half = client.call("replay", stream.recording_id, middle, 1 << 40, channel, 53)
    rest = client.poll(half, 500, details=True)
    assert [message["position"] for message in rest["messages"]] == ends[200:]
    assert [message["payload"] for message in rest["messages"]] == [
        message["payload"] for message in played["messages"][200:]
    ]
    assert rest["ended"] is True
    client.close_resource(half)

    piece = client.call("replay", stream.recording_id, middle, ends[209] - middle, channel, 54)
    assert client.poll(piece, 500)["count"] == 10


def test_a_live_recording_is_followed(client: JavaClient) -> None:
    """A replay of open length continues with new frames, and ends with the stream."""
    client.call("startRecording", IPC, 61, "LOCAL")
    stream = Recorded(client, IPC, 61, count=100)
    replay = client.call("replay", stream.recording_id, 0, (1 << 63) - 1, "aeron:ipc", 62)
    assert client.poll(replay, 100)["count"] == 100
    more = client.offer(stream.publication, seed=61, count=100, first_index=100, max_length=4000)
    live = client.poll(replay, 100)
    assert (live["count"], live["digest"]) == (100, more["digest"])
    assert live["lastPosition"] == more["position"]
    client.close_resource(stream.publication)
    end = client.poll(replay, 1)
    assert (end["count"], end["ended"]) == (0, True)


def test_a_bounded_replay_waits_at_its_counter(client: JavaClient) -> None:
    """A bounded replay follows its limit counter until it is stopped."""
    client.call("startRecording", IPC, 71, "LOCAL")
    stream = Recorded(client, IPC, 71, count=50)
    bound = client.call("addCounter", 10_001, "bound")
    params = {"position": 0, "length": 1 << 40, "boundingLimitCounterId": bound["counterId"]}
    ends = [
        message["position"]
        for message in client.poll(
            client.call("replay", stream.recording_id, 0, stream.position, "aeron:ipc", 72),
            50,
            details=True,
        )["messages"]
    ]
    client.call("setCounter", bound["handle"], ends[9])
    replay = client.add_subscription("aeron:ipc", 73)
    replay_id = client.call("startReplay", stream.recording_id, "aeron:ipc", 73, params)
    for first, last in ((0, 9), (10, 19)):
        polled = client.poll(replay, 10)
        assert (polled["firstPosition"], polled["lastPosition"]) == (ends[first], ends[last])
        assert client.poll(replay, 1, timeout_ms=500)["count"] == 0
        client.call("setCounter", bound["handle"], ends[19])
    client.call("stopReplay", replay_id)
    assert client.poll(replay, 1)["ended"] is True


def test_replay_ids_hold_the_session_id(client: JavaClient) -> None:
    """The low half of a replay session id is the stream's session id; replays are numbered."""
    client.call("startRecording", IPC, 81, "LOCAL")
    stream = Recorded(client, IPC, 81, count=5)
    subscription = client.add_subscription("aeron:ipc", 82)
    ids = [
        client.call("startReplay", stream.recording_id, 0, -1, "aeron:ipc", 82) for _ in range(3)
    ]
    await_true(lambda: len(client.call("images", subscription["handle"])) == 3)
    sessions = {image["sessionId"] for image in client.call("images", subscription["handle"])}
    assert {(replay_id & 0xFFFF_FFFF) for replay_id in ids} == {
        session & 0xFFFF_FFFF for session in sessions
    }
    numbers = [replay_id >> 32 for replay_id in ids]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]
    client.call("stopAllReplays", stream.recording_id)
    await_true(lambda: client.call("images", subscription["handle"]) == [])


def test_local_control_channel(either: Any) -> None:
    """Clients on the same host may connect over IPC."""
    with JavaClient(either.aeron_dir) as client:
        session = client.connect("aeron:ipc", response_channel="aeron:ipc")
        assert client.call("archiveId") == session["archiveId"]
        assert client.call("listRecordings", NOBODY, 10) == []
