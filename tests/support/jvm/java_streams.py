"""Streams that a Java client has recorded, their descriptors and signals."""

from __future__ import annotations

import itertools
import re
import time
from pathlib import Path
from typing import Any

import pytest

from support.daemon.control_rig import await_true
from support.jvm.java import JavaArchiveException, JavaClient

IPC = "aeron:ipc?term-length=64k"
SEGMENT_LENGTH = 65536

_stream_ids = itertools.count(5001)


def new_stream_id() -> int:
    """Return a stream id that no other test of this process uses."""
    return next(_stream_ids)


class Recorded:
    """A stream of messages that has been recorded and is still being recorded."""

    def __init__(self, client: JavaClient, channel: str, stream_id: int, count: int = 300) -> None:
        self.publication = client.add_exclusive_publication(channel, stream_id)
        self.session_id: int = self.publication["sessionId"]
        self.counter = client.recording_counter(self.session_id)
        self.recording_id: int = self.counter["recordingId"]
        self.offered = client.offer(self.publication, seed=stream_id, count=count, max_length=4000)
        self.position: int = self.offered["position"]
        reached = client.await_counter(self.counter["counterId"], self.position)
        assert reached == self.position

    def is_stopped(self, client: JavaClient) -> bool:
        return bool(client.call("getStopPosition", self.recording_id) == self.position)


def record(
    client: JavaClient, *, channel: str = IPC, count: int = 300, stream_id: int | None = None
) -> Recorded:
    """Record a stream, stop the recording when it is complete, and close the publication."""
    stream_id = stream_id or new_stream_id()
    subscription_id = client.call("startRecording", channel, stream_id, "LOCAL")
    stream = Recorded(client, channel, stream_id, count=count)
    client.call("stopRecording", subscription_id)
    await_true(lambda: stream.is_stopped(client))
    client.close_resource(stream.publication)
    return stream


def descriptor(client: JavaClient, recording_id: int) -> dict[str, Any]:
    """Return the descriptor of a recording."""
    [row] = client.call("listRecording", recording_id)
    return dict(row)


def channel_at(row: dict[str, Any], position: int, **changes: int) -> str:
    """Return the channel of a publication that continues a recording at `position`.

    Args:
        row: the recording's descriptor.
        changes: values that differ from the recording's (`mtuLength=...`).
    """
    figures = {**row, **changes}
    term_length, initial_term_id = figures["termBufferLength"], figures["initialTermId"]
    term_id = initial_term_id + position // term_length
    term_id = (term_id + (1 << 31)) % (1 << 32) - (1 << 31)
    return (
        f"aeron:ipc?term-length={term_length}|mtu={figures['mtuLength']}"
        f"|init-term-id={initial_term_id}|term-id={term_id}|term-offset={position % term_length}"
    )


def segment_bases(archive_dir: Path, recording_id: int) -> list[int]:
    """Return the base positions of a recording's segment files, each of full length."""
    found = []
    for path in Path(archive_dir).iterdir():
        match = re.fullmatch(rf"{recording_id}-(\d+)\.rec", path.name)
        if match:
            try:
                length = path.stat().st_size
            except FileNotFoundError:
                continue  # deleted since it was listed
            assert length == SEGMENT_LENGTH
            found.append(int(match[1]))
    return sorted(found)


class Signals:
    """The recording signals that a client receives."""

    def __init__(self, client: JavaClient) -> None:
        self.client = client
        self.taken: list[dict[str, Any]] = []

    def of(self, recording_id: int) -> list[tuple[str, int]]:
        """Return signal and position of the signals of one recording so far."""
        self.taken += self.client.call("takeSignals")
        return [
            (each["signal"], each["position"])
            for each in self.taken
            if each["recordingId"] == recording_id
        ]

    def await_of(self, recording_id: int, count: int) -> list[tuple[str, int]]:
        """Wait for this number of signals, and briefly for an unexpected one; return them."""
        await_true(lambda: len(self.of(recording_id)) >= count)
        time.sleep(0.05)
        return self.of(recording_id)


def error_code(client: JavaClient, method: str, *args: Any) -> int | None:
    """Return the archive's error code of a call that must fail."""
    with pytest.raises(JavaArchiveException) as caught:
        client.call(method, *args)
    return caught.value.error_code
