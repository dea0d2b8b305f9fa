"""Clients that are killed during each request do not affect others.

Real processes, each ended by SIGKILL right after it has sent its request, or in the course of it.
The request is completed nevertheless.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.daemon import killable_client
from support.daemon.archives import KINDS
from support.daemon.control_rig import await_true
from support.daemon.killable_client import IPC, SEGMENT, Task
from support.jvm.java_streams import segment_bases
from support.model.messages import message

import aerotape
from aerotape.codecs.generated import archive as codecs

pytestmark = pytest.mark.crash

PROPERTIES = {
    # Long enough for the driver not to time out an archive on a slow machine.
    "aeron.client.liveness.timeout": "5s",
    "aeron.publication.linger.timeout": "500ms",
    "aeron.archive.max.concurrent.recordings": "200",
    "aeron.archive.message.timeout": "2s",
}
AUTHENTICATORS = {"aerotape": "support.daemon.authenticator:Guard", "java": "harness.Guard"}
CONTROL_SESSIONS, RECORDING_SESSIONS, REPLAY_SESSIONS = 102, 111, 112
PAYLOAD = b"x" * (1024 - 32)
# In the middle of the fourth segment: at its end a fifth one may or may not exist.
END = 4 * SEGMENT - 1024
_stream_ids = itertools.count(6001)


@pytest.fixture(scope="module", params=KINDS)
def archive(request: pytest.FixtureRequest, run_archive: Callable[..., Any]) -> Iterator[Any]:
    """Each archive in turn, with the guard that accepts `open:NAME` and challenges `ask:NAME`."""
    guard = {"aeron.archive.authenticator.supplier": AUTHENTICATORS[request.param]}
    with run_archive(request.param, {**PROPERTIES, **guard}) as running:
        yield running


class Bystander(threading.Thread):
    """A client that publishes and sends requests while others are killed."""

    def __init__(self, client: aerotape.ArchiveClient) -> None:
        super().__init__(daemon=True)
        self.client = client
        self.stream_id = next(_stream_ids)
        self.client.start_recording(IPC, self.stream_id)
        self.publication = self.client.aeron.add_exclusive_publication(IPC, self.stream_id)
        self.recording_id = recording_of(self.client, self.stream_id, self.publication.session_id)
        self.sent: list[bytes] = []
        self.failure: Exception | None = None
        self.is_over = threading.Event()

    def run(self) -> None:
        try:
            while not self.is_over.is_set():
                payload = message(1, len(self.sent), 0, 3000)
                self.publication.send(payload)
                self.sent.append(payload)
                self.client.recording_position(self.recording_id)
                time.sleep(0.002)
        except Exception as error:
            self.failure = error

    def finish(self) -> None:
        """Check that all messages were recorded without an error."""
        self.is_over.set()
        self.join()
        assert self.failure is None
        end = self.publication.position
        await_true(lambda: self.client.recording_position(self.recording_id) == end)
        with self.client.replay(self.recording_id, follow=False) as replayed:
            assert [each.payload for each in replayed] == self.sent
        self.client.stop_recording(IPC, self.stream_id)
        self.publication.close()


def recording_of(client: aerotape.ArchiveClient, stream_id: int, session_id: int) -> int:
    """Wait for the recording of a publication; return it."""
    found = -1

    def is_listed() -> bool:
        nonlocal found
        found = client.find_last_matching_recording(0, "", stream_id, session_id)
        return found != -1

    await_true(is_listed)
    return found


class Victims:
    """The recordings that the killed clients use, one for each."""

    def __init__(self, client: aerotape.ArchiveClient) -> None:
        self.client = client
        self.tasks: dict[str, Task] = {}
        self.open: list[Any] = []

    def add(self, name: str, *, live: bool = False, **changes: int) -> Task:
        """Some segments from `start` on; a live recording continues."""
        client = self.client
        stream_id = changes.pop("stream_id", None) or next(_stream_ids)
        start = changes.pop("start", 0)
        length = changes.pop("length", END)
        subscription_id = client.start_recording(IPC, stream_id)
        publication = client.aeron.add_exclusive_publication(
            f"{IPC}|init-term-id=7|term-id={7 + start // SEGMENT}|term-offset=0", stream_id
        )
        recording_id = recording_of(client, stream_id, publication.session_id)
        for _ in range(length // 1024):
            publication.send(PAYLOAD)
        await_true(lambda: client.recording_position(recording_id) == start + length)
        if live:
            self.open.append(publication)
        else:
            client.stop_recording_subscription(subscription_id)
            await_true(lambda: client.stop_position(recording_id) == start + length)
            publication.close()
        values = {"other_id": subscription_id, **changes}
        self.tasks[name] = Task(recording_id=recording_id, stream_id=stream_id, **values)
        return self.tasks[name]

    def start_replay(self, name: str) -> None:
        """A replay that lasts until it is stopped."""
        task = self.add(name, live=True)
        self.open.append(self.client.aeron.add_subscription(IPC, 1 + task.stream_id * 10))
        replay_id = self.client.start_replay(task.recording_id, IPC, 1 + task.stream_id * 10)
        self.tasks[name] = Task(task.recording_id, replay_id, task.stream_id)


def make_victims(client: aerotape.ArchiveClient) -> Victims:
    """A task for each client that will be killed, with its recordings."""
    victims = Victims(client)
    for name in ("StopReplayRequest", "StopAllReplaysRequest"):
        victims.start_replay(name)
    for name in (
        "StopRecordingRequest",
        "StopRecordingSubscriptionRequest",
        "StopRecordingByIdentityRequest",
        "replaying",
        "replicating",
    ):
        victims.add(name, live=True)
    for name in ("DeleteDetachedSegmentsRequest", "AttachSegmentsRequest"):
        client.detach_segments(victims.add(name).recording_id, SEGMENT)
    name = "MigrateSegmentsRequest"
    later = victims.add(name, start=2 * SEGMENT, length=SEGMENT)
    victims.add(name, length=2 * SEGMENT, stream_id=later.stream_id, other_id=later.recording_id)
    for name in killable_client.NAMES:
        if name not in victims.tasks:
            victims.add(name)
    # Their descriptors exceed the window of a response stream.
    for _ in range(50):
        client.start_recording(f"{IPC}|alias={'x' * 1200}", next(_stream_ids))
    return victims


def assert_done(archive: Any, client: aerotape.ArchiveClient, tasks: dict[str, Task]) -> None:
    """The requests of the killed clients have been completed."""

    def is_recorded(task: Task) -> bool:
        listed = client.list_recording_subscriptions("", task.stream_id)
        return [each.stream_id for each in listed] == [task.stream_id]

    def id_of(name: str) -> int:
        return tasks[name].recording_id

    def bases(name: str) -> list[int]:
        return segment_bases(archive.archive_dir, id_of(name))

    retained = [SEGMENT, 2 * SEGMENT, 3 * SEGMENT]
    for name in ("StopRecording", "StopRecordingSubscription", "StopRecordingByIdentity"):
        await_true(lambda name=name: client.stop_position(id_of(f"{name}Request")) == END)  # type: ignore[misc]
    for name in ("StartRecording", "ExtendRecording"):
        assert is_recorded(tasks[f"{name}Request"]), name
        assert is_recorded(tasks[f"{name}Request2"]), name
    assert client.stop_position(id_of("TruncateRecordingRequest")) == SEGMENT
    assert client.list_recording(id_of("PurgeRecordingRequest")) is None
    await_true(lambda: bases("PurgeRecordingRequest") == [])
    assert client.start_position(id_of("DetachSegmentsRequest")) == SEGMENT
    assert bases("DetachSegmentsRequest") == [0, *retained]
    assert client.start_position(id_of("PurgeSegmentsRequest")) == SEGMENT
    await_true(lambda: bases("PurgeSegmentsRequest") == retained)
    await_true(lambda: bases("DeleteDetachedSegmentsRequest") == retained)
    assert client.start_position(id_of("AttachSegmentsRequest")) == 0
    assert client.start_position(tasks["MigrateSegmentsRequest"].other_id) == 0
    updated = client.list_recording(id_of("UpdateChannelRequest"))
    assert updated is not None
    assert updated.original_channel == "aeron:ipc?alias=new"
    # It ended with its publication, at a whole frame.
    made = recording_of_another(client, tasks["recording"])
    await_true(lambda: client.stop_position(made) == 300 * 1024)


def recording_of_another(client: aerotape.ArchiveClient, task: Task) -> int:
    """The last recording of a task's stream."""
    return max(e.recording_id for e in client.list_recordings_for_uri("", task.stream_id))


