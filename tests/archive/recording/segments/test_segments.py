"""Segments detached, deleted, purged, attached and migrated: what a Java client sees of it.

Each test runs on our daemon and on the Java archive.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.builders.streams import TERM_LENGTH, Stream, record, segment_files, signals_until
from support.daemon.control_rig import await_true
from support.jvm.java import JavaArchiveException, JavaClient

pytestmark = pytest.mark.jvm

GENERIC, UNKNOWN_RECORDING = 0, 5
NOBODY = 10_000
TERM = TERM_LENGTH


@pytest.fixture(scope="module")
def client(either: Any) -> Iterator[JavaClient]:
    """A Java client connected to one archive or the other."""
    with JavaClient(either.aeron_dir) as connected:
        connected.connect(either.control_channel)
        yield connected


def refused(client: JavaClient, method: str, *args: Any) -> int | None:
    """The error code of a call that must fail."""
    with pytest.raises(JavaArchiveException) as caught:
        client.call(method, *args)
    assert caught.value.exception == "ArchiveException", caught.value
    return caught.value.error_code


def files_of(either: Any, stream: Stream) -> list[int]:
    return [base // TERM for base in segment_files(either.archive_dir, stream.recording_id)]


def positions(client: JavaClient, stream: Stream) -> tuple[int, int]:
    """The positions in the recording's descriptor."""
    [row] = client.call("listRecording", stream.recording_id)
    assert row["startPosition"] == client.call("getStartPosition", stream.recording_id)
    return row["startPosition"], row["stopPosition"]


# ---- detach, delete, purge -----------------------------------------------------------------------


def test_detaching_moves_the_start_and_leaves_the_files(either: Any, client: JavaClient) -> None:
    """The descriptor starts later; the files stay until they are deleted, told by a signal."""
    stream = record(client, 3001, 3 * TERM + 1024)
    client.call("detachSegments", stream.recording_id, 2 * TERM)
    assert positions(client, stream) == (2 * TERM, 3 * TERM + 1024)
    assert files_of(either, stream) == [0, 1, 2, 3]
    client.call("takeSignals")
    assert client.call("deleteDetachedSegments", stream.recording_id) == 2
    [signal] = signals_until(client, stream.recording_id, "DELETE")
    assert {
        "recordingId": stream.recording_id,
        "subscriptionId": -1,
        "position": -1,
        "signal": "DELETE",
    }.items() <= signal.items()
    assert files_of(either, stream) == [2, 3]
    assert positions(client, stream) == (2 * TERM, 3 * TERM + 1024)


def test_deleting_where_nothing_is_detached_is_told_too(either: Any, client: JavaClient) -> None:
    """No file is deleted, and the signal comes all the same."""
    stream = record(client, 3002, TERM + 1024)
    client.call("takeSignals")
    assert client.call("deleteDetachedSegments", stream.recording_id) == 0
    signals_until(client, stream.recording_id, "DELETE")
    assert files_of(either, stream) == [0, 1]


def test_a_gap_among_detached_segments_is_counted(either: Any, client: JavaClient) -> None:
    """All names from the first file up to the start count, also one that is missing."""
    stream = record(client, 3003, 3 * TERM + 1024)
    client.call("detachSegments", stream.recording_id, 3 * TERM)
    Path(either.archive_dir, f"{stream.recording_id}-{TERM}.rec").unlink()
    assert client.call("deleteDetachedSegments", stream.recording_id) == 3
    signals_until(client, stream.recording_id, "DELETE")
    assert files_of(either, stream) == [3]


@pytest.mark.parametrize("method", ["detachSegments", "purgeSegments"])
@pytest.mark.parametrize(
    "position",
    [
        pytest.param(1024, id="within a segment"),
        pytest.param(TERM + 32, id="just after a boundary"),
        pytest.param(0, id="the start"),
        pytest.param(-TERM, id="negative"),
        pytest.param(4 * TERM, id="beyond the last segment"),
        pytest.param(1 << 40, id="far beyond"),
    ],
)
def test_positions_that_cannot_be_a_new_start(
    either: Any, client: JavaClient, refusing: Stream, method: str, position: int
) -> None:
    """Only boundaries after the first segment, up to the one that holds the end, will do."""
    before = files_of(either, refusing)
    assert refused(client, method, refusing.recording_id, position) == GENERIC
    assert positions(client, refusing) == (0, 3 * TERM + 1024)
    assert files_of(either, refusing) == before


