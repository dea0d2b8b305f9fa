"""Every error code of the protocol, asked for in the same way of the Java archive and of ours."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from support.daemon.control_rig import RawClient, await_true
from support.jvm.java import free_port

from aerotape import _native
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode, SourceLocation
from aerotape.protocol import ErrorCode

IPC = "aeron:ipc?term-length=64k"
NOBODY = 1 << 40
MAX_RECORDINGS = 60
_streams = itertools.count(3100)
_GUARDS = {
    "aerotape": ("support.daemon.authenticator:Guard", "support.daemon.authenticator:Actions"),
    "java": ("harness.Guard", "harness.Guard$Actions"),
}


def properties(kind: str) -> dict[str, str]:
    """Limits low enough to be met, and the guard that lets `open:NAME` in."""
    authenticator, authorisation = _GUARDS[kind]
    return {
        "aeron.archive.authenticator.supplier": authenticator,
        "aeron.archive.authorisation.service.supplier": authorisation,
        "aeron.archive.max.concurrent.recordings": str(MAX_RECORDINGS),
        "aeron.archive.max.concurrent.replays": "1",
        # As long as a test waits for a source that is not there.
        "aeron.archive.message.timeout": "3s",
    }


class Rig:
    """An archive that is to refuse, a session that may do everything, and streams to record."""

    def __init__(self, archive: Any) -> None:
        self.aeron = _native.AeronClient(str(archive.aeron_dir))
        self.raw = self.connected(b"open:alice")

    def connected(self, credentials: bytes) -> RawClient:
        """A further session."""
        raw = RawClient(self.aeron, IPC, response_stream_id=next(_streams))
        self.answer = raw.connect(encoded_credentials=credentials)
        return raw

    def code(self, kind: Callable[..., Any], **fields: Any) -> int:
        """The error code that a request is answered with."""
        return error_code_of(self.raw.call(kind, **fields))

    def start(self, stream_id: int, channel: str = IPC) -> Any:
        """The answer to a request to record."""
        return self.raw.call(
            codecs.StartRecordingRequest,
            stream_id=stream_id,
            source_location=SourceLocation.LOCAL,
            channel=channel,
        )

    def recording(self, stream_id: int, count: int) -> tuple[int, Any]:
        """Record messages; return the id of the recording, which is active, and its stream."""
        started = self.start(stream_id)
        assert started.code is ControlResponseCode.OK, started
        publication = self.aeron.add_exclusive_publication(IPC, stream_id)
        signal = self.signal(started.correlation_id, codecs.RecordingSignal.START)
        recording_id = int(signal.recording_id)
        for _ in range(count):
            assert publication.offer_within(b"x" * 100, 5_000_000_000) > 0
        await_true(lambda: self.position(recording_id) == publication.position)
        return recording_id, publication

    def signal(self, correlation_id: int, wanted: codecs.RecordingSignal) -> Any:
        """Wait for a signal about what a request has started."""
        return self.raw.await_message(
            lambda each: (
                isinstance(each, codecs.RecordingSignalEvent)
                and each.correlation_id == correlation_id
                and each.signal is wanted
            )
        )

    def position(self, recording_id: int) -> int:
        answer = self.raw.call(codecs.RecordingPositionRequest, recording_id=recording_id)
        return int(answer.relevant_id)

    def stopped(self, stream_id: int, count: int) -> int:
        """As `recording`, and stop it."""
        recording_id, publication = self.recording(stream_id, count)
        self.raw.call(codecs.StopRecordingRequest, stream_id=stream_id, channel=IPC)
        await_true(lambda: self.position(recording_id) == -1)
        publication.close()
        return recording_id

    def error_after_ok(self, kind: Callable[..., Any], **fields: Any) -> int:
        """The error code that a request gets that was granted at first.

        Those of a replication come under its id, which is the relevant id of the first answer.
        """
        granted = self.raw.call(kind, **fields)
        assert granted.code is ControlResponseCode.OK, granted
        ids = (granted.correlation_id, granted.relevant_id)
        return error_code_of(
            self.raw.await_message(
                lambda each: (
                    isinstance(each, codecs.ControlResponse)
                    and each.code is ControlResponseCode.ERROR
                    and each.correlation_id in ids
                )
            )
        )


def error_code_of(answer: Any) -> int:
    """The code in a response, which must be an error."""
    assert answer.code is ControlResponseCode.ERROR, answer
    return int(answer.relevant_id)


# ---- how each is provoked --------------------------------------------------------------------


def generic(rig: Rig) -> int:
    return error_code_of(rig.start(next(_streams), "not a channel"))


def active_listing(rig: Rig) -> int:
    """Subscriptions whose channels are long enough to fill the response stream's window."""
    for stream_id in range(100, 150):
        assert rig.start(stream_id, f"{IPC}|alias={'x' * 1200}").code is ControlResponseCode.OK
    listed = {"pseudo_index": 0, "subscription_count": 1000}
    reader = rig.connected(b"open:bob")
    reader.request(codecs.ListRecordingSubscriptionsRequest, **listed)
    second = reader.request(codecs.ListRecordingSubscriptionsRequest, **listed)
    answer = reader.response(second)
    for stream_id in range(100, 150):
        rig.raw.call(codecs.StopRecordingRequest, stream_id=stream_id, channel=IPC)
    return error_code_of(answer)


