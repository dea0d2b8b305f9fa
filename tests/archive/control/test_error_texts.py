"""Texts of errors beyond `test_error_codes`: ours contain the Java archive's words.

Each request is refused by both archives, with the same code.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from support.daemon.archives import ARCHIVES
from support.daemon.control_rig import await_true
from support.daemon.error_rig import (
    IPC,
    NOBODY,
    SEGMENT_LENGTH,
    Rig,
    error,
    next_stream_id,
    replay_fields,
    replication_fields,
    words,
)

from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode, SourceLocation

# Frames of 1,024 bytes in more than two segments.
LONG = 2 * SEGMENT_LENGTH // 1024 + 3
# A stream that begins at position 4,096.
LATE = "|init-term-id=7|term-id=7|term-offset=4096"


# ---- recordings --------------------------------------------------------------------------------


def extend(rig: Rig, recording_id: int, stream_id: int) -> Any:
    return rig.raw.call(
        codecs.ExtendRecordingRequest,
        recording_id=recording_id,
        stream_id=stream_id,
        source_location=SourceLocation.LOCAL,
        channel=IPC,
    )


def extend_an_active_recording(rig: Rig) -> Any:
    stream_id = next_stream_id()
    recording_id, publication = rig.recording(stream_id, 1)
    with closing(publication):
        return error(extend(rig, recording_id, stream_id))


def extended_by(params: str) -> Callable[[Rig], Any]:
    """Extend a recording of one frame by a stream at its stop position with other parameters."""

    def provoke(rig: Rig) -> Any:
        stream_id = next_stream_id()
        recording_id = rig.stopped(1, "|init-term-id=7|term-id=7|term-offset=0", stream_id)
        with closing(
            rig.aeron.add_exclusive_publication(f"aeron:ipc?term-offset=1024|{params}", stream_id)
        ):
            return rig.error_after_ok(
                codecs.ExtendRecordingRequest,
                recording_id=recording_id,
                stream_id=stream_id,
                source_location=SourceLocation.LOCAL,
                channel=IPC,
            )

    return provoke


def purge_an_active_recording(rig: Rig) -> Any:
    recording_id, publication = rig.recording(next_stream_id(), 1)
    with closing(publication):
        return rig.refused(codecs.PurgeRecordingRequest, recording_id=recording_id)


def purge_of_a_replayed_recording(rig: Rig) -> Any:
    recording_id = rig.stopped(LONG)
    with replaying(rig, recording_id):
        return rig.refused(codecs.PurgeRecordingRequest, recording_id=recording_id)


# ---- replays -----------------------------------------------------------------------------------


@contextmanager
def replaying(rig: Rig, recording_id: int) -> Iterator[None]:
    """Replay a recording to a subscriber that does not read, from its start."""
    fields = replay_fields(recording_id)
    with closing(rig.aeron.add_subscription("aeron:ipc", fields["replay_stream_id"])):
        granted = rig.raw.call(codecs.ReplayRequest, **fields)
        assert granted.code is ControlResponseCode.OK, granted
        yield
        rig.raw.call(codecs.StopReplayRequest, replay_session_id=granted.relevant_id)
    await_no_replay(rig)


def await_no_replay(rig: Rig) -> None:
    """Wait until the only place for a replay is free."""
    fields = replay_fields(rig.stopped(1), position=-32)
    await_true(lambda: "max" not in rig.refused(codecs.ReplayRequest, **fields).error_message)


def refused_replay(**fields: Any) -> Callable[[Rig], Any]:
    """Replay a recording from 4,096 to 9,216 with these fields."""

    def provoke(rig: Rig) -> Any:
        return rig.refused(codecs.ReplayRequest, **replay_fields(rig.stopped(5, LATE), **fields))

    return provoke


def bounded(counter_value: int | None) -> Callable[[Rig], Any]:
    """Replay from 4,096 up to a counter with a value; None for no counter."""

    def provoke(rig: Rig) -> Any:
        fields = replay_fields(rig.stopped(5, LATE), position=4096)
        if counter_value is None:
            return rig.refused(codecs.BoundedReplayRequest, limit_counter_id=8_000, **fields)
        with closing(rig.aeron.add_counter(1001, b"", "limit")) as counter:
            counter.set(counter_value)
            return rig.refused(codecs.BoundedReplayRequest, limit_counter_id=counter.id, **fields)

    return provoke


def failed_replay(rig: Rig, recording_id: int, **fields: Any) -> Any:
    """Replay to a subscriber; return the error, whether or not an OK precedes it."""
    wanted = replay_fields(recording_id, **fields)
    with closing(rig.aeron.add_subscription("aeron:ipc", wanted["replay_stream_id"])):
        asked = rig.raw.request(codecs.ReplayRequest, **wanted)
        answer = rig.raw.await_message(
            codecs.ControlResponse, correlation_id=asked, code=ControlResponseCode.ERROR
        )
    rig.raw.received.clear()
    await_no_replay(rig)
    return answer


def replay_without_subscriber(rig: Rig) -> Any:
    answer = rig.error_after_ok(codecs.ReplayRequest, **replay_fields(rig.stopped(5)))
    await_no_replay(rig)
    return answer


def replay_to_a_refused_channel(rig: Rig) -> Any:
    answer = rig.refused(
        codecs.ReplayRequest,
        **replay_fields(rig.stopped(5), replay_channel="aeron:udp?endpoint=256.256.256.256:9"),
    )
    await_no_replay(rig)
    return answer


def replay_of_a_missing_file(rig: Rig) -> Any:
    recording_id = rig.stopped(5)
    rig.segment_file(recording_id).unlink()
    return failed_replay(rig, recording_id)


def replay_of_zeros(rig: Rig) -> Any:
    recording_id = rig.stopped(5)
    overwrite(rig, recording_id, 2048, bytes(1024))
    return failed_replay(rig, recording_id)


def replay_of_a_damaged_payload(rig: Rig) -> Any:
    recording_id = rig.stopped(5)
    overwrite(rig, recording_id, 2048 + 40, b"y")
    return failed_replay(rig, recording_id)


def overwrite(rig: Rig, recording_id: int, offset: int, data: bytes, base: int = 0) -> None:
    """Change a segment file."""
    with rig.segment_file(recording_id, base).open("r+b") as file:
        file.seek(offset)
        file.write(data)


# ---- segments ----------------------------------------------------------------------------------


def detached(position: int) -> Callable[[Rig], Any]:
    """Detach the segments of a recording up to a position."""

    def provoke(rig: Rig) -> Any:
        return rig.refused(
            codecs.DetachSegmentsRequest,
            recording_id=rig.stopped(LONG),
            new_start_position=position,
        )

    return provoke


def detach_of_replayed_segments(rig: Rig) -> Any:
    recording_id = rig.stopped(LONG)
    with replaying(rig, recording_id):
        return rig.refused(
            codecs.DetachSegmentsRequest,
            recording_id=recording_id,
            new_start_position=2 * SEGMENT_LENGTH,
        )


def attached(spoil: Callable[[Rig, int], None]) -> Callable[[Rig], Any]:
    """Attach a detached segment whose file was changed."""

    def provoke(rig: Rig) -> Any:
        recording_id = rig.stopped(LONG)
        detach = {"recording_id": recording_id, "new_start_position": SEGMENT_LENGTH}
        assert rig.raw.call(codecs.DetachSegmentsRequest, **detach).code is ControlResponseCode.OK
        spoil(rig, recording_id)
        return rig.refused(codecs.AttachSegmentsRequest, recording_id=recording_id)

    return provoke


def shorten(rig: Rig, recording_id: int) -> None:
    with rig.segment_file(recording_id).open("r+b") as file:
        file.truncate(SEGMENT_LENGTH - 32)


def blank(rig: Rig, recording_id: int) -> None:
    overwrite(rig, recording_id, 0, bytes(SEGMENT_LENGTH))


def give_another_term(rig: Rig, recording_id: int) -> None:
    overwrite(rig, recording_id, 20, struct.pack("<i", 4711))


def give_another_stream(rig: Rig, recording_id: int) -> None:
    overwrite(rig, recording_id, 16, struct.pack("<i", 4711))


def migrated(
    source: tuple[int, str], target: tuple[int, str], *, other_stream: bool = False
) -> Callable[[Rig], Any]:
    """Migrate one recording to another: the frames and the parameters of each."""

    def provoke(rig: Rig) -> Any:
        stream_id = next_stream_id()
        source_id = rig.stopped(*source, stream_id)
        target_id = rig.stopped(*target, next_stream_id() if other_stream else stream_id)
        return migration(rig, source_id, target_id)

    return provoke


def migration(rig: Rig, source_id: int, target_id: int) -> Any:
    return rig.refused(
        codecs.MigrateSegmentsRequest, src_recording_id=source_id, dst_recording_id=target_id
    )


def migration_of_an_active_recording(rig: Rig) -> Any:
    recording_id, publication = rig.recording(next_stream_id(), 1)
    with closing(publication):
        return migration(rig, recording_id, rig.stopped(1))


TERM = "|mtu=1408|init-term-id=7|term-id=7|term-offset=0"
# The stream from its second term on.
SECOND = "|mtu=1408|init-term-id=7|term-id=8|term-offset=0"


def neighbours(rig: Rig) -> tuple[int, int]:
    """A recording of the first segment of a stream, and one of the second."""
    stream_id = next_stream_id()
    first = rig.stopped(SEGMENT_LENGTH // 1024, TERM, stream_id)
    return first, rig.stopped(2, SECOND, stream_id)


def migration_of_a_missing_file(rig: Rig) -> Any:
    first, second = neighbours(rig)
    rig.segment_file(first).unlink()
    return migration(rig, first, second)


def migration_onto_a_file(rig: Rig) -> Any:
    first, second = neighbours(rig)
    rig.segment_file(second, 0).write_bytes(rig.segment_file(first).read_bytes())
    return migration(rig, first, second)


# ---- replications ------------------------------------------------------------------------------


def replicated(**fields: Any) -> Callable[[Rig], Any]:
    """Replicate within one archive, refused at once."""

    def provoke(rig: Rig) -> Any:
        return rig.refused(codecs.ReplicateRequest2, **replication(rig, **fields))

    return provoke


def replication(rig: Rig, **fields: Any) -> dict[str, Any]:
    return replication_fields(src_control_channel=rig.archive.control_channel, **fields)


def replication_to_an_active_recording(rig: Rig) -> Any:
    recording_id, publication = rig.recording(next_stream_id(), 1)
    with closing(publication):
        return replicated(dst_recording_id=recording_id)(rig)


def failed_replication(rig: Rig, **fields: Any) -> Any:
    wanted = replication(rig, encoded_credentials=b"open:alice", **fields)
    return rig.error_after_ok(codecs.ReplicateRequest2, **wanted)


# ---- sessions ----------------------------------------------------------------------------------


def connect_of_another_version(rig: Rig) -> Any:
    rig.connected(b"open:alice", version=2 << 16)
    return error(rig.answer)


RESPONSE_CHANNEL = "aeron:udp?control=localhost:0|control-mode=response"
PROVOCATIONS: dict[str, Callable[[Rig], Any]] = {
    "start with unknown media": lambda rig: error(
        rig.start(next_stream_id(), "aeron:tcp?endpoint=localhost:9")
    ),
    "start with a long channel": lambda rig: error(
        rig.start(next_stream_id(), f"aeron:ipc?alias={'x' * 5000}")
    ),
    "stop of an unknown channel": lambda rig: rig.refused(
        codecs.StopRecordingRequest, stream_id=next_stream_id(), channel=IPC
    ),
    "find from a negative id": lambda rig: rig.refused(
        codecs.FindLastMatchingRecordingRequest, min_recording_id=-5, channel="ipc"
    ),
    "extend with another stream": lambda rig: error(extend(rig, rig.stopped(1), next_stream_id())),
    "extend an active recording": extend_an_active_recording,
    "extend with other term ids": extended_by("term-length=64k|init-term-id=8|term-id=8"),
    "extend with other terms": extended_by("term-length=128k|init-term-id=7|term-id=7"),
    "extend with another MTU": extended_by("term-length=64k|init-term-id=7|term-id=7|mtu=2048"),
    "purge an active recording": purge_an_active_recording,
    "purge a replayed recording": purge_of_a_replayed_recording,
    "truncate within a frame": lambda rig: rig.refused(
        codecs.TruncateRecordingRequest, recording_id=rig.stopped(5), position=1024 + 32
    ),
    "replay of an unknown recording": lambda rig: rig.refused(
        codecs.ReplayRequest, **replay_fields(NOBODY)
    ),
    "replay from no multiple of 32": refused_replay(position=4097),
    "replay from before the start": refused_replay(position=0),
    "replay from beyond the end": refused_replay(position=1 << 20),
    "replay of a negative length": refused_replay(length=-5),
    "replay in small pieces": refused_replay(file_io_max_length=64),
    "replay to an impossible channel": refused_replay(replay_channel="aeron:ipc?linger=soon"),
    "replay to a refused channel": replay_to_a_refused_channel,
    "replay up to no counter": bounded(None),
    "replay from beyond a counter": bounded(32),
    "replay without a subscriber": replay_without_subscriber,
    "replay from within a frame": lambda rig: failed_replay(
        rig, rig.stopped(5), position=1024 + 32
    ),
    "replay of a missing file": replay_of_a_missing_file,
    "replay of zeros": replay_of_zeros,
    "replay of a damaged payload": replay_of_a_damaged_payload,
    "detach to within a segment": detached(1024),
    "detach to the start": detached(0),
    "detach to beyond the end": detached(5 * SEGMENT_LENGTH),
    "detach replayed segments": detach_of_replayed_segments,
    "attach a short file": attached(shorten),
    "attach a blank file": attached(blank),
    "attach a file of another term": attached(give_another_term),
    "attach a file of another stream": attached(give_another_stream),
    "migrate an active recording": migration_of_an_active_recording,
    "migrate to other terms": migrated((1, TERM), (1, "|term-length=128k" + TERM)),
    "migrate to other term ids": migrated((1, TERM), (1, LATE.replace("=7", "=9"))),
    "migrate to another stream": migrated((1, TERM), (1, TERM), other_stream=True),
    "migrate to another MTU": migrated((1, TERM), (1, TERM.replace("1408", "2048"))),
    "migrate what does not follow": migrated((3, TERM), (1, SECOND)),
    "migrate within a segment": migrated(
        (4, TERM), (1, "|mtu=1408|init-term-id=7|term-id=7|term-offset=4096")
    ),
    "migrate a missing file": migration_of_a_missing_file,
    "migrate onto a file": migration_onto_a_file,
    "replicate to an unknown recording": replicated(dst_recording_id=NOBODY),
    "replicate to an active recording": replication_to_an_active_recording,
    "replicate with a response channel to live": replicated(
        replication_channel=RESPONSE_CHANNEL, live_destination="aeron:udp?endpoint=localhost:9"
    ),
    "replicate with a response channel and tags": replicated(
        replication_channel=RESPONSE_CHANNEL, channel_tag_id=5
    ),
    "replicate an unknown recording": lambda rig: failed_replication(rig, src_recording_id=NOBODY),
    "replicate in small pieces": lambda rig: failed_replication(
        rig, src_recording_id=rig.stopped(1), file_io_max_length=64
    ),
    "replicate a stopped stream to live": lambda rig: failed_replication(
        rig, src_recording_id=rig.stopped(1), live_destination="aeron:udp?endpoint=localhost:9"
    ),
    "replicate without credentials": lambda rig: rig.error_after_ok(
        codecs.ReplicateRequest2, **replication(rig)
    ),
    "connect with another version": connect_of_another_version,
}


@pytest.mark.parametrize("name", PROVOCATIONS)
def test_error_text(rigs: dict[str, Rig], name: str) -> None:
    """Both archives send the same code, and ours has the Java archive's words."""
    answers = {kind: PROVOCATIONS[name](rig) for kind, rig in rigs.items()}
    ours, javas = (words(answers[kind], rigs[kind]) for kind in ARCHIVES)
    assert javas in ours
    if name != "connect with another version":
        # Where the relevant id is the control session's.
        assert answers["aerotape"].relevant_id == answers["java"].relevant_id