@pytest.fixture(scope="module")
def refusing(client: JavaClient) -> Stream:
    """A recording for requests that change nothing."""
    return record(client, 3010, 3 * TERM + 1024)


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("detachSegments", [TERM]),
        ("deleteDetachedSegments", []),
        ("purgeSegments", [TERM]),
        ("attachSegments", []),
        ("migrateSegments", [NOBODY]),
    ],
)
def test_recordings_that_are_not_there(client: JavaClient, method: str, more: list[int]) -> None:
    assert refused(client, method, NOBODY, *more) == UNKNOWN_RECORDING


def test_migrating_to_a_recording_that_is_not_there(client: JavaClient, refusing: Stream) -> None:
    assert refused(client, "migrateSegments", refusing.recording_id, NOBODY) == UNKNOWN_RECORDING


def test_purging_detaches_and_deletes(either: Any, client: JavaClient) -> None:
    """The segments before the new start are gone when the signal comes."""
    stream = record(client, 3020, 4 * TERM)
    client.call("takeSignals")
    assert client.call("purgeSegments", stream.recording_id, 3 * TERM) == 3
    signals_until(client, stream.recording_id, "DELETE")
    assert 0 not in files_of(either, stream)
    assert {1, 2, 3} & set(files_of(either, stream)) == {3}
    assert positions(client, stream) == (3 * TERM, 4 * TERM)
    subscription = client.add_subscription("aeron:ipc", 3021)
    client.call("startReplay", stream.recording_id, 3 * TERM, TERM, "aeron:ipc", 3021)
    assert client.poll(subscription, 64)["count"] == 64
    client.close_resource(subscription)


def test_a_start_within_a_term_can_be_purged(either: Any, client: JavaClient) -> None:
    """The first segment begins with the term in which the recording starts."""
    stream = record(client, 3022, 2 * TERM, start_position=TERM + 4096)
    assert files_of(either, stream)[:3] == [1, 2, 3]
    assert refused(client, "purgeSegments", stream.recording_id, TERM) == GENERIC
    assert client.call("purgeSegments", stream.recording_id, 2 * TERM) == 1
    signals_until(client, stream.recording_id, "DELETE")
    assert files_of(either, stream) == [2, 3]
    assert positions(client, stream) == (2 * TERM, 3 * TERM + 4096)


def test_what_a_live_recording_writes_to_stays(either: Any, client: JavaClient) -> None:
    """Segments go up to the one that is written to; the recording goes on."""
    stream = record(client, 3023, 2 * TERM + 2048, live=True)
    assert refused(client, "purgeSegments", stream.recording_id, 3 * TERM) == GENERIC
    assert client.call("purgeSegments", stream.recording_id, 2 * TERM) == 2
    signals_until(client, stream.recording_id, "DELETE")
    stream.offer(client, TERM)
    assert files_of(either, stream) == [2, 3]
    client.call("detachSegments", stream.recording_id, 3 * TERM)
    assert client.call("attachSegments", stream.recording_id) == 1
    stream.stop(client)
    client.call("stopRecording", "aeron:ipc", 3023)
    assert positions(client, stream) == (2 * TERM, 3 * TERM + 2048)


def test_what_is_being_replayed_stays(either: Any, client: JavaClient) -> None:
    """A replay keeps the segment in which it is, and those after it."""
    stream = record(client, 3024, 4 * TERM)
    # Nobody takes more than the first message: the replay stays within what fits a term.
    subscription = client.add_subscription("aeron:ipc", 3025)
    replay = client.call("startReplay", stream.recording_id, TERM, -2, "aeron:ipc", 3025)
    client.poll(subscription, 1)
    assert refused(client, "purgeSegments", stream.recording_id, 3 * TERM) == GENERIC
    client.call("detachSegments", stream.recording_id, TERM)
    assert positions(client, stream)[0] == TERM
    client.poll(subscription, 4 * 64)
    client.call("stopReplay", replay)
    client.close_resource(subscription)

    def is_let_go() -> bool:
        try:
            client.call("detachSegments", stream.recording_id, 3 * TERM)
        except JavaArchiveException:
            return False
        return True

    await_true(is_let_go)
    assert positions(client, stream)[0] == 3 * TERM


