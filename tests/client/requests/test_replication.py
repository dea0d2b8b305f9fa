"""Replication requests; here one archive is both source and destination."""

from __future__ import annotations

import threading

from support.daemon.archives import ServedArchive, serve
from support.daemon.recording import start_recording, stop, wait_until
from support.jvm.java import free_port

import aerotape
from aerotape import RecordingSignal
from aerotape.replay.offline.directory import open_directory


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


def test_the_control_streams_are_as_the_properties_say(
    archive: ServedArchive, client: aerotape.ArchiveClient
) -> None:
    """A recording with a channel of over 4,000 characters is replicated where longer terms are set
    for control streams; the default, 64 KiB, is too short for its descriptor.
    """
    channel = "aeron:ipc?alias=".ljust(4_090, "x")
    with archive.connect(
        control_response_channel="aeron:ipc?term-length=1m", control_request_channel="aeron:ipc"
    ) as recorder:
        made = stop(recorder, start_recording(recorder, channel, 5))

    def replicate(properties: dict[str, str]) -> list[tuple[str, list[bytes]]]:
        timeout = {"aeron.archive.message.timeout": "2s"}
        with serve("aerotape", {**timeout, **properties}) as destination:
            with destination.connect() as copying:
                replication_id = copying.replicate(made.recording_id, archive.control_channel)
                copying.await_signal(RecordingSignal.REPLICATE_END, correlation_id=replication_id)
            return [
                (each.descriptor.original_channel, [message.payload for message in each.messages()])
                for each in open_directory(destination.archive_dir).recordings()
            ]

    payloads = [payload for payload, _, _ in made.sent]
    assert replicate({"aeron.archive.control.term.buffer.length": "1m"}) == [(channel, payloads)]
    assert replicate({}) == []
