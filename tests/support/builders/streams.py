"""Recordings of known layout, created through the Java client: whole terms of equal frames."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.daemon.control_rig import await_true
from support.jvm.java import JavaClient

TERM_LENGTH = 65536
INITIAL_TERM_ID = 7
FRAME_LENGTH = 1024
_PAYLOAD_LENGTH = FRAME_LENGTH - 32


@dataclass
class Stream:
    """A recording, and its publication while the recording is active."""

    recording_id: int
    stream_id: int
    start_position: int
    position: int
    publication: dict[str, Any]
    counter_id: int

    def offer(self, client: JavaClient, length: int) -> None:
        """Publish and record `length` more bytes, a multiple of 1024."""
        offered = client.offer(
            self.publication,
            seed=self.stream_id,
            count=length // FRAME_LENGTH,
            min_length=_PAYLOAD_LENGTH,
            max_length=_PAYLOAD_LENGTH,
        )
        self.position += length
        assert offered["position"] == self.position
        assert client.await_counter(self.counter_id, self.position) == self.position

    def stop(self, client: JavaClient) -> None:
        """Close the publication, which stops the recording."""
        client.close_resource(self.publication)
        await_true(lambda: client.call("getStopPosition", self.recording_id) == self.position)


def record(
    client: JavaClient,
    stream_id: int,
    length: int,
    *,
    start_position: int = 0,
    term_length: int = TERM_LENGTH,
    initial_term_id: int = INITIAL_TERM_ID,
    mtu: int = 1408,
    live: bool = False,
) -> Stream:
    """Record `length` bytes of an IPC stream from `start_position` on; stop unless `live`.

    The stream id must not be that of an active recording. All lengths are multiples of 1024 bytes;
    frames are 1024 bytes each.
    """
    term_id = initial_term_id + start_position // term_length
    channel = (
        f"aeron:ipc?term-length={term_length}|mtu={mtu}|init-term-id={initial_term_id}"
        f"|term-id={term_id}|term-offset={start_position % term_length}"
    )
    client.call("startRecording", "aeron:ipc", stream_id, "LOCAL")
    publication = client.add_exclusive_publication(channel, stream_id)
    counter = client.recording_counter(publication["sessionId"])
    stream = Stream(
        counter["recordingId"],
        stream_id,
        start_position,
        start_position,
        publication,
        counter["counterId"],
    )
    if length:
        stream.offer(client, length)
    if not live:
        stream.stop(client)
        client.call("stopRecording", "aeron:ipc", stream_id)
    return stream


def segment_files(archive_dir: Path | str, recording_id: int) -> list[int]:
    """Return the base positions of the existing segment files of a recording."""
    pattern = re.compile(rf"{recording_id}-(\d+)\.rec")
    names = (pattern.fullmatch(path.name) for path in Path(archive_dir).iterdir())
    return sorted(int(match[1]) for match in names if match)


def signals_until(client: JavaClient, recording_id: int, wanted: str) -> list[dict[str, Any]]:
    """Wait for a signal of a recording; return all signals received until then."""
    taken: list[dict[str, Any]] = []

    def has_come() -> bool:
        taken.extend(client.call("takeSignals"))
        return any(row["recordingId"] == recording_id and row["signal"] == wanted for row in taken)

    await_true(has_come)
    return taken
