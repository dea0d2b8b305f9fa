"""The recording events stream as Aeron's own adapter reads it, from both archives."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.builders.streams import TERM_LENGTH, record
from support.daemon.archives import KINDS
from support.daemon.control_rig import RawClient, await_true
from support.jvm.java import JavaClient, free_port

from aerotape import _native
from aerotape.codecs.generated import archive as codecs

EVENTS = "aeron:ipc?term-length=64k"
STREAM_ID = 37


def properties(channel: str) -> dict[str, str]:
    return {
        "aeron.archive.recording.events.enabled": "true",
        "aeron.archive.recording.events.channel": channel,
        "aeron.archive.recording.events.stream.id": str(STREAM_ID),
    }


class Listener:
    """A subscriber to recording events that stores them in order."""

    def __init__(self, client: JavaClient, channel: str) -> None:
        self.client = client
        self.handle = client.call("addRecordingEvents", channel, STREAM_ID, 10_000)
        self.events: list[list[Any]] = []

    def poll(self) -> None:
        self.events += self.client.call("takeRecordingEvents", self.handle)

    def until_stopped(self, recording_id: int) -> list[list[Any]]:
        """Wait for a recording's end; return its events."""

        def is_stopped() -> bool:
            self.poll()
            return any(event[:2] == ["stop", recording_id] for event in self.events)

        await_true(is_stopped)
        return [event for event in self.events if event[1] == recording_id]

    def close(self) -> None:
        self.client.call("closeResource", self.handle)


@pytest.fixture(scope="module", params=KINDS)
def client(request: pytest.FixtureRequest, run_archive: Any) -> Iterator[JavaClient]:
    """A Java client of an archive that publishes recording events over IPC."""
    with serving(run_archive, request.param, EVENTS) as connected:
        yield connected


@contextmanager
def serving(run_archive: Any, kind: str, channel: str) -> Iterator[JavaClient]:
    with (
        run_archive(kind, properties(channel)) as archive,
        JavaClient(archive.aeron_dir) as connected,
    ):
        connected.connect(archive.control_channel)
        yield connected


@pytest.fixture
def listener(client: JavaClient) -> Iterator[Listener]:
    made = Listener(client, EVENTS)
    yield made
    made.close()


@pytest.mark.jvm
def test_a_recording_from_start_to_stop(client: JavaClient, listener: Listener) -> None:
    """Start, increasing progress and stop are published in this order, with all fields."""
    stream = record(client, 5001, 3 * TERM_LENGTH + 2048, start_position=TERM_LENGTH)
    events = listener.until_stopped(stream.recording_id)
    session_id = stream.publication["sessionId"]
    assert events[0] == [
        "start",
        stream.recording_id,
        TERM_LENGTH,
        session_id,
        5001,
        "aeron:ipc",
        "aeron:ipc",
    ]
    assert events[-1] == ["stop", stream.recording_id, TERM_LENGTH, stream.position]
    progress = events[1:-1]
    assert progress
    assert {tuple(event[:3]) for event in progress} == {
        ("progress", stream.recording_id, TERM_LENGTH)
    }
    reached = [event[3] for event in progress]
    assert reached == sorted(set(reached))
    assert all(TERM_LENGTH < position <= stream.position for position in reached)
    assert reached[-1] == stream.position


@pytest.mark.jvm
def test_an_extended_recording_starts_at_its_join_position(
    client: JavaClient, listener: Listener
) -> None:
    """Events of the extension have the join position as their start."""
    stream = record(client, 5003, 4096)
    listener.until_stopped(stream.recording_id)
    listener.events.clear()
    client.call("extendRecording", stream.recording_id, "aeron:ipc?alias=more", 5003, "LOCAL")
    channel = "aeron:ipc?term-length=64k|init-term-id=7|term-id=7|term-offset=4096|mtu=1408"
    stream.publication = client.add_exclusive_publication(channel, 5003)
    counter = client.recording_counter(stream.publication["sessionId"])
    stream.counter_id = counter["counterId"]
    stream.offer(client, 2048)
    stream.stop(client)
    client.call("stopRecording", "aeron:ipc?alias=more", 5003)
    events = listener.until_stopped(stream.recording_id)
    session_id = stream.publication["sessionId"]
    start = [stream.recording_id, 4096, session_id, 5003, "aeron:ipc?alias=more", "aeron:ipc"]
    assert events[0] == ["start", *start]
    assert events[-1] == ["stop", stream.recording_id, 4096, 6144]


