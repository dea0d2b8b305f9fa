"""Replication between archives, in all combinations of ours and the Java archive.

A Java client sends the request; the Java archive's replication from another one is the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.daemon.control_rig import await_true
from support.daemon.replication import (
    CONTROL_STREAM_ID,
    NULL,
    Pair,
    Side,
    names,
    shown,
    with_session_id,
)
from support.jvm import java
from support.jvm.java import JavaArchiveException, JavaClient

IPC = "aeron:ipc?term-length=64k"
GENERIC, UNKNOWN_RECORDING, UNKNOWN_REPLICATION = 0, 5, 12
# An id that no recording of this module gets.
UNKNOWN_ID = 10_000
# Type of the counter of an archive's replays.
REPLAY_SESSIONS = 112


def test_a_stopped_recording(pair: Pair) -> None:
    """A replica has the descriptor and the bytes of its source; signals report the progress."""
    stream = pair.source.stopped(IPC, 1001)
    replication_id = pair.replicate(stream.recording_id)
    assert replication_id > 0
    signals = pair.await_signals("STOP")
    position = stream.position
    assert shown(signals) == [
        ("REPLICATE", 0),
        ("EXTEND", 0),
        ("SYNC", position),
        ("REPLICATE_END", NULL),
        ("STOP", position),
    ]
    [recording_id] = {signal["recordingId"] for signal in signals}
    pair.assert_same(stream.recording_id, recording_id)
    source = pair.source.descriptor(stream.recording_id)
    replica = pair.destination.descriptor(recording_id)
    # The destination archive stops the replica asynchronously.
    assert replica.pop("stopTimestamp") >= source.pop("stopTimestamp")
    assert replica == {**source, "recordingId": recording_id}
    assert len({signal["subscriptionId"] for signal in signals[1:3]}) == 1
    assert [signals[0]["subscriptionId"], signals[3]["subscriptionId"]] == [NULL, NULL]


def replicated(pair: Pair, recording_id: int, **params: Any) -> int:
    """Replicate a recording to its end; return the replica's id."""
    pair.replicate(recording_id, **params)
    signals = pair.await_signals("STOP")
    assert "SYNC" in names(signals)
    return int(signals[0]["recordingId"])


def code_of(call: Callable[..., Any], *args: Any, **params: Any) -> int | None:
    """Return the error code of a refused call."""
    with pytest.raises(JavaArchiveException) as caught:
        call(*args, **params)
    return caught.value.error_code


def test_an_empty_recording(pair: Pair) -> None:
    """Nothing is replayed; only the recording is created."""
    stream = pair.source.stopped(f"{IPC}|init-term-id=5|term-id=7|term-offset=96", 1002, count=0)
    assert stream.position == 2 * 65536 + 96
    pair.replicate(stream.recording_id)
    signals = pair.await_signals("REPLICATE_END")
    begin = stream.position
    assert shown(signals) == [("REPLICATE", begin), ("SYNC", begin), ("REPLICATE_END", NULL)]
    source = pair.source.descriptor(stream.recording_id)
    recording_id = signals[0]["recordingId"]
    assert pair.destination.descriptor(recording_id) == {
        **source,
        "recordingId": recording_id,
        # Nothing is recorded, so it stops at its start.
        "stopTimestamp": source["startTimestamp"],
    }
    assert pair.destination.segments(recording_id) == {}


def test_a_recording_that_is_in_sync(pair: Pair) -> None:
    """Replicating a complete replica again only sends SYNC."""
    stream = pair.source.stopped(IPC, 1003)
    recording_id = replicated(pair, stream.recording_id)
    before = pair.destination.descriptor(recording_id)
    pair.replicate(stream.recording_id, dstRecordingId=recording_id)
    signals = pair.await_signals("REPLICATE_END")
    assert shown(signals) == [("SYNC", stream.position), ("REPLICATE_END", NULL)]
    assert pair.destination.descriptor(recording_id) == before


