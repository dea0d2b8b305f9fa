"""Streams with known message times, which the results of a time index are compared with."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import aerotape
from aerotape.replay.offline.directory import Recording
from support.daemon.recording import await_listed, wait_until

CHANNEL = "aeron:ipc?term-length=64k"
# Many points, so that an error is likely to show.
DENSE = {"aerotape.time.index.interval": "1ms", "aerotape.time.index.length": "2k"}


@dataclass
class Sent:
    """A message.

    Attributes:
        position: the position at which it begins, bytes.
        begun_ns: a time before it was published.
        recorded_ns: a time after it was recorded; None if the test did not wait for it.
    """

    position: int
    begun_ns: int
    recorded_ns: int | None = None


@dataclass
class TimedStream:
    """A recording created through a client, and the times of its messages."""

    archive_dir: Path
    recording_id: int = -1
    stream_id: int = 4_711
    sent: list[Sent] = field(default_factory=list)

    def look(self) -> Recording:
        """Open the recording again."""
        return aerotape.open_directory(self.archive_dir).recording(self.recording_id)

    def points(self) -> int:
        """Return the current number of points in its time index."""
        return len(self.look().time_index.points)

    def record(
        self,
        client: aerotape.ArchiveClient,
        until: Callable[[], bool],
        *,
        at_least: int = 40,
        session_id: int | None = None,
        stop: bool = True,
    ) -> aerotape.ExclusivePublication:
        """Record, or extend, until a condition is true, in bursts that are awaited."""
        channel = CHANNEL
        if self.recording_id < 0:
            client.start_recording(channel, self.stream_id)
        else:
            descriptor = client.list_recording(self.recording_id)
            assert descriptor is not None
            channel = aerotape.extension_channel(descriptor, channel)
            if session_id is not None:
                channel += f"|session-id={session_id}"
            client.extend_recording(self.recording_id, channel, self.stream_id)
        publication = client.aeron.add_exclusive_publication(channel, self.stream_id)
        publication.wait_connected()
        if self.recording_id < 0:
            self.recording_id = await_listed(client, self.stream_id)
        count = 0
        while count < at_least or not until():
            self.burst(client, publication)
            count += 10
        if stop:
            client.stop_recording(channel, self.stream_id)
            publication.close()
            wait_until(lambda: client.stop_position(self.recording_id) != -1, "the stop")
        return publication

    def burst(
        self, client: aerotape.ArchiveClient, publication: aerotape.ExclusivePublication
    ) -> None:
        """Publish ten messages and wait until they are recorded."""
        fresh = []
        for index in range(10):
            begun_ns = time.time_ns()
            end = publication.send(bytes([index + 1]) * 900)
            fresh.append(Sent(end - 960, begun_ns))
        wait_until(
            lambda: client.recording_position(self.recording_id) >= publication.position, "it all"
        )
        recorded_ns = time.time_ns()
        for each in fresh:
            each.recorded_ns = recorded_ns
        self.sent += fresh

    def cut(self, position: int) -> None:
        """Remove the messages after a position to which the recording was truncated."""
        self.sent = [each for each in self.sent if each.position < position]

    def assert_bounds_hold(self) -> None:
        """Check that the bounds of the time index contain the time of each message."""
        index = self.look().time_index
        assert self.sent
        for each in self.sent:
            if not index.start_position <= each.position < index.recorded_position:
                continue
            bounds = index.time_at(each.position)
            assert each.recorded_ns is not None
            assert bounds.not_before_ns is not None
            assert bounds.not_before_ns <= each.recorded_ns, (each, bounds)
            assert bounds.not_after_ns is None or bounds.not_after_ns >= each.begun_ns

    def positions_since(self, time_ns: int) -> list[int]:
        """Positions of the messages that an offline reader finds from a time on."""
        return [message.position for message in self.look().messages(from_time=time_ns)]
