"""Replication requests; here one archive is both source and destination."""

from __future__ import annotations

import threading

import pytest
from support.daemon.archives import ServedArchive
from support.daemon.recording import recorded, start_recording, stop, wait_until
from support.jvm.java import free_port

import aerotape
from aerotape import RecordingSignal
from aerotape.errors import UnknownRecordingError, UnknownReplicationError


def _payloads(client: aerotape.ArchiveClient, recording_id: int) -> list[bytes]:
    return [message.payload for message in client.replay(recording_id)]


def test_replicate(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """A stopped recording is copied; signals report the progress and the copy's id."""
    made = recorded(client, 100)
    replication_id = client.replicate(made.recording_id, archive.control_channel)
    signals = []
    with client.signals(correlation_id=replication_id):
        while True:
            signals.append(client.await_signal(correlation_id=replication_id))
            if signals[-1].signal is RecordingSignal.REPLICATE_END:
                break
    kinds = [each.signal.name for each in signals]
    assert kinds[0] == "REPLICATE"
    assert "SYNC" in kinds
    copy = signals[0].recording_id
    assert copy != made.recording_id
    wait_until(lambda: client.stop_position(copy) == made.end, "the end of the copy")
    assert _payloads(client, copy) == [payload for payload, _, _ in made.sent]


def test_replicate_up_to_a_position(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """With a stop position the copy ends there, even of a live recording."""
    made = start_recording(client, count=50)
    position = made.sent[19][1]
    replication_id = client.replicate(
        made.recording_id,
        archive.control_channel,
        stop_position=position,
        replication_session_id=4711,
        replication_channel="aeron:udp?endpoint=localhost:0",
        file_io_max_length=4096,
    )
    first = client.await_signal(RecordingSignal.REPLICATE, correlation_id=replication_id)
    client.await_signal(RecordingSignal.REPLICATE_END, correlation_id=replication_id)
    wait_until(lambda: client.stop_position(first.recording_id) == position, "the end of the copy")
    found = client.list_recording(first.recording_id)
    assert found is not None
    assert found.session_id == 4711
    stop(client, made)


def test_stop_replication(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """A replication of a live recording continues until it is stopped; a second stop fails."""
    made = start_recording(client, count=5)
    replication_id = client.replicate(made.recording_id, archive.control_channel)
    copy = client.await_signal(RecordingSignal.REPLICATE, correlation_id=replication_id)
    wait_until(lambda: client.recording_position(copy.recording_id) == made.end, "the copying")
    client.stop_replication(replication_id)
    client.await_signal(RecordingSignal.REPLICATE_END, correlation_id=replication_id)
    with pytest.raises(UnknownReplicationError):
        client.stop_replication(replication_id)
    assert client.try_stop_replication(replication_id) is False
    stop(client, made)


def test_extends_a_recording(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """A copy that was cut short is extended by a second replication."""
    made = recorded(client, 60)
    position = made.sent[29][1]
    first = client.replicate(made.recording_id, archive.control_channel, stop_position=position)
    copy = client.await_signal(RecordingSignal.REPLICATE, correlation_id=first).recording_id
    client.await_signal(RecordingSignal.REPLICATE_END, correlation_id=first)
    wait_until(lambda: client.stop_position(copy) == position, "the first part")
    second = client.replicate(made.recording_id, archive.control_channel, dst_recording_id=copy)
    extended = client.await_signal(RecordingSignal.EXTEND, correlation_id=second)
    assert extended.recording_id == copy
    client.await_signal(RecordingSignal.REPLICATE_END, correlation_id=second)
    wait_until(lambda: client.stop_position(copy) == made.end, "the rest")
    assert _payloads(client, copy) == [payload for payload, _, _ in made.sent]


def test_refused(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """An unknown recording to extend is refused; an unknown source ends with an error."""
    made = recorded(client, 1)
    with pytest.raises(UnknownRecordingError):
        client.replicate(made.recording_id, archive.control_channel, dst_recording_id=9999)
    replication_id = client.replicate(9999, archive.control_channel)
    errors: list[aerotape.ArchiveError] = []

    def has_failed() -> bool:
        errors.extend(client.poll_for_errors())
        return bool(errors)

    wait_until(has_failed, "the error")
    assert errors[0].correlation_id == replication_id
    client.await_signal(RecordingSignal.REPLICATE_END, correlation_id=replication_id)


def test_joins_the_live_stream(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """With a live destination the copy catches up, joins the live stream and follows it."""
    control = f"aeron:udp?control=localhost:{free_port()}"
    made = start_recording(client, f"{control}|control-mode=dynamic|ssc=true|fc=max", 100)
    replication_id = client.replicate(
        made.recording_id,
        archive.control_channel,
        live_destination=f"{control}|endpoint=localhost:0",
    )
    over = threading.Event()

    def send() -> None:
        while not over.wait(0.001):
            made.send([b"live"])

    sender = threading.Thread(target=send)
    sender.start()
    try:
        copy = client.await_signal(
            RecordingSignal.REPLICATE, correlation_id=replication_id
        ).recording_id
        merged = client.await_signal(RecordingSignal.MERGE, correlation_id=replication_id)
        client.await_signal(RecordingSignal.REPLICATE_END, correlation_id=replication_id)
    finally:
        over.set()
        sender.join()
    assert merged.recording_id == copy
    assert client.try_stop_replication(replication_id) is False
    wait_until(lambda: client.recording_position(copy) == made.end, "the rest of the live stream")
    stop(client, made)
    wait_until(lambda: client.stop_position(copy) == made.end, "the end of the copy")
    assert _payloads(client, copy) == [payload for payload, _, _ in made.sent]
