"""Segments detached, deleted, purged, attached and migrated, as a Java client sees it.

Each test runs on our daemon and on the Java archive.
"""

from __future__ import annotations

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


def test_detaching_moves_the_start_and_retains_the_files(either: Any, client: JavaClient) -> None:
    """The start position moves; the files remain until they are deleted, which is signalled."""
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


def test_a_gap_among_detached_segments_is_counted(either: Any, client: JavaClient) -> None:
    """All segments from the first file to the start count, missing ones as well."""
    stream = record(client, 3003, 3 * TERM + 1024)
    client.call("detachSegments", stream.recording_id, 3 * TERM)
    Path(either.archive_dir, f"{stream.recording_id}-{TERM}.rec").unlink()
    assert client.call("deleteDetachedSegments", stream.recording_id) == 3
    signals_until(client, stream.recording_id, "DELETE")
    assert files_of(either, stream) == [3]


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
def test_unknown_recordings(client: JavaClient, method: str, more: list[int]) -> None:
    assert refused(client, method, NOBODY, *more) == UNKNOWN_RECORDING


def test_migrating_to_an_unknown_recording(client: JavaClient) -> None:
    source = record(client, 3010, TERM)
    assert refused(client, "migrateSegments", source.recording_id, NOBODY) == UNKNOWN_RECORDING


def test_purging_detaches_and_deletes(either: Any, client: JavaClient) -> None:
    """The segments before the new start are deleted before the signal."""
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


def test_the_last_segment_of_a_live_recording_remains(either: Any, client: JavaClient) -> None:
    """Segments up to the one being written can be purged; the recording continues."""
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


def test_a_replay_protects_its_segments(either: Any, client: JavaClient) -> None:
    """A replay protects the segment of its position and later ones."""
    stream = record(client, 3024, 4 * TERM)
    # Only the first message is polled: the replay stays within a term.
    subscription = client.add_subscription("aeron:ipc", 3025)
    replay = client.call("startReplay", stream.recording_id, TERM, -2, "aeron:ipc", 3025)
    client.poll(subscription, 1)
    assert refused(client, "purgeSegments", stream.recording_id, 3 * TERM) == GENERIC
    client.call("detachSegments", stream.recording_id, TERM)
    assert positions(client, stream)[0] == TERM
    client.poll(subscription, 4 * 64)
    client.call("stopReplay", replay)
    client.close_resource(subscription)

    def is_released() -> bool:
        try:
            client.call("detachSegments", stream.recording_id, 3 * TERM)
        except JavaArchiveException:
            return False
        return True

    await_true(is_released)
    assert positions(client, stream)[0] == 3 * TERM


# ---- attach --------------------------------------------------------------------------------------


def test_attaching_detached_segments(client: JavaClient) -> None:
    """All contiguous files before the start are attached; their messages can be replayed."""
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
    """The first segment of a stream that was joined late begins with zeros."""
    stream = record(client, 3033, 2 * TERM, start_position=TERM + 40 * 1024)
    client.call("detachSegments", stream.recording_id, 3 * TERM)
    assert client.call("attachSegments", stream.recording_id) == 2
    assert positions(client, stream) == (TERM + 40 * 1024, 3 * TERM + 40 * 1024)
    assert client.call("attachSegments", stream.recording_id) == 0


# ---- migrate -------------------------------------------------------------------------------------


def test_migrating_to_the_recording_that_follows(either: Any, client: JavaClient) -> None:
    """The second recording starts at the first one's start; the first is empty, without files."""
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
    """The first recording ends at the second one's end."""
    first = record(client, 3052, 2 * TERM)
    second = record(client, 3052, TERM + 1024, start_position=2 * TERM)
    # An archive may have created the next file.
    Path(either.archive_dir, f"{first.recording_id}-{2 * TERM}.rec").unlink(missing_ok=True)
    client.call("takeSignals")
    assert client.call("migrateSegments", second.recording_id, first.recording_id) == 2
    signals_until(client, second.recording_id, "DELETE")
    assert files_of(either, second) == []
    assert files_of(either, first) == [0, 1, 2, 3]
    assert positions(client, second) == (2 * TERM, 2 * TERM)
    assert positions(client, first) == (0, 3 * TERM + 1024)


def test_migrating_to_a_live_recording(either: Any, client: JavaClient) -> None:
    """Earlier segments can be migrated to a recording that continues."""
    first = record(client, 3053, TERM)
    second = record(client, 3053, 1024, start_position=TERM, live=True)
    assert client.call("migrateSegments", first.recording_id, second.recording_id) == 1
    assert positions(client, second) == (0, -1)
    second.offer(client, TERM)
    second.stop(client)
    client.call("stopRecording", "aeron:ipc", 3053)
    assert files_of(either, second) == [0, 1, 2]
    assert positions(client, second) == (0, 2 * TERM + 1024)


def test_missing_and_existing_files_refuse_a_migration(either: Any, client: JavaClient) -> None:
    """Nothing is changed when a source file is missing or a target file exists."""
    first = record(client, 3054, 2 * TERM)
    second = record(client, 3054, TERM, start_position=2 * TERM)
    obstacle = Path(either.archive_dir, f"{second.recording_id}-{TERM}.rec")
    obstacle.write_bytes(bytes(TERM))
    call = ("migrateSegments", first.recording_id, second.recording_id)
    assert refused(client, *call) == GENERIC
    obstacle.unlink()
    away = Path(either.archive_dir, f"{first.recording_id}-0.rec")
    content = away.read_bytes()
    away.unlink()
    assert refused(client, *call) == GENERIC
    assert positions(client, first) == (0, 2 * TERM)
    assert positions(client, second) == (2 * TERM, 3 * TERM)
    assert 1 in files_of(either, first)
    assert 1 not in files_of(either, second)
    away.write_bytes(content)
    assert client.call(*call) == 2
