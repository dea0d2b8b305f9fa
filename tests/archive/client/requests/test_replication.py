"""Replication requests; here one archive is both source and destination."""

from __future__ import annotations

import threading

from support.daemon.archives import ServedArchive
from support.daemon.recording import start_recording, stop, wait_until
from support.jvm.java import free_port

import aerotape
from aerotape import RecordingSignal


def _payloads(client: aerotape.ArchiveClient, recording_id: int) -> list[bytes]:
    return [message.payload for message in client.replay(recording_id)]


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
