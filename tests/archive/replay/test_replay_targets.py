"""Destinations of replays and their channels, and that no replay delays another."""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from support.daemon.control_rig import await_true
from support.jvm import java
from support.jvm.java import JavaClient
from support.model.messages import message

from aerotape import _native

pytestmark = pytest.mark.jvm

IPC = "aeron:ipc?term-length=64k"
STREAM_ID = 3101
STREAM_IDS = itertools.count(3110)
SECOND_NS = 1_000_000_000
PUBLISHER_LIMIT = 1


@pytest.fixture(scope="module")
def native(either: Any) -> Iterator[_native.AeronClient]:
    """An Aeron client on the same driver."""
    aeron = _native.AeronClient(str(either.aeron_dir))
    yield aeron
    aeron.close()


def record(client: JavaClient, stream_id: int, count: int) -> dict[str, Any]:
    """Record messages and stop; return the recording's id, end, count and digest."""
    subscription_id = client.call("startRecording", IPC, stream_id, "LOCAL")
    publication = client.add_exclusive_publication(IPC, stream_id)
    counter = client.recording_counter(publication["sessionId"])
    offered = client.offer(publication, seed=stream_id, count=count, max_length=4000)
    assert client.await_counter(counter["counterId"], offered["position"]) == offered["position"]
    client.call("stopRecording", subscription_id)
    recording_id = counter["recordingId"]
    await_true(lambda: client.call("getStopPosition", recording_id) == offered["position"])
    client.close_resource(publication)
    return {"id": recording_id, **offered}


@pytest.fixture(scope="module")
def recording(client: JavaClient) -> dict[str, Any]:
    """A recording of several terms that has stopped."""
    return record(client, STREAM_ID, 200)


def start(client: JavaClient, recording: dict[str, Any], channel: str, stream_id: int) -> int:
    """Start a replay of all of it; return the session id of its stream."""
    replay_id = client.call("startReplay", recording["id"], 0, -1, channel, stream_id)
    return struct.unpack("<i", struct.pack("<q", replay_id)[:4])[0]  # type: ignore[no-any-return]


def test_replay_to_dynamic_mdc(client: JavaClient, recording: dict[str, Any]) -> None:
    """Any subscriber at the control address receives the replay."""
    control = f"localhost:{java.free_port()}"
    source = f"aeron:udp?control={control}|control-mode=dynamic"
    subscription = client.add_subscription(f"{source}|endpoint=localhost:0", 3102)
    start(client, recording, source, 3102)
    received = client.poll(subscription, recording["count"])
    assert received["digest"] == recording["digest"]
    client.close_resource(subscription)


def test_replay_to_a_destination(
    client: JavaClient, native: _native.AeronClient, recording: dict[str, Any]
) -> None:
    """A subscription with manual control receives the replay at an added destination."""
    endpoint = f"aeron:udp?endpoint=localhost:{java.free_port()}"
    subscription = native.add_subscription("aeron:udp?control-mode=manual", 3103)
    subscription.add_destination(endpoint)
    start(client, recording, endpoint, 3103)
    payloads: list[bytes] = []
    while len(payloads) < recording["count"]:
        polled = subscription.poll(100, 10 * SECOND_NS)
        assert polled, f"only {len(payloads)} messages came"
        payloads += [each[0] for each in polled]
    assert payloads[-1] == message(STREAM_ID, recording["count"] - 1, 32, 4000)
    subscription.close()


@pytest.mark.parametrize(
    ("asked", "becomes"),
    [
        ("aeron:ipc", {"linger": "5000000000"}),
        ("aeron:ipc?linger=7000000", {"linger": "7000000"}),
        (
            "aeron:ipc?session-id=-77|alias=mine|eos=false|sparse=true|linger=0",
            {
                "session-id": "-77",
                "alias": "mine",
                "eos": "false",
                "sparse": "true",
                "linger": "0",
            },
        ),
        (
            "aeron:ipc?term-length=1m|mtu=8k|init-term-id=9|term-id=9|term-offset=64|ssc=true",
            {"linger": "5000000000"},
        ),
        ("aeron:udp?endpoint=localhost:{port}|ttl=1|so-sndbuf=128k", None),
    ],
)
def test_the_channel_of_a_replay(
    client: JavaClient,
    native: _native.AeronClient,
    recording: dict[str, Any],
    asked: str,
    becomes: dict[str, str] | None,
) -> None:
    """Term length and MTU are the recording's, not the request's; the address is the request's."""
    channel = asked.format(port=java.free_port())
    # The previous stream may still exist; its end would be read again.
    stream_id = next(STREAM_IDS)
    subscription = client.add_subscription(channel, stream_id)
    session_id = start(client, recording, channel, stream_id)
    if "session-id" in channel:
        assert session_id == -77
    labels = [
        row[3]
        for row in native.counters().rows(PUBLISHER_LIMIT)
        if struct.unpack_from("<qii", row[2])[1:] == (session_id, stream_id)
    ]
    [row] = client.call("listRecording", recording["id"])
    [text] = [re.sub(r"^.* (aeron:)", r"\1", label) for label in labels]
    media, _, parameters = text.partition("?")
    given = dict(each.split("=", 1) for each in parameters.split("|"))
    assert media == channel.partition("?")[0]
    alias = given.get("alias", "")
    if alias.startswith("archive-"):  # ours, for the counters of the publication
        assert alias.endswith(f"-replay-{recording['id']}") and "alias" not in (becomes or {})
        del given["alias"]
    assert nanoseconds(given.pop("linger")) == int((becomes or {}).get("linger", "5000000000"))
    expected = {
        "mtu": "1408",
        "term-length": "64k",
        "init-term-id": str(row["initialTermId"]),
        "term-id": str(row["initialTermId"]),
        "term-offset": "0",
    }
    if becomes is None:
        becomes = {"endpoint": given["endpoint"], "ttl": "1", "so-sndbuf": "128k"}
    expected |= {name: value for name, value in becomes.items() if name != "linger"}
    assert given == expected
    received = client.poll(subscription, recording["count"])
    assert received["digest"] == recording["digest"]
    client.close_resource(subscription)


def nanoseconds(duration: str) -> int:
    """Read a duration as Aeron writes it."""
    number, unit = re.fullmatch(r"(\d+)([a-z]*)", duration).groups()  # type: ignore[union-attr]
    return int(number) * {"": 1, "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}[unit]


def test_a_subscriber_that_never_polls_delays_no_other(
    client: JavaClient, recording: dict[str, Any]
) -> None:
    """Its replay waits when the window is full; recordings and other replays run to their ends."""
    idle = client.add_subscription("aeron:ipc", 3105)
    start(client, recording, "aeron:ipc", 3105)
    for stream_id in (3106, 3107):
        subscription = client.add_subscription("aeron:ipc", stream_id)
        start(client, recording, "aeron:ipc", stream_id)
        received = client.poll(subscription, recording["count"])
        assert (received["digest"], received["ended"]) == (recording["digest"], False)
        client.close_resource(subscription)
    assert recording["position"] > 3 * 65536
    other = record(client, 3108, 150)
    assert other["count"] == 150
    # The subscriber can still read its replay.
    received = client.poll(idle, recording["count"])
    assert received["digest"] == recording["digest"]
    client.close_resource(idle)