def test_a_recording_that_grows(pair: Pair) -> None:
    """A stop position ends the replication of a live recording; the next continues there."""
    stream = pair.source.recorded(IPC, 1004)
    first = stream.position
    pair.replicate(stream.recording_id, stopPosition=first)
    signals = pair.await_signals("STOP")
    assert shown(signals) == [
        ("REPLICATE", 0),
        ("EXTEND", 0),
        ("REPLICATE_END", NULL),
        ("STOP", first),
    ]
    recording_id = signals[0]["recordingId"]
    assert pair.destination.descriptor(recording_id)["stopPosition"] == first
    end = stream.offer(200)
    stream.stop()
    pair.replicate(stream.recording_id, dstRecordingId=recording_id)
    signals = pair.await_signals("STOP")
    assert shown(signals) == [
        ("EXTEND", first),
        ("SYNC", end),
        ("REPLICATE_END", NULL),
        ("STOP", end),
    ]
    assert {signal["recordingId"] for signal in signals} == {recording_id}
    pair.assert_same(stream.recording_id, recording_id)


def test_stopping_a_replication(pair: Pair) -> None:
    """A live recording is followed until the replication is stopped; the replica remains."""
    stream = pair.source.recorded(IPC, 1005)
    replication_id = pair.replicate(stream.recording_id)
    signals = pair.await_signals("EXTEND")
    assert shown(signals) == [("REPLICATE", 0), ("EXTEND", 0)]
    recording_id = signals[0]["recordingId"]
    call = pair.destination.client.call
    position = stream.offer(50)
    await_true(lambda: call("getRecordingPosition", recording_id) == position)
    call("stopReplication", replication_id)
    signals = pair.await_signals("STOP")
    assert shown(signals) == [("REPLICATE_END", NULL), ("STOP", position)]
    pair.assert_same(stream.recording_id, recording_id)
    assert code_of(call, "stopReplication", replication_id) == UNKNOWN_REPLICATION
    # The source stops its replay.
    await_true(lambda: not pair.source.client.call("counters", REPLAY_SESSIONS)[0]["value"])
    stream.stop()


def test_stopping_the_recording(pair: Pair) -> None:
    """Stopping the recording of a replication ends the replication."""
    stream = pair.source.recorded(IPC, 1032)
    pair.replicate(stream.recording_id)
    extended = pair.await_signals("EXTEND")[-1]
    call = pair.destination.client.call
    await_true(lambda: call("getRecordingPosition", extended["recordingId"]) == stream.position)
    call("stopRecording", extended["subscriptionId"])
    signals = pair.await_end()
    assert sorted(shown(signals)) == [("REPLICATE_END", NULL), ("STOP", stream.position)]
    stream.stop()


def test_the_end_of_the_source_recording(pair: Pair) -> None:
    """When a live recording ends, its replication ends, without having been in sync."""
    stream = pair.source.recorded(IPC, 1006)
    pair.replicate(stream.recording_id)
    recording_id = pair.await_signals("EXTEND")[0]["recordingId"]
    call = pair.destination.client.call
    await_true(lambda: call("getRecordingPosition", recording_id) == stream.position)
    stream.stop()
    signals = pair.await_end()
    assert sorted(shown(signals)) == [("REPLICATE_END", NULL), ("STOP", stream.position)]


def test_a_given_session_id(pair: Pair) -> None:
    """The replay, and so the replica, has the requested session id; its reads may be small."""
    stream = pair.source.stopped(IPC, 1007)
    recording_id = replicated(
        pair, stream.recording_id, replicationSessionId=-77, fileIoMaxLength=1500
    )
    assert pair.destination.descriptor(recording_id)["sessionId"] == -77
    expected = with_session_id(pair.source.segments(stream.recording_id), -77)
    assert pair.destination.segments(recording_id) == expected


def test_many_at_once(pair: Pair) -> None:
    """Several recordings are replicated concurrently."""
    streams = [pair.source.recorded(IPC, 1020 + i) for i in range(5)]
    for stream in streams:
        stream.stop()
    call = pair.destination.client.call
    call("takeSignals")
    channel = pair.source.archive.control_channel
    for stream in streams:
        call("replicate", stream.recording_id, CONTROL_STREAM_ID, channel, {})
    signals: list[Any] = []
    while len([1 for signal in signals if signal["signal"] == "STOP"]) < len(streams):
        signals += pair.await_signals("STOP")
    by_stream = {
        pair.destination.descriptor(recording_id)["streamId"]: recording_id
        for recording_id in {signal["recordingId"] for signal in signals}
    }
    for stream in streams:
        recording_id = by_stream[stream.stream_id]
        names = [s["signal"] for s in signals if s["recordingId"] == recording_id]
        assert names == ["REPLICATE", "EXTEND", "SYNC", "REPLICATE_END", "STOP"]
        pair.assert_same(stream.recording_id, recording_id)


