"""Replication that joins the live stream, and with tags that share the subscription."""

from __future__ import annotations

import time
from typing import Any

import pytest
from support.daemon.control_rig import await_true
from support.daemon.replication import (
    CONTROL_STREAM_ID,
    NULL,
    Pair,
    Recorded,
    names,
    shown,
)
from support.jvm import java

GENERIC = 0
MERGED = ["REPLICATE", "EXTEND", "MERGE", "REPLICATE_END"]


def live_stream(pair: Pair, stream_id: int, *, count: int = 100) -> Recorded:
    """A stream that any number of subscribers may join, recorded by the source."""
    channel = f"aeron:udp?control-mode=dynamic|control=localhost:{java.free_port()}"
    return pair.source.recorded(f"{channel}|term-length=64k|ssc=true", stream_id, count=count)


def position_of(pair: Pair, recording_id: int) -> int:
    """Return the recorded position of the replica."""
    return int(pair.destination.client.call("getRecordingPosition", recording_id))


def end(pair: Pair, stream: Recorded, recording_id: int) -> None:
    """Close the stream; both recordings end with it and are identical."""
    stream.stop()
    call = pair.destination.client.call
    await_true(lambda: call("getStopPosition", recording_id) == stream.position)
    pair.assert_same(stream.recording_id, recording_id)


@pytest.mark.parametrize("count", [0, 300])
def test_joining_the_live_stream(pair: Pair, count: int) -> None:
    """The replica catches up, joins the stream and continues without the replication."""
    stream = live_stream(pair, 2001, count=count)
    pair.replicate(stream.recording_id, liveDestination=stream.channel)
    # The stream continues during the replication.
    if count:
        stream.offer(100)
    signals = pair.await_signals("REPLICATE_END")
    assert names(signals) == MERGED
    [recording_id] = {signal["recordingId"] for signal in signals}
    # The recording is independent of the replication now.
    assert signals[2]["subscriptionId"] == NULL
    # The replay has been stopped: from now on the live stream is recorded.
    await_true(lambda: not replays(pair))
    position = stream.offer(200)
    await_true(lambda: position_of(pair, recording_id) == position)
    end(pair, stream, recording_id)


def replays(pair: Pair) -> int:
    """Return the number of replays in progress at the source."""
    [counter] = pair.source.client.call("counters", 112)
    return int(counter["value"])


def test_continuing_with_the_live_stream(pair: Pair) -> None:
    """A stopped replica continues with a replay of the missing data, then the live stream."""
    stream = live_stream(pair, 2002)
    pair.replicate(stream.recording_id, stopPosition=stream.position)
    begin = stream.position
    recording_id = pair.await_signals("STOP")[0]["recordingId"]
    stream.offer(100)
    pair.replicate(stream.recording_id, dstRecordingId=recording_id, liveDestination=stream.channel)
    signals = pair.await_signals("REPLICATE_END")
    assert shown(signals)[0] == ("EXTEND", begin)
    assert [name for name, _ in shown(signals)[1:]] == ["MERGE", "REPLICATE_END"]
    end(pair, stream, recording_id)


def test_joining_a_stopped_recording(pair: Pair) -> None:
    """Without a live source recording there is no stream to join; the replica remains empty."""
    stream = live_stream(pair, 2003)
    stream.stop()
    pair.replicate(stream.recording_id, liveDestination=stream.channel)
    signals = pair.await_signals("REPLICATE_END")
    assert shown(signals) == [("REPLICATE", 0), ("ERROR", GENERIC), ("REPLICATE_END", NULL)]
    assert pair.destination.descriptor(signals[0]["recordingId"])["stopPosition"] == 0


def test_a_tagged_subscription(pair: Pair) -> None:
    """A subscription with the replication's tags receives the replay, then the live stream."""
    stream = live_stream(pair, 2004, count=100)
    tags = (java.free_port(), java.free_port())
    client = pair.destination.client
    subscription = client.add_subscription(
        f"aeron:udp?control-mode=manual|rejoin=false|tags={tags[0]},{tags[1]}", 2004
    )
    client.call("takeSignals")
    client.call(
        "taggedReplicate",
        stream.recording_id,
        NULL,
        *tags,
        CONTROL_STREAM_ID,
        pair.source.archive.control_channel,
        stream.channel,
    )
    assert client.poll(subscription, 100)["count"] == 100
    signals = pair.await_signals("REPLICATE_END")
    assert names(signals) == MERGED
    # Within the window of a subscriber that does not poll meanwhile.
    stream.offer(10)
    polled = client.poll(subscription, 10)
    assert (polled["count"], polled["lastPosition"]) == (10, stream.position)
    recording_id = signals[0]["recordingId"]
    await_true(lambda: position_of(pair, recording_id) == stream.position)
    client.close_resource(subscription)
    end(pair, stream, recording_id)


def test_tags_without_a_live_destination(pair: Pair) -> None:
    """Tags alone share the replay; the signals are those of any replication."""
    stream = live_stream(pair, 2005)
    stream.stop()
    tags = {"channelTagId": java.free_port(), "subscriptionTagId": java.free_port()}
    pair.replicate(stream.recording_id, **tags)
    signals = pair.await_signals("STOP")
    assert shown(signals) == [
        ("REPLICATE", 0),
        ("EXTEND", 0),
        ("SYNC", stream.position),
        ("REPLICATE_END", NULL),
        ("STOP", stream.position),
    ]
    recording_id = signals[0]["recordingId"]
    pair.assert_same(stream.recording_id, recording_id)


def test_a_live_stream_without_data(pair: Pair) -> None:
    """The replay is followed without a MERGE; the end of the source recording ends it."""
    stream = live_stream(pair, 2006)
    nowhere = f"aeron:udp?control-mode=dynamic|control=localhost:{java.free_port()}"
    pair.replicate(stream.recording_id, liveDestination=nowhere)
    recording_id = pair.await_signals("EXTEND")[0]["recordingId"]
    position = stream.offer(100)
    await_true(lambda: position_of(pair, recording_id) == position)
    stream.stop()
    signals = pair.await_end()
    assert ("ERROR", GENERIC) in shown(signals)
    assert ("STOP", position) in shown(signals)
    assert "MERGE" not in names(signals)
    pair.assert_same(stream.recording_id, recording_id)


@pytest.mark.parametrize("destination", ["aerotape"], indirect=True)
def test_an_invalid_live_destination(pair: Pair) -> None:
    """Our archive ends the replication; the Java archive would follow the replay indefinitely."""
    stream = live_stream(pair, 2007)
    pair.replicate(stream.recording_id, liveDestination="aeron:udp?endpoint=nowhere.invalid:1")
    signals = pair.await_signals("REPLICATE_END")
    assert ("ERROR", GENERIC) in shown(signals)
    stream.stop()


def test_joining_a_stream_that_does_not_pause(pair: Pair) -> None:
    """No message is lost or duplicated in the transition to the live stream."""
    stream = live_stream(pair, 2008, count=2_000)
    pair.replicate(stream.recording_id, liveDestination=stream.channel)
    signals: list[dict[str, Any]] = []
    deadline_s = time.monotonic() + 60
    while "REPLICATE_END" not in names(signals):
        assert time.monotonic() < deadline_s, signals
        stream.offer(7)
        signals += pair.destination.client.call("takeSignals")
    stream.offer(100)
    assert names(signals) == MERGED
    recording_id = signals[0]["recordingId"]
    await_true(lambda: position_of(pair, recording_id) == stream.position)
    end(pair, stream, recording_id)
