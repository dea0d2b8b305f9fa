"""Our client against both archives: the Java archive gives it what ours gives it."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.daemon.daemon import AerotapeArchive
from support.jvm.java import JavaArchive
from support.model.messages import messages

import aerotape
from aerotape import ArchiveClient

StartArchive = Callable[..., AerotapeArchive | JavaArchive]
IPC = "aeron:ipc?term-length=64k|init-term-id=-7|term-id=-7|term-offset=0|session-id=77"
COUNT = 200
MAX_LENGTH = 6_000


@pytest.fixture(params=["java", "aerotape"])
def archive(request: pytest.FixtureRequest, start_archive: StartArchive) -> Any:
    """Each of the two archives in turn."""
    properties = {"aeron.archive.id": "7", "aeron.archive.max.concurrent.recordings": "200"}
    return start_archive(request.param, properties=properties)


@pytest.fixture
def client(archive: JavaArchive) -> Any:
    """Our client, connected over UDP."""
    with aerotape.connect(
        aeron_dir=archive.aeron_dir, control_request_channel=archive.control_channel
    ) as connected:
        yield connected


def await_position(client: ArchiveClient, recording_id: int, position: int) -> None:
    deadline = time.monotonic() + 60
    while client.recording_position(recording_id) < position:
        assert time.monotonic() < deadline, "the recording does not advance"
        time.sleep(0.005)


def await_stopped(client: ArchiveClient, recording_id: int) -> None:
    """A stop is answered when it has been ordered: the position is written a little later."""
    deadline = time.monotonic() + 60
    while client.stop_position(recording_id) == -1:
        assert time.monotonic() < deadline, "the recording does not stop"


def publish(client: ArchiveClient, seed: int, stream_id: int = 1) -> tuple[int, list[int]]:
    """Publish into a recording that has been started: its id and where each message ends."""
    with client.aeron.add_exclusive_publication(IPC, stream_id) as publication:
        ends = [
            publication.send(payload) for payload in messages(seed, COUNT, max_length=MAX_LENGTH)
        ]
        deadline = time.monotonic() + 60
        recording_id = -1
        while recording_id < 0:
            assert time.monotonic() < deadline, "no recording has begun"
            recording_id = client.find_last_matching_recording(0, "aeron:ipc", stream_id, 77)
        await_position(client, recording_id, ends[-1])
    return recording_id, ends


def test_record_list_stop(archive: JavaArchive, client: ArchiveClient) -> None:
    """Every query tells the same of a recording, before and after it has been stopped."""
    assert client.archive_id == client.get_archive_id() == 7
    client.keep_alive()
    subscription_id = client.start_recording("aeron:ipc", 1, "local")
    assert list(client.list_recordings()) == []
    recording_id, ends = publish(client, 3)
    assert client.start_position(recording_id) == 0
    assert client.max_recorded_position(recording_id) == ends[-1]
    client.stop_recording_subscription(subscription_id)
    await_stopped(client, recording_id)
    assert client.try_stop_recording("aeron:ipc", 1) is False
    assert client.stop_recording_by_identity(recording_id) is False
    assert client.stop_position(recording_id) == ends[-1]
    assert client.recording_position(recording_id) == -1

    [listed] = client.list_recordings()
    assert [listed] == list(client.list_recordings_for_uri("ipc", 1))
    assert listed == client.list_recording(recording_id)
    assert client.list_recording(recording_id + 1) is None
    assert list(client.list_recordings_for_uri("ipc", 2)) == []
    assert client.find_last_matching_recording(0, "ipc", 1, 78) == -1
    facts = dataclasses.asdict(listed)
    assert 0 < facts.pop("start_timestamp_ms") <= facts.pop("stop_timestamp_ms")
    assert facts == {
        "recording_id": 0,
        "start_position": 0,
        "stop_position": ends[-1],
        "initial_term_id": -7,
        "segment_file_length": 65_536,
        "term_buffer_length": 65_536,
        "mtu_length": 1_408,
        "session_id": 77,
        "stream_id": 1,
        "stripped_channel": "aeron:ipc",
        "original_channel": "aeron:ipc",
        "source_identity": "aeron:ipc",
    }


def test_pages_of_a_long_list(archive: JavaArchive, client: ArchiveClient) -> None:
    """Listing goes on past one answer's worth of recordings, in the order of ids."""
    client.start_recording("aeron:ipc", 1, "local")
    wanted = 120
    publications = [
        client.aeron.add_exclusive_publication("aeron:ipc?term-length=64k", 1)
        for _ in range(wanted)
    ]
    deadline = time.monotonic() + 60
    listed: list[Any] = []
    while len(listed) < wanted and time.monotonic() < deadline:
        listed = list(client.list_recordings())
    assert [row.recording_id for row in listed] == list(range(wanted))
    assert {row.session_id for row in listed} == {each.session_id for each in publications}
    assert [row.recording_id for row in client.list_recordings(115, 3)] == [115, 116, 117]