# ---- attach --------------------------------------------------------------------------------------


def test_attaching_takes_back_what_was_detached(client: JavaClient) -> None:
    """All files that lead up to the start; their messages can be replayed again."""
    stream = record(client, 3030, 4 * TERM)
    client.call("detachSegments", stream.recording_id, 3 * TERM)
    assert client.call("attachSegments", stream.recording_id) == 3
    assert positions(client, stream) == (0, 4 * TERM)
    assert client.call("attachSegments", stream.recording_id) == 0
    subscription = client.add_subscription("aeron:ipc", 3031)
    client.call("startReplay", stream.recording_id, 0, 4 * TERM, "aeron:ipc", 3031)
    assert client.poll(subscription, 4 * 64)["count"] == 4 * 64
    client.close_resource(subscription)


def test_attaching_ends_at_a_gap(either: Any, client: JavaClient) -> None:
    stream = record(client, 3032, 4 * TERM)
    client.call("detachSegments", stream.recording_id, 3 * TERM)
    Path(either.archive_dir, f"{stream.recording_id}-{TERM}.rec").unlink()
    assert client.call("attachSegments", stream.recording_id) == 1
    assert positions(client, stream) == (2 * TERM, 4 * TERM)


def test_attaching_finds_a_start_within_the_first_segment(client: JavaClient) -> None:
    """The first segment of a stream that was joined late begins with nothing."""
    stream = record(client, 3033, 2 * TERM, start_position=TERM + 40 * 1024)
    client.call("detachSegments", stream.recording_id, 3 * TERM)
    assert client.call("attachSegments", stream.recording_id) == 2
    assert positions(client, stream) == (TERM + 40 * 1024, 3 * TERM + 40 * 1024)
    assert client.call("attachSegments", stream.recording_id) == 0


def _cut(data: bytes) -> bytes:
    return data[:-1]


def _other_term(data: bytes) -> bytes:
    return data[:20] + struct.pack("<i", 1234) + data[24:]


def _other_stream(data: bytes) -> bytes:
    return data[:16] + struct.pack("<i", 1234) + data[20:]


def _empty(data: bytes) -> bytes:
    return bytes(len(data))


@pytest.mark.parametrize("damage", [_cut, _other_term, _other_stream, _empty])
def test_files_that_are_not_the_recordings(either: Any, client: JavaClient, damage: Any) -> None:
    """The recording starts where its own segments do, and the client is told of the other."""
    stream_id = 3040 + [_cut, _other_term, _other_stream, _empty].index(damage)
    stream = record(client, stream_id, 4 * TERM)
    client.call("detachSegments", stream.recording_id, 3 * TERM)
    path = Path(either.archive_dir, f"{stream.recording_id}-{TERM}.rec")
    path.write_bytes(damage(path.read_bytes()))
    assert refused(client, "attachSegments", stream.recording_id) == GENERIC
    assert positions(client, stream) == (2 * TERM, 4 * TERM)


# ---- migrate -------------------------------------------------------------------------------------


def test_migrating_to_the_recording_that_follows(either: Any, client: JavaClient) -> None:
    """The second recording begins where the first one did; the first is empty, without files."""
    first = record(client, 3050, 2 * TERM)
    second = record(client, 3050, 2 * TERM + 1024, start_position=2 * TERM)
    client.call("takeSignals")
    assert client.call("migrateSegments", first.recording_id, second.recording_id) == 2
    signals_until(client, first.recording_id, "DELETE")
    assert files_of(either, first) == []
    assert files_of(either, second)[:5] == [0, 1, 2, 3, 4]
    assert positions(client, first) == (0, 0)
    assert positions(client, second) == (0, 4 * TERM + 1024)
    subscription = client.add_subscription("aeron:ipc", 3051)
    client.call("startReplay", second.recording_id, 0, -1, "aeron:ipc", 3051)
    assert client.poll(subscription, 4 * 64 + 1)["count"] == 4 * 64 + 1
    client.close_resource(subscription)


