"""Clients that are killed in the middle of a request, each in its own process.

Run as ``python -m support.daemon.killable_client AERON_DIR CONTROL_CHANNEL`` with `Task`s as JSON
on stdin. It forks a process for each, which connects, sends the task's request and kills itself in
the very next moment, or during the request. It prints what each client reported before: JSON
objects by name.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from aerotape import _native
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import BooleanType, SourceLocation
from support.daemon.control_rig import RawClient
from support.own_process import run_python

IPC = "aeron:ipc?term-length=64k"
SEGMENT = 65_536
LOCAL = SourceLocation.LOCAL
CREDENTIALS = b"open:alice"
_AT_ONCE = 6


@dataclass(frozen=True)
class Task:
    """The request of a client and its ids.

    Attributes:
        recording_id: a recording that only this client uses.
        other_id: a subscription, replay, or further recording, as the request has it.
        stream_id: the stream of the recording, or one that no other client uses.
    """

    recording_id: int = -1
    other_id: int = -1
    stream_id: int = 0


def _replay(task: Task, control_channel: str) -> dict[str, Any]:
    return {
        "recording_id": task.recording_id,
        "position": 0,
        "length": -1,
        "replay_stream_id": task.stream_id,
        "file_io_max_length": -1,
        "replay_token": -1,
        "replay_channel": IPC,
    }


def _replication(task: Task, control_channel: str) -> dict[str, Any]:
    """Return the fields of a replication within one archive."""
    return {
        "src_recording_id": task.recording_id,
        "dst_recording_id": -1,
        "src_control_stream_id": 10,
        "src_control_channel": control_channel,
    }


def _replication_2(task: Task, control_channel: str) -> dict[str, Any]:
    none = dict.fromkeys(
        (
            "stop_position",
            "channel_tag_id",
            "subscription_tag_id",
            "file_io_max_length",
            "replication_session_id",
        ),
        -1,
    )
    return {**_replication(task, control_channel), **none, "encoded_credentials": CREDENTIALS}


def _recording(task: Task, _: str) -> dict[str, Any]:
    return {"recording_id": task.recording_id}


def _stream(task: Task, _: str) -> dict[str, Any]:
    return {"stream_id": task.stream_id, "source_location": LOCAL, "channel": IPC}


# The fields of each request except session and correlation id.
REQUESTS: dict[type[Any], Callable[[Task, str], dict[str, Any]]] = {
    codecs.CloseSessionRequest: lambda *_: {},
    codecs.StartRecordingRequest: _stream,
    codecs.StartRecordingRequest2: lambda *a: {**_stream(*a), "auto_stop": BooleanType.TRUE},
    codecs.StopRecordingRequest: lambda t, _: {"stream_id": t.stream_id, "channel": IPC},
    codecs.StopRecordingSubscriptionRequest: lambda t, _: {"subscription_id": t.other_id},
    codecs.StopRecordingByIdentityRequest: _recording,
    codecs.ExtendRecordingRequest: lambda *a: {**_stream(*a), **_recording(*a)},
    codecs.ExtendRecordingRequest2: lambda *a: {
        **_stream(*a),
        **_recording(*a),
        "auto_stop": BooleanType.TRUE,
    },
    codecs.ReplayRequest: _replay,
    codecs.BoundedReplayRequest: lambda *a: {**_replay(*a), "limit_counter_id": a[0].other_id},
    codecs.StopReplayRequest: lambda t, _: {"replay_session_id": t.other_id},
    codecs.StopAllReplaysRequest: _recording,
    codecs.ReplayTokenRequest: _recording,
    codecs.ListRecordingsRequest: lambda *_: {"from_recording_id": 0, "record_count": 1000},
    codecs.ListRecordingsForUriRequest: lambda *_: {
        "from_recording_id": 0,
        "record_count": 1000,
        "stream_id": 1,
        "channel": "ipc",
    },
    codecs.ListRecordingRequest: _recording,
    codecs.ListRecordingSubscriptionsRequest: lambda *_: {
        "pseudo_index": 0,
        "subscription_count": 1000,
    },
    codecs.FindLastMatchingRecordingRequest: lambda t, _: {
        "min_recording_id": 0,
        "session_id": 1,
        "stream_id": t.stream_id,
        "channel": "ipc",
    },
    codecs.StartPositionRequest: _recording,
    codecs.StopPositionRequest: _recording,
    codecs.RecordingPositionRequest: _recording,
    codecs.MaxRecordedPositionRequest: _recording,
    codecs.TruncateRecordingRequest: lambda *a: {**_recording(*a), "position": SEGMENT},
    codecs.PurgeRecordingRequest: _recording,
    codecs.DetachSegmentsRequest: lambda *a: {**_recording(*a), "new_start_position": SEGMENT},
    codecs.DeleteDetachedSegmentsRequest: _recording,
    codecs.PurgeSegmentsRequest: lambda *a: {**_recording(*a), "new_start_position": SEGMENT},
    codecs.AttachSegmentsRequest: _recording,
    codecs.MigrateSegmentsRequest: lambda t, _: {
        "src_recording_id": t.recording_id,
        "dst_recording_id": t.other_id,
    },
    codecs.ReplicateRequest: _replication,
    codecs.TaggedReplicateRequest: lambda *a: {
        **_replication(*a),
        "channel_tag_id": 77,
        "subscription_tag_id": 78,
    },
    codecs.ReplicateRequest2: _replication_2,
    codecs.StopReplicationRequest: lambda t, _: {"replication_id": t.other_id},
    codecs.UpdateChannelRequest: lambda *a: {**_recording(*a), "channel": "aeron:ipc?alias=new"},
    codecs.KeepAliveRequest: lambda *_: {},
    codecs.ArchiveIdRequest: lambda *_: {},
}


@dataclass(frozen=True)
class _Client:
    """A client that will be killed."""

    aeron: _native.AeronClient
    raw: RawClient
    task: Task
    control_channel: str
    report: Callable[[int], None]

    def request(self, kind: type[Any]) -> Any:
        """Send a request with the fields of the table."""
        self.raw.connect(encoded_credentials=CREDENTIALS)
        fields = REQUESTS[kind](self.task, self.control_channel)
        if kind is codecs.CloseSessionRequest:
            return self.raw.send(kind(control_session_id=self.raw.control_session_id))
        return self.raw.request(kind, **fields)

    def connect(self, *, wait: bool) -> Any:
        """Request a session and, if requested, wait for the challenge."""
        correlation_id = self.aeron.next_correlation_id()
        self.raw.send(
            codecs.AuthConnectRequest(
                correlation_id=correlation_id,
                response_stream_id=self.raw.response_stream_id,
                version=1 << 16,
                response_channel=self.raw.response_channel,
                encoded_credentials=b"ask:bob",
            )
        )
        return self.raw.await_message(codecs.Challenge) if wait else None

    def answer(self) -> None:
        """Respond to the challenge."""
        challenge = self.connect(wait=True)
        self.raw.send(
            codecs.ChallengeResponse(
                control_session_id=challenge.control_session_id,
                correlation_id=self.aeron.next_correlation_id(),
                encoded_credentials=b"it is bob",
            )
        )

    def list(self) -> None:
        """Receive the first descriptors of a listing that does not fit into the response stream."""
        self.request(codecs.ListRecordingSubscriptionsRequest)
        self.raw.await_message(codecs.RecordingSubscriptionDescriptor)

    def replay(self) -> None:
        """Receive the first messages of a replay that continues."""
        subscription = self.aeron.add_subscription(IPC, self.task.stream_id)
        self.request(codecs.ReplayRequest)
        taken = 0
        while taken < 20:
            taken += len(subscription.poll(20, 100_000_000))

    def record(self) -> None:
        """Publish to a live recording."""
        self.request(codecs.StartRecordingRequest2)
        publication = self.aeron.add_exclusive_publication(IPC, self.task.stream_id)
        self.raw.await_message(codecs.RecordingSignalEvent)
        for _ in range(300):
            publication.offer_within(b"x" * 992, 5_000_000_000)

    def replicate(self) -> None:
        """Replicate until the replica grows; report the replication's id."""
        replication = self.raw.response(self.request(codecs.ReplicateRequest2))
        self.raw.await_message(
            codecs.RecordingSignalEvent, 20, signal=codecs.RecordingSignal.EXTEND
        )
        self.report(replication.relevant_id)


