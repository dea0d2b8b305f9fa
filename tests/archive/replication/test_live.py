"""Replication that goes over to the live stream, and with tags that others share."""

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
    shown,
)
from support.jvm import java

GENERIC = 0


def live_stream(pair: Pair, stream_id: int, *, count: int = 100) -> Recorded:
    """A stream that any number of subscribers may join, recorded by the source."""
    channel = f"aeron:udp?control-mode=dynamic|control=localhost:{java.free_port()}"
    return pair.source.recorded(f"{channel}|term-length=64k|ssc=true", stream_id, count=count)


def position_of(pair: Pair, recording_id: int) -> int:
    """Return how far the replica has been recorded."""
    return int(pair.destination.client.call("getRecordingPosition", recording_id))


def end(pair: Pair, stream: Recorded, recording_id: int) -> None:
    """Close the stream; the recordings then end with it, and are the same."""
    stream.stop()
    call = pair.destination.client.call
    await_true(lambda: call("getStopPosition", recording_id) == stream.position)
    assert pair.source.segments(stream.recording_id) == pair.destination.segments(recording_id)


@pytest.mark.parametrize("count", [0, 300])
def test_joining_the_live_stream(pair: Pair, count: int) -> None:
    """The replica catches up, joins the stream, and goes on with it by itself."""
    stream = live_stream(pair, 2001, count=count)
    pair.replicate(stream.recording_id, liveDestination=stream.channel)
    # While the replication is on, the stream goes on too.
    if count:
        stream.offer(100)
    signals = pair.await_signals("REPLICATE_END")
    assert [name for name, _ in shown(signals)] == [
        "REPLICATE",
        "EXTEND",
        "MERGE",
        "REPLICATE_END",
    ]
    [recording_id] = {signal["recordingId"] for signal in signals}
    # The recording is not the replication's any more.
    assert signals[2]["subscriptionId"] == NULL
    # The replay has been stopped: what is recorded from now on is live.
    await_true(lambda: not replays(pair))
    position = stream.offer(200)
    await_true(lambda: position_of(pair, recording_id) == position)
    end(pair, stream, recording_id)


def replays(pair: Pair) -> int:
    """Return how many replays the source has under way."""
    [counter] = pair.source.client.call("counters", 112)
    return int(counter["value"])


def test_continuing_with_the_live_stream(pair: Pair) -> None:
    """A replica that was stopped goes on with what it lacks, then with the live stream."""
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


def test_joining_a_stream_that_is_not_recorded_any_more(pair: Pair) -> None:
    """Without a live source there is nothing to join; the replica has been made, and is empty."""
    stream = live_stream(pair, 2003)
    stream.stop()
    pair.replicate(stream.recording_id, liveDestination=stream.channel)
    signals = pair.await_signals("REPLICATE_END")
    assert shown(signals) == [("REPLICATE", 0), ("ERROR", GENERIC), ("REPLICATE_END", NULL)]
    assert pair.destination.descriptor(signals[0]["recordingId"])["stopPosition"] == 0


def test_a_tagged_subscription(pair: Pair) -> None:
    """A subscription with the tags of the replication gets all that is replicated, then live."""
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
    assert [name for name, _ in shown(signals)] == [
        "REPLICATE",
        "EXTEND",
        "MERGE",
        "REPLICATE_END",
    ]
    # No more than the window of a subscriber that is not reading meanwhile.
    stream.offer(10)
    polled = client.poll(subscription, 10)
    assert (polled["count"], polled["lastPosition"]) == (10, stream.position)
    recording_id = signals[0]["recordingId"]
    await_true(lambda: position_of(pair, recording_id) == stream.position)
    client.close_resource(subscription)
    end(pair, stream, recording_id)


def test_tags_without_a_live_destination(pair: Pair) -> None:
    """Tags alone share what is replayed; the signals are those of any replication."""
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
    assert pair.source.segments(stream.recording_id) == pair.destination.segments(recording_id)


def test_a_live_stream_that_does_not_come(pair: Pair) -> None:
    """The replay is kept as long as it is all there is; with the source's end, all ends."""
    stream = live_stream(pair, 2006)
    nowhere = f"aeron:udp?control-mode=dynamic|control=localhost:{java.free_port()}"
    pair.replicate(stream.recording_id, liveDestination=nowhere)
    recording_id = pair.await_signals("EXTEND")[0]["recordingId"]
    position = stream.offer(100)
    await_true(lambda: position_of(pair, recording_id) == position)
    stream.stop()
    signals = pair.await_signals("STOP")
    if "REPLICATE_END" not in [name for name, _ in shown(signals)]:
        signals += pair.await_signals("REPLICATE_END")
    assert ("ERROR", GENERIC) in shown(signals)
    assert ("STOP", position) in shown(signals)
    assert "MERGE" not in [name for name, _ in shown(signals)]
    assert pair.source.segments(stream.recording_id) == pair.destination.segments(recording_id)


@pytest.mark.parametrize("destination", ["aerotape"], indirect=True)
def test_an_invalid_live_destination(pair: Pair) -> None:
    """Our archive ends the replication; the Java archive would follow the replay indefinitely."""
    stream = live_stream(pair, 2007)
    pair.replicate(stream.recording_id, liveDestination="aeron:udp?endpoint=nowhere.invalid:1")
    signals = pair.await_signals("REPLICATE_END")
    assert ("ERROR", GENERIC) in shown(signals)
    stream.stop()


def test_joining_a_stream_that_does_not_pause(pair: Pair) -> None:
    """No message is lost or doubled where the replay hands over to the live stream."""
    stream = live_stream(pair, 2008, count=2_000)
    pair.replicate(stream.recording_id, liveDestination=stream.channel)
    signals: list[dict[str, Any]] = []
    deadline_s = time.monotonic() + 60
    while "REPLICATE_END" not in [name for name, _ in shown(signals)]:
        assert time.monotonic() < deadline_s, signals
        stream.offer(7)
        signals += pair.destination.client.call("takeSignals")
    stream.offer(100)
    assert [name for name, _ in shown(signals)] == [
        "REPLICATE",
        "EXTEND",
        "MERGE",
        "REPLICATE_END",
    ]
    recording_id = signals[0]["recordingId"]
    await_true(lambda: position_of(pair, recording_id) == stream.position)
    end(pair, stream, recording_id)