def test_migrating_to_the_recording_before(either: Any, client: JavaClient) -> None:
    """The first recording ends where the second one did."""
    first = record(client, 3052, 2 * TERM)
    second = record(client, 3052, TERM + 1024, start_position=2 * TERM)
    # An archive may have made a file for what would have come next.
    Path(either.archive_dir, f"{first.recording_id}-{2 * TERM}.rec").unlink(missing_ok=True)
    client.call("takeSignals")
    assert client.call("migrateSegments", second.recording_id, first.recording_id) == 2
    signals_until(client, second.recording_id, "DELETE")
    assert files_of(either, second) == []
    assert files_of(either, first) == [0, 1, 2, 3]
    assert positions(client, second) == (2 * TERM, 2 * TERM)
    assert positions(client, first) == (0, 3 * TERM + 1024)


def test_migrating_to_a_live_recording(either: Any, client: JavaClient) -> None:
    """What was recorded before can be given to a recording that goes on."""
    first = record(client, 3053, TERM)
    second = record(client, 3053, 1024, start_position=TERM, live=True)
    assert client.call("migrateSegments", first.recording_id, second.recording_id) == 1
    assert positions(client, second) == (0, -1)
    second.offer(client, TERM)
    second.stop(client)
    client.call("stopRecording", "aeron:ipc", 3053)
    assert files_of(either, second) == [0, 1, 2]
    assert positions(client, second) == (0, 2 * TERM + 1024)


def test_a_file_in_the_way_of_a_migration(either: Any, client: JavaClient) -> None:
    """Nothing is changed when a file is missing, or one stands in the place of another."""
    first = record(client, 3054, 2 * TERM)
    second = record(client, 3054, TERM, start_position=2 * TERM)
    obstacle = Path(either.archive_dir, f"{second.recording_id}-{TERM}.rec")
    obstacle.write_bytes(bytes(TERM))
    call = ("migrateSegments", first.recording_id, second.recording_id)
    assert refused(client, *call) == GENERIC
    obstacle.unlink()
    away = Path(either.archive_dir, f"{first.recording_id}-0.rec")
    kept = away.read_bytes()
    away.unlink()
    assert refused(client, *call) == GENERIC
    assert positions(client, first) == (0, 2 * TERM)
    assert positions(client, second) == (2 * TERM, 3 * TERM)
    assert 1 in files_of(either, first)
    assert 1 not in files_of(either, second)
    away.write_bytes(kept)
    assert client.call(*call) == 2


def test_recordings_that_do_not_go_together(client: JavaClient) -> None:
    """An active source, another layout, a gap or an overlap, and a seam within a segment."""
    source = record(client, 3060, TERM)
    others: dict[str, dict[str, Any]] = {
        "term length and segment length": {"term_length": 2 * TERM, "start_position": 2 * TERM},
        "initial term id": {"initial_term_id": 3, "start_position": TERM},
        "mtu": {"mtu": 2048, "start_position": TERM},
        "gap": {"start_position": 2 * TERM},
        "overlap": {"start_position": 0},
    }
    for name, layout in others.items():
        other = record(client, 3060, 1024, **layout)
        code = refused(client, "migrateSegments", source.recording_id, other.recording_id)
        assert code == GENERIC, name
    stream = record(client, 3061, 1024, start_position=TERM)
    assert refused(client, "migrateSegments", source.recording_id, stream.recording_id) == GENERIC
    live = record(client, 3062, TERM, live=True)
    follower = record(client, 3063, 1024, start_position=TERM)
    assert refused(client, "migrateSegments", live.recording_id, follower.recording_id) == GENERIC
    live.stop(client)
    client.call("stopRecording", "aeron:ipc", 3062)
    half = record(client, 3064, 1024)
    rest = record(client, 3064, 1024, start_position=1024)
    assert refused(client, "migrateSegments", half.recording_id, rest.recording_id) == GENERIC
    assert positions(client, source) == (0, TERM)