# Other moments of a kill than the sending of requests of a session.
COURSES: dict[str, Callable[[_Client], object]] = {
    "AuthConnectRequest": lambda client: client.connect(wait=False),
    "challenged": lambda client: client.connect(wait=True),
    "ChallengeResponse": _Client.answer,
    "listing": _Client.list,
    "replaying": _Client.replay,
    "recording": _Client.record,
    "replicating": _Client.replicate,
}
NAMES = [*(kind.__name__ for kind in REQUESTS), *COURSES]


def _run_killed(aeron_dir: str, control_channel: str, number: int, name: str, task: Task) -> None:
    output = sys.stdout.fileno()

    def report(value: int) -> None:
        os.write(output, (json.dumps({name: value}) + "\n").encode())

    aeron = _native.AeronClient(aeron_dir)
    raw = RawClient(
        aeron, IPC if number % 2 else control_channel, response_stream_id=30_000 + number
    )
    client = _Client(aeron, raw, task, control_channel, report)
    if name in COURSES:
        COURSES[name](client)
    else:
        client.request(getattr(codecs, name))
    os.kill(os.getpid(), signal.SIGKILL)


def _fork(number: int, *args: Any) -> int:
    child = os.fork()
    if child:
        return child
    _run_child(number, *args)


def _run_child(
    number: int, aeron_dir: str, control_channel: str, name: str, task: Task
) -> NoReturn:
    try:
        _run_killed(aeron_dir, control_channel, number, name, task)
    except BaseException as error:
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(1)


def main() -> None:
    """Run a process for each task, a few at once, and wait until they have ended."""
    aeron_dir, control_channel = sys.argv[1:]
    tasks = {name: Task(**each) for name, each in json.load(sys.stdin).items()}
    running: dict[int, str] = {}
    survived = []

    def reap() -> None:
        pid, status = os.wait()
        name = running.pop(pid)
        if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
            survived.append(name)

    for number, (name, task) in enumerate(tasks.items()):
        if len(running) == _AT_ONCE:
            reap()
        running[_fork(number, aeron_dir, control_channel, name, task)] = name
    while running:
        reap()
    if survived:
        sys.exit(f"not killed: {', '.join(survived)}")


def run(aeron_dir: Path, control_channel: str, tasks: Mapping[str, Task]) -> dict[str, int]:
    """Run each task in a client that is killed; return their reports by name."""
    done = run_python(
        *("-m", "support.daemon.killable_client", aeron_dir, control_channel),
        stdin=json.dumps({name: asdict(task) for name, task in tasks.items()}),
    )
    assert done.returncode == 0, done.stderr
    reported: dict[str, int] = {}
    for line in done.stdout.splitlines():
        reported.update(json.loads(line))
    return reported


if __name__ == "__main__":
    main()