@pytest.mark.jvm
def test_events_that_are_not_read_are_dropped(client: JavaClient, listener: Listener) -> None:
    """A subscriber that does not poll fills the stream, and the recording continues; once it polls
    again it receives later events.
    """
    stream = record(client, 5005, 0, live=True)
    # The window is half a term of events at most.
    for _ in range(1200):
        stream.offer(client, 1024)
    assert client.call("getRecordingPosition", stream.recording_id) == stream.position
    listener.poll()
    assert len(listener.events) < 1200
    listener.events.clear()

    def is_published() -> bool:
        listener.poll()
        return any(event[3] == stream.position for event in listener.events)

    stream.offer(client, 1024)
    await_true(is_published)
    stream.stop(client)
    client.call("stopRecording", "aeron:ipc", 5005)
    events = listener.until_stopped(stream.recording_id)
    assert events[-1] == ["stop", stream.recording_id, 0, stream.position]


@pytest.mark.jvm
@pytest.mark.parametrize("kind", KINDS)
def test_events_over_udp(kind: str, run_archive: Any) -> None:
    """Events are published over a channel for any number of subscribers."""
    control = free_port()
    channel = f"aeron:udp?control-mode=dynamic|control=localhost:{control}"
    with serving(run_archive, kind, channel) as client:
        listen = f"aeron:udp?endpoint=localhost:0|control=localhost:{control}"
        listeners = [Listener(client, listen) for _ in range(2)]

        def are_connected() -> bool:
            # The archive sees the subscriber once the driver has received its status message.
            stream = record(client, 5006, 1024)
            for listener in listeners:
                listener.poll()
            return all(
                any(event[1] == stream.recording_id for event in listener.events)
                for listener in listeners
            )

        await_true(are_connected)
        stream = record(client, 5007, 4096)
        for listener in listeners:
            events = listener.until_stopped(stream.recording_id)
            assert [events[0][0], events[-1]] == ["start", ["stop", stream.recording_id, 0, 4096]]
            listener.close()


def test_the_failure_of_a_recording_is_published(start_daemon: Any) -> None:
    """The stop event has the end of the last complete frame, and no event follows."""
    daemon = start_daemon(properties=properties(EVENTS))
    aeron = _native.AeronClient(str(daemon.aeron_dir))
    events = aeron.add_subscription(EVENTS, STREAM_ID)
    raw = RawClient(aeron, "aeron:ipc?term-length=64k", response_stream_id=5100)
    raw.connect()
    raw.call(codecs.StartRecordingRequest, stream_id=5101, channel="aeron:ipc")
    await_true(lambda: events.is_connected)
    publication = aeron.add_exclusive_publication("aeron:ipc?term-length=64k", 5101)
    seen: list[Any] = []

    def has_started() -> bool:
        seen.extend(codecs.decode(payload) for payload, *_ in events.poll(100))
        return bool(seen)

    await_true(has_started)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (32_768, unlimited))

    def has_stopped() -> bool:
        publication.offer(bytes(992))
        seen.extend(codecs.decode(payload) for payload, *_ in events.poll(100))
        return any(isinstance(event, codecs.RecordingStopped) for event in seen)

    await_true(has_stopped)
    stop = raw.call(codecs.StopPositionRequest, recording_id=0).relevant_id
    assert 0 < stop <= 32_768
    assert isinstance(seen[0], codecs.RecordingStarted)
    assert seen[-1] == codecs.RecordingStopped(recording_id=0, start_position=0, stop_position=stop)
    assert [event.position for event in seen[1:-1]] == sorted(e.position for e in seen[1:-1])
    assert events.poll(100) == []
    aeron.close()
