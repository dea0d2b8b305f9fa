"""The Java harness itself, tried on the Java archive: what it says must be so before we use it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.jvm.java import (
    HarnessError,
    JavaArchive,
    JavaArchiveException,
    JavaClient,
    archive_tool,
)
from support.model.messages import digest, message, messages

StartClient = Callable[[Path | str], JavaClient]
IPC = "aeron:ipc?term-length=65536"
UDP_RESPONSE = "aeron:udp?endpoint=localhost:0"


def test_messages_are_the_same_in_both_languages(
    java_archive: JavaArchive, java_client: StartClient
) -> None:
    """Payloads and digests made by Java are those that Python makes from the same seed."""
    client = java_client(java_archive.aeron_dir)
    subscription = client.add_subscription(IPC, 7)
    publication = client.add_publication(IPC, 7)
    offered = client.offer(publication, seed=42, count=20, min_length=0, max_length=1500)
    polled = client.poll(subscription, 20, details=True)
    expected = list(messages(42, 20, 0, 1500))
    assert [bytes.fromhex(row["payload"]) for row in polled["messages"]] == expected
    assert polled["digest"] == offered["digest"] == digest(expected)
    assert len({len(payload) for payload in expected}) > 10


def test_record_list_and_replay(java_archive: JavaArchive, java_client: StartClient) -> None:
    """A stream recorded by the Java archive is listed and replayed message for message."""
    client = java_client(java_archive.aeron_dir)
    session = client.connect(java_archive.control_channel, clientName="harness")
    assert client.call("controlSessionId") == session["controlSessionId"]
    assert client.call("archiveId") == session["archiveId"]

    client.call("startRecording", IPC, 1001, "LOCAL")
    publication = client.add_exclusive_publication(IPC, 1001)
    counter = client.recording_counter(publication["sessionId"])
    offered = client.offer(publication, seed=1, count=500, max_length=4000)
    assert client.await_counter(counter["counterId"], offered["position"]) == offered["position"]
    recording_id = counter["recordingId"]
    assert client.call("getRecordingPosition", recording_id) == offered["position"]
    assert client.call("getStopPosition", recording_id) == -1
    client.call("stopRecording", IPC, 1001)
    deadline = time.monotonic() + 60
    while client.call("getStopPosition", recording_id) == -1:
        assert time.monotonic() < deadline, "the recording does not stop"
    assert client.call("getStopPosition", recording_id) == offered["position"]
    assert client.call("getStartPosition", recording_id) == 0
    assert client.call("getMaxRecordedPosition", recording_id) == offered["position"]

    [row] = client.call("listRecordings", 0, 10)
    assert row["recordingId"] == recording_id
    assert row["stopPosition"] == offered["position"]
    assert row["sessionId"] == publication["sessionId"]
    assert client.call("listRecordingsForUri", 0, 10, "aeron:ipc", 1001) == [
        row | {"correlationId": client.call("lastCorrelationId")}
    ]
    assert len(client.call("listRecording", recording_id)) == 1
    found = client.call("findLastMatchingRecording", 0, "ipc", 1001, publication["sessionId"])
    assert found == recording_id

    replay = client.call("replay", recording_id, 0, offered["position"], "aeron:ipc", 2001)
    replayed = client.poll(replay, 501)
    assert replayed["count"] == 500
    assert replayed["digest"] == offered["digest"]
    assert replayed["ended"]
    assert replayed["first"] == message(1, 0, 32, 4000).hex()
    assert replayed["lastPosition"] == offered["position"]


def test_ways_to_stop_and_bounded_replay(
    java_archive: JavaArchive, java_client: StartClient
) -> None:
    """Overloads are told apart by their arguments; a bounded replay stops at its counter."""
    client = java_client(java_archive.aeron_dir)
    client.connect(java_archive.control_channel)
    subscription_id = client.call("startRecording", IPC, 11, "LOCAL", True)
    publication = client.add_publication(IPC, 11)
    counter = client.recording_counter(publication["sessionId"])
    offered = client.offer(publication, seed=2, count=100, max_length=1000)
    client.await_counter(counter["counterId"], offered["position"])
    assert client.call("tryStopRecordingByIdentity", counter["recordingId"]) is True
    assert client.call("tryStopRecording", subscription_id) is False
    assert client.call("tryStopRecording", IPC, 11) is False

    bound = client.call("addCounter", 10_001, "bound")
    end_of_first = (32 + len(message(2, 0, max_length=1000)) + 31) // 32 * 32
    client.call("setCounter", bound["handle"], end_of_first)
    replay = client.add_subscription("aeron:ipc", 12)
    params = {"position": 0, "length": 1 << 40, "boundingLimitCounterId": bound["counterId"]}
    session_id = client.call("startReplay", counter["recordingId"], "aeron:ipc", 12, params)
    assert client.poll(replay, 1)["lastPosition"] == end_of_first
    assert client.poll(replay, 1, timeout_ms=500)["count"] == 0
    client.call("stopReplay", session_id)
    client.call("stopAllReplays", counter["recordingId"])


def test_errors_carry_the_archives_code(
    java_archive: JavaArchive, java_client: StartClient
) -> None:
    """An error response becomes an exception with its code, and the client goes on."""
    client = java_client(java_archive.aeron_dir)
    client.connect(java_archive.control_channel)
    with pytest.raises(JavaArchiveException, match="unknown recording id: 99") as caught:
        client.call("getStopPosition", 99)
    assert caught.value.error_code == 5
    assert client.call("listRecordings", 0, 1) == []


def test_bytes_reach_the_control_channel(
    java_archive: JavaArchive, java_client: StartClient
) -> None:
    """Garbage offered to the control stream is delivered, and the archive lives on."""
    client = java_client(java_archive.aeron_dir)
    control = client.add_publication(java_archive.control_channel, 10)
    assert client.offer_bytes(control, b"\x00\x01garbage") > 0
    client.connect(java_archive.control_channel)
    assert client.call("listRecordings", 0, 1) == []


def test_background_offering_and_archive_tool(
    java_archive: JavaArchive, java_client: StartClient
) -> None:
    """A recording that is killed midway is seen by ArchiveTool without a stop position."""
    client = java_client(java_archive.aeron_dir)
    client.connect(java_archive.control_channel)
    client.call("startRecording", IPC, 5, "LOCAL")
    publication = client.add_publication(IPC, 5)
    job = client.start_offering(publication, seed=3, count=1 << 40)
    counter = client.recording_counter(publication["sessionId"])
    assert client.await_counter(counter["counterId"], 1 << 20) >= 1 << 20
    assert client.offering(job)["count"] > 100
    java_archive.kill()
    assert not java_archive.process.is_running
    described = archive_tool(java_archive.archive_dir, "describe")
    assert "streamId=5" in described.stdout
    assert "stopPosition=-1" in described.stdout


def test_archive_on_an_external_driver(
    java_archive: JavaArchive, java_client: StartClient, tmp_path: Path
) -> None:
    """A second archive can be run on the first one's driver, and stops without it."""
    with JavaArchive(tmp_path / "second", java_archive.aeron_dir, driver="external") as second:
        client = java_client(java_archive.aeron_dir)
        client.connect(second.control_channel)
        assert client.call("listRecordings", 0, 1) == []
    assert java_archive.process.is_running
    assert java_archive.aeron_dir.is_dir()


def test_a_refused_start_is_told(java_archive: JavaArchive, aeron_dir: Path) -> None:
    """A Java archive that cannot start (directory in use) is an error with its log, no hang."""
    with pytest.raises(HarnessError, match="active mark file"):
        JavaArchive(java_archive.archive_dir, aeron_dir, driver="external").start()


def test_messages_that_cannot_be_offered_are_told(
    java_archive: JavaArchive, java_client: StartClient
) -> None:
    """Offering to nobody fails after its timeout, saying why."""
    client = java_client(java_archive.aeron_dir)
    publication = client.add_publication(IPC, 5)
    with pytest.raises(HarnessError, match="after 0 messages: NOT_CONNECTED"):
        client.offer(publication, seed=1, count=1, timeout_ms=50)


def test_a_dead_process_is_told(java_archive: JavaArchive, java_client: StartClient) -> None:
    """A call to a client that has died fails at once."""
    client = java_client(java_archive.aeron_dir)
    os.kill(client.process.pid, signal.SIGKILL)
    with pytest.raises(HarnessError, match="has ended"):
        client.call("counters", 100)