def active_recording(rig: Rig) -> int:
    recording_id, publication = rig.recording(3001, count=5)
    code = rig.code(codecs.TruncateRecordingRequest, recording_id=recording_id, position=0)
    publication.close()
    return code


def active_subscription(rig: Rig) -> int:
    stream_id = next(_streams)
    assert rig.start(stream_id).code is ControlResponseCode.OK
    return error_code_of(rig.start(stream_id))


def unknown_subscription(rig: Rig) -> int:
    return rig.code(codecs.StopRecordingSubscriptionRequest, subscription_id=NOBODY)


def unknown_recording(rig: Rig) -> int:
    return rig.code(codecs.StopPositionRequest, recording_id=NOBODY)


def max_replays(rig: Rig) -> int:
    """One that follows a live recording keeps the only place."""
    recording_id, publication = rig.recording(3003, count=5)
    replay = {
        "recording_id": recording_id,
        "position": 0,
        "length": -1,
        "replay_stream_id": 3004,
        "file_io_max_length": -1,
        "replay_channel": "aeron:ipc",
    }
    with closing(publication), closing(rig.aeron.add_subscription("aeron:ipc", 3004)):
        first = rig.raw.call(codecs.ReplayRequest, **replay)
        assert first.code is ControlResponseCode.OK, first
        code = rig.code(codecs.ReplayRequest, **replay)
        rig.raw.call(codecs.StopReplayRequest, replay_session_id=first.relevant_id)
    # Until the place is free again others would get the same answer.
    await_true(lambda: rig.code(codecs.ReplayRequest, **{**replay, "position": -32}) != code)
    return code


def max_recordings(rig: Rig) -> int:
    """As many recordings as may be, and one more. (Java 1.51 counts those with an image.)"""
    streams = []
    while (answer := rig.start(stream_id := next(_streams))).code is ControlResponseCode.OK:
        streams.append((stream_id, rig.aeron.add_exclusive_publication(IPC, stream_id)))
        rig.signal(answer.correlation_id, codecs.RecordingSignal.START)
        assert len(streams) <= MAX_RECORDINGS
    for stream_id, publication in streams:
        rig.raw.call(codecs.StopRecordingRequest, stream_id=stream_id, channel=IPC)
        publication.close()
    return error_code_of(answer)


def invalid_extension(rig: Rig) -> int:
    """A stream that begins at 0, where the recording is longer."""
    recording_id = rig.stopped(3005, count=5)
    with closing(rig.aeron.add_exclusive_publication(IPC, 3005)):
        return rig.error_after_ok(
            codecs.ExtendRecordingRequest,
            recording_id=recording_id,
            stream_id=3005,
            source_location=SourceLocation.LOCAL,
            channel=IPC,
        )


def authentication_rejected(rig: Rig) -> int:
    rig.connected(b"wrong")
    return error_code_of(rig.answer)


def unknown_replication(rig: Rig) -> int:
    return rig.code(codecs.StopReplicationRequest, replication_id=NOBODY)


def unauthorised_action(rig: Rig) -> int:
    reader = rig.connected(b"open:reader")
    return error_code_of(reader.call(codecs.PurgeRecordingRequest, recording_id=0))


