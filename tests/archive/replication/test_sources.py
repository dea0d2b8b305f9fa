"""Replication from faulty sources: each causes an error, and the archive continues."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.daemon.control_rig import RawClient, await_true
from support.daemon.daemon import AerotapeArchive
from support.jvm import java

import aerotape
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode, RecordingSignal
from aerotape.protocol import PROTOCOL_VERSION, ErrorCode

NULL = -1
SESSION_ID = 77
DESCRIPTOR: dict[str, Any] = {
    "control_session_id": SESSION_ID,
    "recording_id": 3,
    "start_timestamp": 5,
    "stop_timestamp": 6,
    "start_position": 0,
    "stop_position": 4096,
    "initial_term_id": 1,
    "segment_file_length": 65536,
    "term_buffer_length": 65536,
    "mtu_length": 1408,
    "session_id": 9,
    "stream_id": 10,
    "stripped_channel": "aeron:ipc",
    "original_channel": "aeron:ipc",
    "source_identity": "aeron:ipc",
}
Answer = Callable[[Any], list[Any]]


class FakeSource(threading.Thread):
    """Sends the `answers` by request name; requests without one get no response.

    Connect requests and requests for the archive's id have valid responses by default.
    """

    def __init__(self, aeron: aerotape.Aeron, answers: dict[str, Answer]) -> None:
        super().__init__(daemon=True)
        self.channel = f"aeron:udp?endpoint=localhost:{java.free_port()}"
        self.seen: list[str] = []
        self._aeron = aeron
        self._answers: dict[str, Answer] = {
            "AuthConnectRequest": lambda r: [ok(r, SESSION_ID)],
            "ArchiveIdRequest": lambda r: [ok(r, 1)],
            **answers,
        }
        self._subscription = aeron.add_subscription(self.channel, 10)
        self._publication: aerotape.ExclusivePublication | None = None
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.is_set():
            for message in self._subscription.poll(timeout_ns=5_000_000):
                request: Any = codecs.decode(message.payload)
                self.seen.append(type(request).__name__)
                if isinstance(request, codecs.AuthConnectRequest):
                    self._publication = self._aeron.add_exclusive_publication(
                        request.response_channel, request.response_stream_id
                    )
                answer = self._answers.get(type(request).__name__)
                for reply in answer(request) if answer is not None else []:
                    self._send(reply)
        self._subscription.close()
        if self._publication is not None:
            self._publication.close()

    def _send(self, reply: Any) -> None:
        assert self._publication is not None
        if reply == "hang up":
            self._publication.close()
        else:
            self._publication.send(reply if isinstance(reply, bytes) else reply.encode())

    def end(self) -> None:
        self._ended.set()
        self.join()


def ok(request: Any, relevant_id: int) -> codecs.ControlResponse:
    """An OK response."""
    return response(request, relevant_id, ControlResponseCode.OK)


def response(
    request: Any, relevant_id: int, code: ControlResponseCode, message: str = ""
) -> codecs.ControlResponse:
    return codecs.ControlResponse(
        control_session_id=SESSION_ID,
        correlation_id=request.correlation_id,
        relevant_id=relevant_id,
        code=code,
        version=PROTOCOL_VERSION,
        error_message=message,
    )


def descriptor(request: Any, **changed: Any) -> codecs.RecordingDescriptor:
    return codecs.RecordingDescriptor(
        **{**DESCRIPTOR, "correlation_id": request.correlation_id, **changed}
    )


def describes(**changed: Any) -> dict[str, Answer]:
    """Return the responses up to a descriptor."""
    return {"ListRecordingRequest": lambda r: [descriptor(r, **changed)]}


@pytest.fixture(scope="module")
def archive(run_archive: Any) -> Iterator[AerotapeArchive]:
    """Our archive with a short timeout, which the tests of unresponsive sources wait for."""
    with run_archive("aerotape", {"aeron.archive.message.timeout": "3s"}) as running:
        yield running


@pytest.fixture(scope="module")
def aeron(archive: AerotapeArchive) -> Iterator[aerotape.Aeron]:
    with aerotape.Aeron(archive.aeron_dir) as connected:
        yield connected


@pytest.fixture(scope="module")
def raw(archive: AerotapeArchive, aeron: aerotape.Aeron) -> Iterator[RawClient]:
    """A client that has connected to our archive."""
    client = RawClient(aeron.native, "aeron:ipc?term-length=64k")
    client.connect()
    client.call(codecs.ArchiveIdRequest)
    yield client
    client.close()


def outcome(raw: RawClient, channel: str, **fields: Any) -> tuple[ErrorCode | None, str, list[str]]:
    """Replicate; return the error code, the message and the signals."""
    request = {
        "src_recording_id": 3,
        "dst_recording_id": NULL,
        "stop_position": NULL,
        "channel_tag_id": NULL,
        "subscription_tag_id": NULL,
        "src_control_stream_id": 10,
        "src_control_channel": channel,
        **fields,
    }
    replication_id = raw.call(codecs.ReplicateRequest2, **request).relevant_id
    code, text = None, ""
    signals: list[str] = []
    deadline_s = time.monotonic() + 60
    while "REPLICATE_END" not in signals:
        assert time.monotonic() < deadline_s, signals
        raw.poll(0.05)
        for message in raw.received:
            if getattr(message, "correlation_id", None) != replication_id:
                continue
            if isinstance(message, codecs.RecordingSignalEvent):
                signals.append(RecordingSignal(message.signal).name)
            elif message.code is ControlResponseCode.ERROR:
                code, text = ErrorCode(message.relevant_id), message.error_message
        raw.received.clear()
    return code, text, signals


CONNECTION = ErrorCode.REPLICATION_CONNECTION_FAILURE
GENERIC = ErrorCode.GENERIC
END = ["REPLICATE_END"]
MADE = ["REPLICATE", "REPLICATE_END"]
SOURCES: dict[str, tuple[dict[str, Answer], ErrorCode, str, list[str]]] = {
    "never responds to the connect": (
        {"AuthConnectRequest": lambda r: []},
        CONNECTION,
        "connect",
        END,
    ),
    "refuses": (
        {"AuthConnectRequest": lambda r: [response(r, 10, ControlResponseCode.ERROR, "go away")]},
        CONNECTION,
        "go away",
        END,
    ),
    "has no id": ({"ArchiveIdRequest": lambda r: []}, CONNECTION, "connect", END),
    "hangs up": ({"ListRecordingRequest": lambda r: ["hang up"]}, GENERIC, "", END),
    "never describes": ({}, GENERIC, "descriptor", END),
    "has no such recording": (
        {"ListRecordingRequest": lambda r: [response(r, 3, ControlResponseCode.RECORDING_UNKNOWN)]},
        ErrorCode.UNKNOWN_RECORDING,
        "3",
        END,
    ),
    "sends an invalid message": (
        {"ListRecordingRequest": lambda r: [b"\xff" * 40]},
        GENERIC,
        "invalid message",
        END,
    ),
    "has odd terms": (describes(term_buffer_length=3), GENERIC, "damaged", END),
    "reports an error": (
        {"ListRecordingRequest": lambda r: [response(r, 2, ControlResponseCode.ERROR, "oh no")]},
        GENERIC,
        "oh no",
        END,
    ),
    "never replays": (describes(), GENERIC, "replay", ["REPLICATE", "REPLICATE_END"]),
    "refuses to replay": (
        {
            **describes(),
            "ReplayRequest": lambda r: [response(r, 7, ControlResponseCode.ERROR, "no more")],
        },
        GENERIC,
        "no more",
        MADE,
    ),
    "says it replays": (
        {**describes(), "ReplayRequest": lambda r: [ok(r, 9)]},
        GENERIC,
        "sessionId=9",
        MADE,
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_source(raw: RawClient, aeron: aerotape.Aeron, name: str) -> None:
    """The client receives an error; the archive continues."""
    answers, code, text, signals = SOURCES[name]
    source = FakeSource(aeron, answers)
    source.start()
    try:
        seen = outcome(raw, source.channel)
    finally:
        source.end()
    assert (seen[0], seen[2]) == (code, signals), seen
    assert text in seen[1]
    assert raw.call(codecs.ArchiveIdRequest).code is ControlResponseCode.OK
    unknown = raw.call(codecs.StopReplicationRequest, replication_id=12345)
    assert unknown.relevant_id == ErrorCode.UNKNOWN_REPLICATION


@pytest.fixture
def patient(run_archive: Any) -> Iterator[tuple[RawClient, aerotape.Aeron]]:
    """A client of an archive with the default timeout for sources."""
    with run_archive("aerotape") as running, aerotape.Aeron(running.aeron_dir) as aeron:
        raw = RawClient(aeron.native, "aeron:ipc?term-length=64k")
        raw.connect()
        yield raw, aeron
        raw.close()


def test_the_destination_changes_meanwhile(patient: tuple[RawClient, aerotape.Aeron]) -> None:
    """A recording that was empty at the request and extended since then is not replaced."""
    raw, aeron = patient
    channel = "aeron:ipc?term-length=64k|mtu=1408|init-term-id=1|term-id=1|term-offset=0"
    reader = aeron.counters()

    def positions() -> list[int]:
        return [row[7] for row in reader.rows(100)]

    def stopped(recording_id: int) -> bool:
        response = raw.call(codecs.StopPositionRequest, recording_id=recording_id)
        return int(response.relevant_id) == 0

    started = raw.call(codecs.StartRecordingRequest, stream_id=11, channel="aeron:ipc")
    with aeron.add_exclusive_publication(f"{channel}|session-id=1", 11):
        await_true(lambda: positions() == [0])
        [row] = reader.rows(100)
        recording_id = int.from_bytes(row[2][:8], "little")
        raw.call(codecs.StopRecordingSubscriptionRequest, subscription_id=started.relevant_id)
    await_true(lambda: stopped(recording_id))

    asked, changed = threading.Event(), threading.Event()

    def describe_late(request: Any) -> list[Any]:
        asked.set()
        changed.wait(60)
        return [descriptor(request)]

    source = FakeSource(aeron, {"ListRecordingRequest": describe_late})
    source.start()
    replication_id = raw.call(
        codecs.ReplicateRequest,
        src_recording_id=3,
        dst_recording_id=recording_id,
        src_control_stream_id=10,
        src_control_channel=source.channel,
    ).relevant_id
    assert asked.wait(60)
    raw.call(
        codecs.ExtendRecordingRequest, recording_id=recording_id, stream_id=11, channel="aeron:ipc"
    )
    with aeron.add_exclusive_publication(f"{channel}|session-id=2", 11) as publication:
        position = publication.send(bytes(100))
        await_true(lambda: positions() == [position])
        changed.set()
        refusal = raw.response(replication_id)
        assert refusal.code is ControlResponseCode.ERROR
        assert refusal.relevant_id == ErrorCode.ACTIVE_RECORDING
        known = raw.call(codecs.RecordingPositionRequest, recording_id=recording_id)
        assert known.relevant_id == position
    source.end()