# ---- refusals and failures -----------------------------------------------------------------------


def test_an_unknown_source_recording(pair: Pair) -> None:
    """The error comes after the response to the request, when the source has responded."""
    pair.replicate(UNKNOWN_ID)
    signals = pair.await_signals("REPLICATE_END")
    assert shown(signals) == [("ERROR", UNKNOWN_RECORDING), ("REPLICATE_END", NULL)]
    assert signals[1]["recordingId"] == NULL


def test_another_stream_as_destination(pair: Pair) -> None:
    """A recording of another stream cannot be extended."""
    stream = pair.source.stopped(IPC, 1010)
    other = pair.destination.stopped(IPC, 1011, count=10)
    pair.replicate(stream.recording_id, dstRecordingId=other.recording_id)
    signals = pair.await_signals("REPLICATE_END")
    assert shown(signals) == [("ERROR", UNKNOWN_RECORDING), ("REPLICATE_END", NULL)]


def test_a_source_that_is_shorter_than_the_replica(pair: Pair) -> None:
    """It cannot extend the replica, which is unchanged."""
    stream = pair.source.stopped(IPC, 1012, count=10)
    replica = pair.destination.stopped(IPC, 1012, count=100)
    pair.replicate(stream.recording_id, dstRecordingId=replica.recording_id)
    signals = pair.await_signals("REPLICATE_END")
    assert shown(signals) == [("ERROR", GENERIC), ("REPLICATE_END", NULL)]
    stop_position = pair.destination.descriptor(replica.recording_id)["stopPosition"]
    assert stop_position == replica.position


@pytest.mark.parametrize("channel", ["", "nonsense|x"])
def test_invalid_control_channels(destination: Side, channel: str) -> None:
    """An invalid control channel ends the replication."""
    call = destination.client.call
    call("takeSignals")
    call("replicate", 0, CONTROL_STREAM_ID, channel, {})
    signals = Pair(destination, destination).await_signals("REPLICATE_END")
    assert shown(signals) == [("ERROR", GENERIC), ("REPLICATE_END", NULL)]


def test_an_invalid_replication_channel(pair: Pair) -> None:
    """Our archive sends an error; the Java archive sends no response."""
    if pair.destination.kind == "aerotape":
        assert code_of(pair.replicate, 0, replicationChannel="nonsense") == GENERIC


def test_response_channels(pair: Pair) -> None:
    """Responses and replay use response channels: the destination needs no open port."""
    stream = pair.source.stopped(IPC, 1013)
    port = java.free_port()
    channel = f"aeron:udp?control-mode=response|control=localhost:{port}"
    recording_id = replicated(
        pair, stream.recording_id, replicationChannel=channel, srcResponseChannel=channel
    )
    # The driver has chosen the session id of the replay.
    session_id = pair.destination.descriptor(recording_id)["sessionId"]
    assert session_id != stream.publication["sessionId"]
    expected = with_session_id(pair.source.segments(stream.recording_id), session_id)
    assert pair.destination.segments(recording_id) == expected


def test_over_ipc(sides: Callable[[str, str], Side]) -> None:
    """Two recordings of one archive: ours replicates from itself, over shared memory."""
    side = sides("destination", "aerotape")
    pair = Pair(side, side)
    stream = side.stopped(IPC, 1014)
    # The session id of the stream itself may still be taken on this driver.
    params = {"replicationChannel": "aeron:ipc", "replicationSessionId": 55}
    recording_id = replicated(pair, stream.recording_id, **params)
    expected = with_session_id(side.segments(stream.recording_id), 55)
    assert side.segments(recording_id) == expected


OTHERS = [
    ("aeron:ipc?mtu=1344|init-term-id=777|term-id=780|term-offset=4096|term-length=512k", IPC),
    (IPC, "aeron:ipc?mtu=1344|init-term-id=-5|term-id=-3|term-offset=96|term-length=512k"),
    (
        "aeron:ipc?alias=a-name-that-makes-the-channel-of-the-source-a-good-deal-longer-than-is-"
        "usual-so-that-its-descriptor-has-no-room-where-that-of-the-destination-was|term-length=64k",
        IPC,
    ),
]