def test_killed_clients(archive: Any) -> None:
    """A client killed during any request does not affect the archive, its counters or other
    clients."""
    options = {
        "aeron_dir": archive.aeron_dir,
        "control_request_channel": archive.control_channel,
        "credentials": killable_client.CREDENTIALS,
    }
    with aerotape.connect(**options) as client, aerotape.connect(**options) as other:
        bystander = Bystander(other)
        victims = make_victims(client)
        counters = client.aeron.native.counters()

        def value(type_id: int) -> int:
            [row] = counters.rows(type_id)
            return int(row[7])

        assert (value(CONTROL_SESSIONS), value(REPLAY_SESSIONS)) == (2, 2)
        bystander.start()
        reported = killable_client.run(archive.aeron_dir, archive.control_channel, victims.tasks)
        assert_done(archive, client, victims.tasks)
        # A replication does not belong to a session; any client can end it.
        client.stop_replication(reported["replicating"])
        for each in victims.open:
            each.close()
        await_true(lambda: value(CONTROL_SESSIONS) == 2)
        await_true(lambda: value(REPLAY_SESSIONS) == 0)
        await_true(lambda: value(RECORDING_SESSIONS) == 1)
        bystander.finish()
        await_true(lambda: value(RECORDING_SESSIONS) == 0)


def test_each_request_has_its_victim() -> None:
    """Every request of the schema has a client that is killed during it."""
    named = {e.__name__ for e in codecs.MESSAGES.values() if "Request" in e.__name__}
    assert named | {"ChallengeResponse"} <= set(killable_client.NAMES)
