"""Listings of recording subscriptions, and channel updates, as a Java client sees them.

Each test runs on our daemon and on the Java archive.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from support.builders.streams import record
from support.daemon.control_rig import RawClient
from support.jvm.java import JavaArchive, JavaArchiveException, JavaClient, free_port

from aerotape import _native
from aerotape.codecs.generated import archive as codecs

GENERIC = 0
NOBODY = 10_000


# ---- list recording subscriptions ----------------------------------------------------------------


@pytest.fixture(scope="module")
def subscriptions(client: JavaClient) -> dict[int, tuple[int, str]]:
    """Subscriptions by id: stream id and channel of each recording request."""
    port = free_port()
    udp = f"aeron:udp?endpoint=localhost:{port}"
    expected = {}
    for channel, stream_id, source, listed in [
        ("aeron:ipc?alias=first|term-length=64k", 4001, "LOCAL", "aeron:ipc?alias=first"),
        ("aeron:ipc?alias=second", 4002, "LOCAL", "aeron:ipc?alias=second"),
        (f"{udp}|mtu=1408", 4001, "LOCAL", f"aeron-spy:{udp}"),
        (f"{udp}|alias=third", 4003, "REMOTE", f"{udp}|alias=third"),
    ]:
        subscription_id = client.call("startRecording", channel, stream_id, source)
        expected[subscription_id] = (stream_id, listed)
    return expected


def listed(
    client: JavaClient, index: int, count: int, fragment: str, stream_id: int, apply: bool
) -> dict[int, tuple[int, str]]:
    rows = client.call("listRecordingSubscriptions", index, count, fragment, stream_id, apply)
    return {row["subscriptionId"]: (row["streamId"], row["strippedChannel"]) for row in rows}


@pytest.mark.jvm
def test_all_subscriptions(client: JavaClient, subscriptions: dict[int, Any]) -> None:
    """Each has its id, stream id, and the channel as subscribed, including a spy prefix."""
    assert listed(client, 0, 100, "", 0, False) == subscriptions


@pytest.mark.jvm
@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_number_of_subscriptions(
    client: JavaClient, subscriptions: dict[int, Any], count: int
) -> None:
    """Pages have the requested size, and each subscription is listed once."""
    pages = [listed(client, index, count, "", 0, False) for index in range(0, 4, count)]
    assert [len(page) for page in pages] == [count] * (4 // count)
    assert {key: page[key] for page in pages for key in page} == subscriptions


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("fragment", "stream_id", "apply", "streams"),
    [
        ("alias=", 0, False, [4001, 4002, 4003]),
        ("aeron-spy:", 0, False, [4001]),
        ("udp", 4003, True, [4003]),
        ("", 4001, True, [4001, 4001]),
        ("ipc", 4001, True, [4001]),
        ("nothing of the kind", 0, False, []),
        ("", 77, True, []),
    ],
)
@pytest.mark.usefixtures("subscriptions")
def test_subscriptions_that_match(
    client: JavaClient, fragment: str, stream_id: int, apply: bool, streams: list[int]
) -> None:
    """They match by a fragment of the channel and, optionally, the stream id."""
    rows = client.call("listRecordingSubscriptions", 0, 100, fragment, stream_id, apply)
    assert sorted(row["streamId"] for row in rows) == streams


@pytest.mark.jvm
@pytest.mark.parametrize(("index", "count"), [(-1, 10), (4, 10), (100, 10), (0, 0), (0, -5)])
@pytest.mark.usefixtures("subscriptions")
def test_empty_listings_of_subscriptions(client: JavaClient, index: int, count: int) -> None:
    """An index without a subscription, or a count below 1, lists nothing."""
    assert listed(client, index, count, "", 0, False) == {}


@pytest.fixture
def raw(either: Any) -> Iterator[RawClient]:
    """A client that sees each message."""
    with closing(_native.AeronClient(str(either.aeron_dir))) as aeron:
        made = RawClient(aeron, either.control_channel, response_stream_id=4100)
        made.connect()
        yield made
        made.close()


@pytest.mark.jvm
@pytest.mark.usefixtures("subscriptions")
def test_the_end_of_a_listing_is_sent_unless_it_is_full(raw: RawClient) -> None:
    """SUBSCRIPTION_UNKNOWN with relevant id 0 follows fewer descriptors than requested."""
    asked = {"pseudo_index": 0, "subscription_count": 5, "stream_id": 0, "channel": ""}
    response = raw.call(codecs.ListRecordingSubscriptionsRequest, **asked)
    assert response.code is codecs.ControlResponseCode.SUBSCRIPTION_UNKNOWN
    assert (response.relevant_id, response.error_message) == (0, "")
    assert [type(message).__name__ for message in raw.received] == (
        ["RecordingSubscriptionDescriptor"] * 4
    )
    raw.received.clear()
    asked["subscription_count"] = 4
    raw.request(codecs.ListRecordingSubscriptionsRequest, **asked)
    for _ in range(4):
        raw.await_message(codecs.RecordingSubscriptionDescriptor)
    # A later response follows the end of the listing.
    raw.call(codecs.ArchiveIdRequest)
    assert raw.received == []


@pytest.mark.jvm
def test_stopped_subscriptions_are_not_listed(
    client: JavaClient, subscriptions: dict[int, Any]
) -> None:
    """A subscription that is stopped is not listed."""
    first, *_ = subscriptions
    client.call("stopRecording", first)
    assert first not in listed(client, 0, 100, "", 0, False)


# ---- update channel ------------------------------------------------------------------------------

LONG = "aeron:udp?endpoint=localhost:20121|alias=" + "x" * 900


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("channel", "stripped"),
    [
        ("aeron:ipc?alias=b|mtu=2k", "aeron:ipc?alias=b"),
        (
            "aeron:udp?endpoint=localhost:20121|term-length=64k",
            "aeron:udp?endpoint=localhost:20121",
        ),
        (LONG, LONG),
        ("aeron:ipc", "aeron:ipc"),
    ],
)
def test_a_new_channel_is_listed_and_found(client: JavaClient, channel: str, stripped: str) -> None:
    """The new channel may be shorter or longer; other recordings are unchanged."""
    stream = record(client, 4201, 1024)
    neighbour = record(client, 4202, 1024)
    [before] = client.call("listRecording", stream.recording_id)
    [neighbour_before] = client.call("listRecording", neighbour.recording_id)
    client.call("updateChannel", stream.recording_id, channel)
    [after] = client.call("listRecording", stream.recording_id)
    changed = {"originalChannel": channel, "strippedChannel": stripped}
    assert after == {**before, **changed, "correlationId": after["correlationId"]}
    [neighbour_after] = client.call("listRecording", neighbour.recording_id)
    neighbour_before["correlationId"] = neighbour_after["correlationId"]
    assert neighbour_after == neighbour_before
    found = client.call(
        "findLastMatchingRecording", 0, channel, 4201, stream.publication["sessionId"]
    )
    assert found == stream.recording_id
    later = record(client, 4203, 1024)
    assert later.recording_id == neighbour.recording_id + 1
    assert [
        row["recordingId"] for row in client.call("listRecordings", stream.recording_id, 100)
    ] == [stream.recording_id, neighbour.recording_id, later.recording_id]


@pytest.mark.jvm
def test_a_live_recording_gets_a_new_channel(client: JavaClient) -> None:
    """It continues, and its stop position is written to its descriptor."""
    stream = record(client, 4210, 2048, live=True)
    client.call("updateChannel", stream.recording_id, LONG)
    stream.offer(client, 4096)
    stream.stop(client)
    client.call("stopRecording", "aeron:ipc", 4210)
    [row] = client.call("listRecording", stream.recording_id)
    assert (row["originalChannel"], row["stopPosition"]) == (LONG, 6144)


@pytest.mark.jvm
def test_invalid_channels(either: Any, client: JavaClient) -> None:
    """They are refused, and the recording's channel is unchanged."""
    if isinstance(either, JavaArchive):
        pytest.skip("the reference leaves the client without an answer")
    stream = record(client, 4211, 1024)
    [before] = client.call("listRecording", stream.recording_id)
    for channel in ["", "tcp://somewhere", "aeron:ipc?alias", "aeron:tcp"]:
        with pytest.raises(JavaArchiveException) as caught:
            client.call("updateChannel", stream.recording_id, channel)
        assert caught.value.error_code == GENERIC
    [after] = client.call("listRecording", stream.recording_id)
    assert after["originalChannel"] == before["originalChannel"]


def test_an_unknown_recording_has_no_channel(raw: RawClient) -> None:
    """The error is RECORDING_UNKNOWN with the requested id."""
    response = raw.call(codecs.UpdateChannelRequest, recording_id=NOBODY, channel="aeron:ipc")
    assert response.code is codecs.ControlResponseCode.RECORDING_UNKNOWN
    assert response.relevant_id == NOBODY
