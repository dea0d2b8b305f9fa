"""The channels that a replication records, and that the source replays to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aerotape.archive.replication.request import (
    ReplicationRequest,
    recording_channel,
    replay_channel,
    replay_destination,
)
from aerotape.channel_uri import ChannelUri

REQUEST = ReplicationRequest(
    src_recording_id=1,
    src_control_channel="aeron:udp?endpoint=far:8010",
    src_control_stream_id=10,
    replication_channel="aeron:udp?endpoint=here:0|interface=10.0.0.0/8|mtu=4096",
)


def test_a_given_port_is_used() -> None:
    """Only port 0 is replaced by the bound port."""
    request = replace(REQUEST, replication_channel="aeron:udp?endpoint=[::1]:20000")
    channel = replay_channel(
        request, resolved_endpoint="[::1]:20000", replay_session_id=5, subscription_id=8
    )
    assert channel == "aeron:udp?endpoint=[::1]:20000|session-id=5"


@pytest.mark.parametrize(
    "fields, tags",
    [
        ({"live_destination": "aeron:udp?control=far:1|control-mode=dynamic"}, "77,77"),
        ({"channel_tag_id": 3}, "3,77"),
        ({"subscription_tag_id": 4}, "77,4"),
        ({"channel_tag_id": 3, "subscription_tag_id": 4}, "3,4"),
    ],
)
def test_destinations(fields: dict[str, str | int], tags: str) -> None:
    """With tags or a live stream, the endpoint becomes a destination of a tagged subscription."""
    request = replace(REQUEST, **fields)  # type: ignore[arg-type]
    assert request.has_destinations
    uri = ChannelUri.parse(recording_channel(request, 77, -5))
    assert uri.get("endpoint") is None
    assert (uri.get("tags"), uri.get("control-mode")) == (tags, "manual")
    assert (uri.get("session-id"), uri.get("rejoin")) == ("-5", "false")
    assert replay_destination(request) == ("aeron:udp?endpoint=here:0|interface=10.0.0.0/8")


def test_a_replay_before_the_live_stream() -> None:
    """When stopped, it neither lingers nor ends the stream."""
    request = replace(REQUEST, live_destination="aeron:udp?endpoint=live:1")
    uri = ChannelUri.parse(
        replay_channel(request, resolved_endpoint="h:9", replay_session_id=1, subscription_id=8)
    )
    assert (uri.get("linger"), uri.get("eos")) == ("0", "false")
