"""Replays and responses over response channels."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from support.daemon.archives import ServedArchive
from support.daemon.recording import Made, recorded, start_recording, stop
from support.jvm import java

import aerotape
from aerotape.errors import AeronError, ArchiveError, UnknownRecordingError


def response_channel() -> str:
    """A response channel with a free port at the archive."""
    return f"aeron:udp?control-mode=response|control=localhost:{java.free_port()}"


@pytest.fixture
def client(archive: ServedArchive) -> Iterator[aerotape.ArchiveClient]:
    """A client that uses a response channel instead of a local address."""
    with archive.connect(control_response_channel=response_channel()) as connected:
        yield connected


def payloads(messages: list[aerotape.Message]) -> list[bytes]:
    return [each.payload for each in messages]


def sent(made: Made) -> list[bytes]:
    return [payload for payload, _, _ in made.sent]


def test_replay(client: aerotape.ArchiveClient) -> None:
    """Replays work over the channel of the responses and over other response channels."""
    made = recorded(client, 100)
    for channel in (None, response_channel()):
        with client.replay(made.recording_id, channel=channel) as replay:
            assert payloads(list(replay)) == sent(made)
    position = made.sent[49][1]
    with client.replay(made.recording_id, position) as replay:
        assert payloads(list(replay)) == sent(made)[50:]


def test_replay_over_ipc(archive: ServedArchive) -> None:
    """Response channels work over IPC."""
    ipc = "aeron:ipc?control-mode=response"
    with archive.connect(
        control_request_channel="aeron:ipc", control_response_channel=ipc
    ) as client:
        made = recorded(client, 20)
        assert payloads(list(client.replay(made.recording_id, channel=ipc))) == sent(made)


def test_replay_of_a_live_recording(client: aerotape.ArchiveClient) -> None:
    """The recording is followed until it stops, with many concurrent replays."""
    made = start_recording(client, count=10)
    with client.replay(made.recording_id) as replay:
        first = [next(replay) for _ in range(10)]
        others = [client.replay(made.recording_id, stream_id=50 + n) for n in range(5)]
        stop(client, made)
        assert payloads(first + list(replay)) == sent(made)
        for other in others:
            assert payloads(list(other)) == sent(made)


def test_bounded_replay(client: aerotape.ArchiveClient) -> None:
    """A counter limits the replay."""
    made = recorded(client, 20)
    bound = client.aeron.native.add_counter(10_001, b"", "bound")
    bound.set(made.sent[9][1])
    with client.replay(made.recording_id, limit_counter_id=bound.id) as replay:
        assert payloads([next(replay) for _ in range(10)]) == sent(made)[:10]
        bound.set(made.end)
        assert payloads([next(replay) for _ in range(10)]) == sent(made)[10:]


def test_start_replay(client: aerotape.ArchiveClient) -> None:
    """start_replay replays to the given subscription only."""
    made = recorded(client, 5)
    channel = response_channel()
    wanted = client.aeron.add_subscription(channel, 61)
    replay_id = client.start_replay(
        made.recording_id, channel, 61, subscription_id=wanted.registration_id
    )
    got: list[bytes] = []
    while len(got) < 5:
        messages = wanted.poll(timeout_ns=10_000_000_000)
        assert messages
        assert {each.session_id & 0xFFFFFFFF for each in messages} == {replay_id & 0xFFFFFFFF}
        got += payloads(messages)
    assert got == sent(made)
    wanted.close()


def test_refusals(client: aerotape.ArchiveClient) -> None:
    """The archive's errors are raised as for other replays, and all resources are closed."""
    made = recorded(client, 3)
    with pytest.raises(ArchiveError) as refused:
        client.replay(made.recording_id, 33)
    assert refused.value.correlation_id != -1
    channel = response_channel()
    subscription = client.aeron.add_subscription(channel, 62)
    with pytest.raises(UnknownRecordingError):
        client.start_replay(77_777, channel, 62, subscription_id=subscription.registration_id)
    with pytest.raises(AeronError):
        client.start_replay(made.recording_id, channel, 62, subscription_id=1 << 40)
    assert client.get_archive_id() == client.archive_id
    subscription.close()


def test_asynchronous_replay(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """The asynchronous client supports response channels too."""
    made = recorded(client, 30)

    async def replayed() -> list[bytes]:
        async with (
            aerotape.connect_async(
                aeron_dir=archive.aeron_dir,
                control_request_channel=archive.control_channel,
                control_response_channel=response_channel(),
            ) as connected,
            connected.replay(made.recording_id) as replay,
        ):
            return [message.payload async for message in replay]

    assert asyncio.run(replayed()) == sent(made)