@pytest.mark.parametrize("channel", ["aeron:ipc", "aeron:udp?endpoint=localhost:0"])
def test_replay(archive: JavaArchive, client: ArchiveClient, channel: str) -> None:
    """Whole, from the middle and a part: each message as published, at its position."""
    client.start_recording("aeron:ipc", 1, "local")
    recording_id, ends = publish(client, 4)
    client.stop_recording("aeron:ipc", 1)
    await_stopped(client, recording_id)
    sent = list(messages(4, COUNT, max_length=MAX_LENGTH))
    with client.replay(recording_id, channel=channel) as replay:
        found = list(replay)
    assert [message.payload for message in found] == sent
    assert [message.end_position for message in found] == ends
    middle = ends[99]
    with client.replay(recording_id, middle, channel=channel) as replay:
        assert [message.payload for message in replay] == sent[100:]
    with client.replay(recording_id, middle, ends[119] - middle, channel=channel) as replay:
        assert [message.payload for message in replay] == sent[100:120]


def test_replay_follows_a_live_recording(archive: JavaArchive, client: ArchiveClient) -> None:
    """A replay of a live recording gives what comes later, and ends when the recording does."""
    client.start_recording("aeron:ipc", 1, "local")
    with client.aeron.add_exclusive_publication(IPC, 1) as publication:
        sent = list(messages(5, 100, max_length=MAX_LENGTH))
        for payload in sent[:50]:
            publication.send(payload)
        while client.find_last_matching_recording(0, "ipc", 1, 77) < 0:
            time.sleep(0.005)
        with client.replay(0, 0, timeout_ns=10_000_000_000) as replay:
            got = [next(replay).payload for _ in range(50)]
            for payload in sent[50:]:
                publication.send(payload)
            got += [next(replay).payload for _ in range(50)]
            assert got == sent
            client.stop_recording("aeron:ipc", 1)
            assert list(replay) == []


def test_refusals(archive: JavaArchive, client: ArchiveClient) -> None:
    """What the archive refuses is an ArchiveError with its code; the session stays usable."""

    def code(call: Callable[[], Any]) -> int:
        with pytest.raises(aerotape.ArchiveError) as caught:
            call()
        return int(caught.value.error_code)

    error = aerotape.ErrorCode
    assert code(lambda: client.stop_position(99)) == error.UNKNOWN_RECORDING
    assert code(lambda: client.stop_recording("aeron:ipc", 99)) == error.UNKNOWN_SUBSCRIPTION
    client.start_recording("aeron:ipc", 1, "local")
    assert (
        code(lambda: client.start_recording("aeron:ipc", 1, "local")) == error.ACTIVE_SUBSCRIPTION
    )
    assert code(lambda: client.start_replay(99, "aeron:ipc", 9)) == error.UNKNOWN_RECORDING
    recording_id, ends = publish(client, 6)
    assert (
        code(lambda: client.start_replay(recording_id, "aeron:ipc", 9, position=ends[-1] + 4096))
        == error.INVALID_POSITION
    )
    assert client.get_archive_id() == 7


def test_the_counter_of_a_recording(archive: JavaArchive, client: ArchiveClient) -> None:
    """The position counter of a live recording is found by type, and says what the archive says."""
    client.start_recording("aeron:ipc", 1, "local")
    with client.aeron.add_exclusive_publication(IPC, 1) as publication:
        end = publication.send(b"x" * 1000)
        while client.find_last_matching_recording(0, "ipc", 1, 77) < 0:
            time.sleep(0.005)
        await_position(client, 0, end)
        [row] = client.aeron.native.counters().rows(100)
        _, type_id, key, label, *_, value = row
        assert (type_id, value) == (100, end)
        assert int.from_bytes(key[:8], "little") == 0
        assert int.from_bytes(key[8:12], "little") == 77
        assert re.fullmatch(r"rec-pos: 0 77 1 aeron:ipc - archiveId=7", label)


def test_many_clients_at_once(archive: JavaArchive, tmp_path: Path) -> None:
    """Eight clients are served side by side, and leave one after the other."""
    clients = [
        aerotape.connect(
            aeron_dir=archive.aeron_dir, control_request_channel=archive.control_channel
        )
        for _ in range(8)
    ]
    assert len({each.control_session_id for each in clients}) == 8
    for number, each in enumerate(clients):
        each.start_recording("aeron:ipc", 100 + number, "local")
    while clients:
        assert clients[0].get_archive_id() == 7
        clients.pop().close()
