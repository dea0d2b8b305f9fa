"""Recordings that tests create through a client."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import aerotape
from support.model.messages import message

_stream_ids = itertools.count(2001)


def new_stream_id() -> int:
    """Return a stream id that no other test of this process uses."""
    return next(_stream_ids)


def wait_until(is_so: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    """Wait for a condition; fail with its name when it is not met in time."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, f"{what} did not happen within {timeout_s} s"
        time.sleep(0.005)


def await_listed(client: aerotape.ArchiveClient, stream_id: int) -> int:
    """Wait until a stream has a recording; return the id of the first."""
    found: list[int] = []

    def is_listed() -> bool:
        found[:] = [each.recording_id for each in client.list_recordings_for_uri("", stream_id)]
        return bool(found)

    wait_until(is_listed, "the recording's start")
    return found[0]


@dataclass
class Made:
    """A recording of a test with its publication.

    Attributes:
        sent: payload, end position and reserved value of each message.
    """

    recording_id: int
    subscription_id: int
    channel: str
    stream_id: int
    session_id: int
    publication: aerotape.Publication
    sent: list[tuple[bytes, int, int]]

    @property
    def end(self) -> int:
        return self.sent[-1][1] if self.sent else 0

    def send(self, payloads: Iterable[bytes]) -> None:
        for payload in payloads:
            reserved = len(self.sent) * 7 - 3
            position = self.publication.send(payload, reserved_value=reserved)
            self.sent.append((payload, position, reserved))


def start_recording(
    client: aerotape.ArchiveClient, channel: str = "aeron:ipc", count: int = 0
) -> Made:
    """Publish and record a new stream, and wait until `count` messages are recorded."""
    stream_id = new_stream_id()
    subscription_id = client.start_recording(channel, stream_id)
    publication = client.aeron.add_publication(channel, stream_id)
    publication.wait_connected()
    recording_id = await_listed(client, stream_id)
    made = Made(
        recording_id, subscription_id, channel, stream_id, publication.session_id, publication, []
    )
    made.send(message(stream_id, index, 0, 6000) for index in range(count))
    wait_until(
        lambda: client.recording_position(made.recording_id) == made.end, "the recording of it all"
    )
    return made


def stop(client: aerotape.ArchiveClient, made: Made) -> Made:
    """Stop the recording, close the publication and wait for the stop position."""
    client.stop_recording_subscription(made.subscription_id)
    made.publication.close()
    wait_until(lambda: client.stop_position(made.recording_id) != -1, "the stop position")
    return made


def recorded(client: aerotape.ArchiveClient, count: int, channel: str = "aeron:ipc") -> Made:
    """Return a stopped recording of `count` messages of 0 to 6000 bytes."""
    return stop(client, start_recording(client, channel, count))
