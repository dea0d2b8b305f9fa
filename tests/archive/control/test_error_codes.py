"""Every error code of the protocol, provoked alike in the Java archive and in ours.

The texts are compared too: clients match on words of the reference's.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from support.daemon.archives import ARCHIVES
from support.daemon.control_rig import await_true
from support.daemon.error_rig import (
    IPC,
    MAX_RECORDINGS,
    NOBODY,
    Rig,
    error,
    next_stream_id,
    properties,
    replay_fields,
    replication_fields,
    words,
)
from support.jvm.java import free_port

from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode, SourceLocation
from aerotape.protocol import ErrorCode

# ---- requests that provoke the codes ----------------------------------------------------------


def active_listing(rig: Rig) -> Any:
    """Recordings whose channels are long enough to fill the response stream's window."""
    for stream_id in range(100, 140):
        answer = rig.start(stream_id, f"{IPC}|alias={'x' * 1200}")
        with closing(rig.aeron.add_exclusive_publication(IPC, stream_id)):
            rig.signal(answer.correlation_id, codecs.RecordingSignal.START)
        rig.raw.call(codecs.StopRecordingRequest, stream_id=stream_id, channel=IPC)
    listed = {"from_recording_id": 0, "record_count": 1000}
    reader = rig.connected(b"open:bob")
    reader.request(codecs.ListRecordingsRequest, **listed)
    return error(reader.response(reader.request(codecs.ListRecordingsRequest, **listed)))


def active_recording(rig: Rig) -> Any:
    recording_id, publication = rig.recording(3001, count=5)
    answer = rig.refused(codecs.TruncateRecordingRequest, recording_id=recording_id, position=0)
    publication.close()
    return answer


def active_subscription(rig: Rig) -> Any:
    stream_id = next_stream_id()
    assert rig.start(stream_id).code is ControlResponseCode.OK
    return error(rig.start(stream_id))


def max_replays(rig: Rig) -> Any:
    """A replay that follows a live recording occupies the only place."""
    recording_id, publication = rig.recording(3003, count=5)
    replay = replay_fields(recording_id, position=0, replay_stream_id=3004)
    with closing(publication), closing(rig.aeron.add_subscription("aeron:ipc", 3004)):
        first = rig.raw.call(codecs.ReplayRequest, **replay)
        assert first.code is ControlResponseCode.OK, first
        answer = rig.refused(codecs.ReplayRequest, **replay)
        rig.raw.call(codecs.StopReplayRequest, replay_session_id=first.relevant_id)
    # Until the place is free, other tests would receive the same error.
    other = {**replay, "position": -32}
    await_true(lambda: rig.refused(codecs.ReplayRequest, **other).relevant_id != answer.relevant_id)
    return answer


def max_recordings(rig: Rig) -> Any:
    """One recording more than allowed. (Java 1.51 counts recordings with an image.)"""
    streams = []
    while (answer := rig.start(stream_id := next_stream_id())).code is ControlResponseCode.OK:
        streams.append((stream_id, rig.aeron.add_exclusive_publication(IPC, stream_id)))
        rig.signal(answer.correlation_id, codecs.RecordingSignal.START)
        assert len(streams) <= MAX_RECORDINGS
    for stream_id, publication in streams:
        rig.raw.call(codecs.StopRecordingRequest, stream_id=stream_id, channel=IPC)
        publication.close()
    return error(answer)


def invalid_extension(rig: Rig) -> Any:
    """A stream that begins at 0, which is not the stop position."""
    recording_id = rig.stopped(5, stream_id=3005)
    with closing(rig.aeron.add_exclusive_publication(IPC, 3005)):
        return rig.error_after_ok(
            codecs.ExtendRecordingRequest,
            recording_id=recording_id,
            stream_id=3005,
            source_location=SourceLocation.LOCAL,
            channel=IPC,
        )


def authentication_rejected(rig: Rig) -> Any:
    rig.connected(b"wrong")
    return error(rig.answer)


def replication_connection_failure(rig: Rig) -> Any:
    """No archive listens on the port."""
    return rig.error_after_ok(
        codecs.ReplicateRequest2,
        **replication_fields(src_control_channel=f"aeron:udp?endpoint=localhost:{free_port()}"),
    )