@pytest.mark.parametrize("channel, other", OTHERS, ids=["longer terms", "shorter", "long channel"])
def test_an_empty_destination(pair: Pair, channel: str, other: str) -> None:
    """An empty recording becomes the replica, whatever its descriptor was."""
    stream = pair.source.stopped(channel, 1015, count=50)
    destination = pair.destination
    before = destination.stopped(other, 1016, count=30)
    later = destination.stopped(IPC, 1017, count=10)
    untouched = destination.descriptor(later.recording_id)
    begin = destination.descriptor(before.recording_id)["startPosition"]
    destination.client.call("truncateRecording", before.recording_id, begin)
    pair.await_signals("DELETE")
    recording_id = before.recording_id
    pair.replicate(stream.recording_id, dstRecordingId=recording_id)
    signals = pair.await_signals("STOP")
    source = pair.source.descriptor(stream.recording_id)
    assert shown(signals) == [
        ("EXTEND", source["startPosition"]),
        ("SYNC", stream.position),
        ("REPLICATE_END", NULL),
        ("STOP", stream.position),
    ]
    replica = destination.descriptor(recording_id)
    assert replica.pop("stopTimestamp") >= source.pop("stopTimestamp")
    assert replica == {**source, "recordingId": recording_id}
    pair.assert_same(stream.recording_id, recording_id)
    assert destination.descriptor(later.recording_id) == untouched


def test_a_stop_position_at_the_start(pair: Pair) -> None:
    """The replica is created and remains empty."""
    stream = pair.source.recorded(IPC, 1018)
    pair.replicate(stream.recording_id, stopPosition=0)
    signals = pair.await_signals("STOP")
    assert shown(signals) == [
        ("REPLICATE", 0),
        ("EXTEND", 0),
        ("REPLICATE_END", NULL),
        ("STOP", 0),
    ]
    stream.stop()


def test_a_purged_source(pair: Pair) -> None:
    """A replica starts at its source's start; one that ends at a lower position cannot be
    extended."""
    stream = pair.source.recorded(IPC, 1019, count=100)
    pair.replicate(stream.recording_id, stopPosition=stream.position)
    early = pair.await_signals("STOP")[0]["recordingId"]
    stream.offer(200)
    stream.stop()
    begin = stream.position // 65536 * 65536
    pair.source.client.call("purgeSegments", stream.recording_id, begin)
    await_true(lambda: pair.source.segment_bases(stream.recording_id) == [begin])
    pair.replicate(stream.recording_id)
    signals = pair.await_signals("STOP")
    assert shown(signals) == [
        ("REPLICATE", begin),
        ("EXTEND", begin),
        ("SYNC", stream.position),
        ("REPLICATE_END", NULL),
        ("STOP", stream.position),
    ]
    replica = pair.destination.segments(signals[0]["recordingId"])
    assert replica == pair.source.segments(stream.recording_id)
    pair.replicate(stream.recording_id, dstRecordingId=early)
    signals = pair.await_signals("REPLICATE_END")
    assert shown(signals) == [("ERROR", GENERIC), ("REPLICATE_END", NULL)]


def test_the_older_request(pair: Pair) -> None:
    """The request of older clients, without stop position and channel."""
    stream = pair.source.stopped(IPC, 1030)
    call = pair.destination.client.call
    call("takeSignals")
    channel = pair.source.archive.control_channel
    call("replicate", stream.recording_id, NULL, CONTROL_STREAM_ID, channel, "")
    recording_id = pair.await_signals("STOP")[0]["recordingId"]
    pair.assert_same(stream.recording_id, recording_id)


def test_the_client_disconnects(pair: Pair) -> None:
    """A replication continues to its end without the client that requested it."""
    stream = pair.source.stopped(IPC, 1031)
    archive = pair.destination.archive
    with JavaClient(archive.aeron_dir) as client:
        client.connect(archive.control_channel)
        channel = pair.source.archive.control_channel
        client.call("replicate", stream.recording_id, CONTROL_STREAM_ID, channel, {})
    call = pair.destination.client.call

    def replica() -> dict[str, Any]:
        rows = call("listRecordingsForUri", 0, 1000, "aeron:ipc", stream.stream_id)
        session_id = stream.publication["sessionId"]
        return next((row for row in rows if row["sessionId"] == session_id), {})

    await_true(lambda: replica().get("stopPosition") == stream.position)
    replicated_segments = pair.destination.segments(replica()["recordingId"])
    assert replicated_segments == pair.source.segments(stream.recording_id)