def replication_connection_failure(rig: Rig) -> int:
    """Nobody listens on the port."""
    return rig.error_after_ok(
        codecs.ReplicateRequest2,
        src_recording_id=0,
        dst_recording_id=-1,
        stop_position=-1,
        channel_tag_id=-1,
        subscription_tag_id=-1,
        src_control_stream_id=10,
        file_io_max_length=-1,
        replication_session_id=-1,
        src_control_channel=f"aeron:udp?endpoint=localhost:{free_port()}",
    )


def empty_recording(rig: Rig) -> int:
    """All that there is, to stop there: nothing."""
    return rig.code(
        codecs.ReplayRequest,
        recording_id=rig.stopped(3006, count=0),
        position=-1,
        length=-2,
        replay_stream_id=3007,
        file_io_max_length=-1,
        replay_channel="aeron:ipc",
    )


def invalid_position(rig: Rig) -> int:
    return rig.code(
        codecs.TruncateRecordingRequest, recording_id=rig.stopped(3008, count=5), position=1 << 30
    )


PROVOCATIONS: dict[ErrorCode, Callable[[Rig], int]] = {
    ErrorCode.GENERIC: generic,
    ErrorCode.ACTIVE_LISTING: active_listing,
    ErrorCode.ACTIVE_RECORDING: active_recording,
    ErrorCode.ACTIVE_SUBSCRIPTION: active_subscription,
    ErrorCode.UNKNOWN_SUBSCRIPTION: unknown_subscription,
    ErrorCode.UNKNOWN_RECORDING: unknown_recording,
    ErrorCode.MAX_REPLAYS: max_replays,
    ErrorCode.MAX_RECORDINGS: max_recordings,
    ErrorCode.INVALID_EXTENSION: invalid_extension,
    ErrorCode.AUTHENTICATION_REJECTED: authentication_rejected,
    ErrorCode.UNKNOWN_REPLICATION: unknown_replication,
    ErrorCode.UNAUTHORISED_ACTION: unauthorised_action,
    ErrorCode.REPLICATION_CONNECTION_FAILURE: replication_connection_failure,
    ErrorCode.EMPTY_RECORDING: empty_recording,
    ErrorCode.INVALID_POSITION: invalid_position,
}
# What an archive of its own is needed for: it refuses every recording.
FULL_DISK = {ErrorCode.STORAGE_SPACE}
# What no archive sends: stopping a replay that there is not is no error in the reference.
NEVER = {ErrorCode.UNKNOWN_REPLAY}


@pytest.fixture(scope="module", params=["aerotape", "java"])
def rig(request: pytest.FixtureRequest, run_archive: Callable[..., Any]) -> Iterator[Rig]:
    """Each archive in turn, with low limits."""
    with run_archive(request.param, properties(request.param)) as archive:
        made = Rig(archive)
        yield made
        made.aeron.close()


def test_every_code_is_provoked() -> None:
    """But for what nobody sends."""
    assert PROVOCATIONS.keys() | FULL_DISK | NEVER == set(ErrorCode)
    assert not PROVOCATIONS.keys() & (FULL_DISK | NEVER)


@pytest.mark.parametrize("code", PROVOCATIONS, ids=lambda code: code.name)
def test_error_code(rig: Rig, code: ErrorCode) -> None:
    """The same code from either archive, and the session goes on."""
    assert PROVOCATIONS[code](rig) == code
    assert rig.raw.call(codecs.ArchiveIdRequest).code is ControlResponseCode.OK


def test_a_replay_that_there_is_not_is_stopped_without_an_error(rig: Rig) -> None:
    """So nobody ever gets UNKNOWN_REPLAY."""
    answer = rig.raw.call(codecs.StopReplayRequest, replay_session_id=NOBODY)
    assert answer.code is ControlResponseCode.OK


@pytest.mark.parametrize("kind", ["aerotape", "java"])
def test_storage_space(run_archive: Callable[..., Any], kind: str) -> None:
    """Where less space is left than the threshold."""
    threshold = {"aeron.archive.low.storage.space.threshold": "8000000g"}
    with run_archive(kind, {**properties(kind), **threshold}) as archive:
        rig = Rig(archive)
        assert error_code_of(rig.start(1)) == ErrorCode.STORAGE_SPACE
        rig.aeron.close()