PROVOCATIONS: dict[ErrorCode, Callable[[Rig], Any]] = {
    ErrorCode.GENERIC: lambda rig: error(rig.start(next_stream_id(), "not a channel")),
    ErrorCode.ACTIVE_LISTING: active_listing,
    ErrorCode.ACTIVE_RECORDING: active_recording,
    ErrorCode.ACTIVE_SUBSCRIPTION: active_subscription,
    ErrorCode.UNKNOWN_SUBSCRIPTION: lambda rig: rig.refused(
        codecs.StopRecordingSubscriptionRequest, subscription_id=NOBODY
    ),
    ErrorCode.UNKNOWN_RECORDING: lambda rig: rig.refused(
        codecs.StopPositionRequest, recording_id=NOBODY
    ),
    ErrorCode.MAX_REPLAYS: max_replays,
    ErrorCode.MAX_RECORDINGS: max_recordings,
    ErrorCode.INVALID_EXTENSION: invalid_extension,
    ErrorCode.AUTHENTICATION_REJECTED: authentication_rejected,
    ErrorCode.UNKNOWN_REPLICATION: lambda rig: rig.refused(
        codecs.StopReplicationRequest, replication_id=NOBODY
    ),
    ErrorCode.UNAUTHORISED_ACTION: lambda rig: error(
        rig.connected(b"open:reader").call(codecs.PurgeRecordingRequest, recording_id=0)
    ),
    ErrorCode.REPLICATION_CONNECTION_FAILURE: replication_connection_failure,
    ErrorCode.EMPTY_RECORDING: lambda rig: rig.refused(
        codecs.ReplayRequest, **replay_fields(rig.stopped(0), length=-2)
    ),
    ErrorCode.INVALID_POSITION: lambda rig: rig.refused(
        codecs.TruncateRecordingRequest, recording_id=rig.stopped(5), position=1 << 30
    ),
}
# Needs a separate archive, which refuses every recording.
FULL_DISK = {ErrorCode.STORAGE_SPACE}
# Never sent: in the reference, stopping an unknown replay is not an error.
NEVER = {ErrorCode.UNKNOWN_REPLAY}


def test_every_code_is_provoked() -> None:
    """Except for codes that are never sent."""
    assert PROVOCATIONS.keys() | FULL_DISK | NEVER == set(ErrorCode)
    assert not PROVOCATIONS.keys() & (FULL_DISK | NEVER)


@pytest.mark.parametrize("code", PROVOCATIONS, ids=lambda code: code.name)
def test_error_code(rigs: dict[str, Rig], code: ErrorCode) -> None:
    """Both archives send the same code; our text has the Java archive's words; sessions
    continue."""
    answers = {kind: PROVOCATIONS[code](rig) for kind, rig in rigs.items()}
    for kind, rig in rigs.items():
        assert answers[kind].relevant_id == code, kind
        assert rig.raw.call(codecs.ArchiveIdRequest).code is ControlResponseCode.OK
    ours, javas = (words(answers[kind], rigs[kind]) for kind in ARCHIVES)
    assert javas in ours


def test_the_refusal_of_a_second_recording_says_how_to_go_on(rigs: dict[str, Rig]) -> None:
    """It is not a failure for most callers, and others stop the first one."""
    refused = active_subscription(rigs["aerotape"])
    assert "new publications on it are recorded too" in refused.error_message
    assert "stop it first" in refused.error_message


@pytest.mark.parametrize("kind", ARCHIVES)
def test_stopping_an_unknown_replay_is_not_an_error(rigs: dict[str, Rig], kind: str) -> None:
    """UNKNOWN_REPLAY is never sent."""
    answer = rigs[kind].raw.call(codecs.StopReplayRequest, replay_session_id=NOBODY)
    assert answer.code is ControlResponseCode.OK


@pytest.mark.jvm
def test_storage_space(run_archive: Callable[..., Any]) -> None:
    """A recording is refused with less free space than the threshold."""
    threshold = {"aeron.archive.low.storage.space.threshold": "8000000g"}
    texts = []
    for kind in ARCHIVES:
        with run_archive(kind, {**properties(kind), **threshold}) as archive:
            rig = Rig(archive)
            answer = error(rig.start(1))
            assert answer.relevant_id == ErrorCode.STORAGE_SPACE
            texts.append(words(answer, rig))
            rig.aeron.close()
    ours, javas = texts
    assert javas in ours
