"""Directories with extended, truncated and purged recordings, opened by the other archive.

States after a kill are built step by step, with some of the archive's changes missing.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import ARCHIVES
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive, age_mark_file
from support.jvm import java
from support.jvm.java import JavaClient
from support.jvm.java_streams import (
    IPC,
    SEGMENT_LENGTH,
    Signals,
    channel_at,
    descriptor,
    new_stream_id,
    record,
    segment_bases,
)
from support.model.messages import digest, messages

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState

pytestmark = pytest.mark.jvm

CHECKED = {
    "aeron.archive.record.checksum": "io.aeron.archive.checksum.Crc32c",
    "aeron.archive.replay.checksum": "io.aeron.archive.checksum.Crc32c",
    "aeron.archive.low.storage.space.threshold": "1m",
}


@contextmanager
def client_of(
    kind: str, archive_dir: Path, aeron_dir: Path, properties: dict[str, str] | None = None
) -> Iterator[JavaClient]:
    """Run one archive or the other on a directory, with a Java client connected to it."""
    properties = {"aeron.archive.low.storage.space.threshold": "1m", **(properties or {})}
    with (
        ARCHIVES[kind](archive_dir, aeron_dir, properties=properties) as archive,
        JavaClient(archive.aeron_dir) as client,
    ):
        client.connect(archive.control_channel)
        yield client


def extend(client: JavaClient, recording_id: int, *, seed: int, first_index: int) -> int:
    """Extend a recording by 100 messages; return where it then stops."""
    row = descriptor(client, recording_id)
    stream_id = row["streamId"]
    client.call("extendRecording", recording_id, IPC, stream_id, "LOCAL")
    publication = client.add_exclusive_publication(channel_at(row, row["stopPosition"]), stream_id)
    counter = client.recording_counter(publication["sessionId"])
    offered = client.offer(
        publication, seed=seed, first_index=first_index, count=100, max_length=4000
    )
    end: int = offered["position"]
    assert client.await_counter(counter["counterId"], end) == end
    client.call("stopRecording", IPC, stream_id)
    await_true(lambda: client.call("getStopPosition", recording_id) == end)
    client.close_resource(publication)
    return end


def replay(client: JavaClient, recording_id: int, *, details: bool = False) -> dict[str, Any]:
    """Replay a whole recording."""
    end = client.call("getStopPosition", recording_id)
    subscription = client.call("replay", recording_id, 0, end, "aeron:ipc", new_stream_id())
    played = client.poll(subscription, 100_000, details=details)
    client.close_resource(subscription)
    return played


def is_verified(archive_dir: Path, checksum: str = "") -> bool:
    """Return whether ArchiveTool verifies the directory without an error."""
    done: subprocess.CompletedProcess[str] = java.archive_tool(
        archive_dir, "verify", "-a", *(["-checksum", checksum] if checksum else []), answers="y\n"
    )
    return done.returncode == 0 and "(INVALID)" not in done.stdout + done.stderr


@pytest.mark.parametrize("first, second", [("aerotape", "java"), ("java", "aerotape")])
def test_the_other_archive_takes_over(
    tmp_path: Path, aeron_dir: Path, first: str, second: str
) -> None:
    """With checksums, each archive extends, truncates and purges recordings of the other."""
    archive_dir = tmp_path / "archive"
    with client_of(first, archive_dir, aeron_dir, CHECKED) as client:
        stream, gone = record(client, count=200), record(client, count=100)
        seed, recording_id = stream.publication["streamId"], stream.recording_id
        extend(client, recording_id, seed=seed, first_index=200)
        ends = [each["position"] for each in replay(client, recording_id, details=True)["messages"]]
        signals = Signals(client)
        client.call("truncateRecording", recording_id, ends[249])
        client.call("purgeRecording", gone.recording_id)
        signals.await_of(gone.recording_id, 3)
        signals.await_of(recording_id, 5)
    assert is_verified(archive_dir, CHECKED["aeron.archive.record.checksum"])
    assert segment_bases(archive_dir, gone.recording_id) == []

    with client_of(second, archive_dir, aeron_dir, CHECKED) as client:
        assert client.call("listRecording", gone.recording_id) == []
        assert replay(client, recording_id)["digest"] == digest(
            messages(seed, 250, max_length=4000)
        )
        extend(client, recording_id, seed=seed, first_index=250)
        played = replay(client, recording_id)
        assert (played["count"], played["digest"]) == (
            350,
            digest(messages(seed, 350, max_length=4000)),
        )
        assert client.call("truncateRecording", recording_id, ends[99]) > 0
        Signals(client).await_of(recording_id, 3)
    assert is_verified(archive_dir, CHECKED["aeron.archive.record.checksum"])
    with client_of(first, archive_dir, aeron_dir, CHECKED) as client:
        assert replay(client, recording_id)["digest"] == digest(
            messages(seed, 100, max_length=4000)
        )


class Cut:
    """A directory in which a truncation was interrupted after the catalog's update.

    Attributes:
        retained: messages before the new stop position.
    """

    def __init__(self, archive_dir: Path, aeron_dir: Path, position: int | None = None) -> None:
        self.archive_dir = archive_dir
        with client_of("aerotape", archive_dir, aeron_dir) as client:
            stream = record(client, count=300)
            self.seed: int = stream.publication["streamId"]
            self.recording_id = stream.recording_id
            played = replay(client, stream.recording_id, details=True)
        ends = [each["position"] for each in played["messages"]]
        self.position = ends[120] if position is None else position
        self.retained = sum(end <= self.position for end in ends)
        self.files = segment_bases(archive_dir, self.recording_id)
        with Catalog.open(archive_dir) as catalog:
            catalog.set_stop_position(self.recording_id, self.position)

    def digest(self, count: int) -> str:
        return digest(messages(self.seed, count, max_length=4000))


@pytest.mark.parametrize("position", [None, 2 * SEGMENT_LENGTH, 0])
def test_an_extension_clears_the_remains_of_a_truncation(
    tmp_path: Path, aeron_dir: Path, position: int | None
) -> None:
    """The stale data does not reappear, even after a kill during the extension."""
    archive_dir = tmp_path / "archive"
    cut = Cut(archive_dir, aeron_dir, position)
    recording_id = cut.recording_id
    with client_of("java", archive_dir, aeron_dir) as client:
        # Both archives accept that.
        assert client.call("getStopPosition", recording_id) == cut.position
    killed = AerotapeArchive(
        archive_dir,
        aeron_dir,
        properties={"aeron.archive.low.storage.space.threshold": "1m"},
    )
    with killed as archive, JavaClient(archive.aeron_dir) as client:
        client.connect(archive.control_channel)
        row = descriptor(client, recording_id)
        client.call("extendRecording", recording_id, IPC, row["streamId"], "LOCAL")
        publication = client.add_exclusive_publication(
            channel_at(row, cut.position), row["streamId"]
        )
        counter = client.recording_counter(publication["sessionId"])
        offered = client.offer(
            publication, seed=cut.seed, first_index=cut.retained, count=3, max_length=400
        )
        client.await_counter(counter["counterId"], offered["position"])
        archive.kill()
    age_mark_file(archive_dir)
    with client_of("aerotape", archive_dir, aeron_dir) as client:
        assert client.call("getStopPosition", recording_id) == offered["position"]
        assert replay(client, recording_id)["count"] == cut.retained + 3
        end = extend(client, recording_id, seed=cut.seed, first_index=0)
        assert end > offered["position"] + 2 * SEGMENT_LENGTH
        assert replay(client, recording_id)["count"] == cut.retained + 103
    assert is_verified(archive_dir)


def test_an_interrupted_purge_is_completed(tmp_path: Path, aeron_dir: Path) -> None:
    """Our next start deletes the remaining files, except those with frames of another recording;
    the Java archive accepts the directory.
    """
    archive_dir = tmp_path / "archive"
    with client_of("aerotape", archive_dir, aeron_dir) as client:
        stream, other = record(client, count=200), record(client, count=100)
        files = segment_bases(archive_dir, stream.recording_id)
    with Catalog.open(archive_dir) as catalog:
        catalog.change_state(stream.recording_id, RecordingState.DELETED)
    (archive_dir / f"{stream.recording_id}-{files[0]}.rec").unlink()
    with client_of("java", archive_dir, aeron_dir) as client:
        assert [row["recordingId"] for row in client.call("listRecordings", 0, 10)] == [
            other.recording_id
        ]
    assert segment_bases(archive_dir, stream.recording_id) == files[1:]
    mistaken = archive_dir / f"{stream.recording_id}-{files[0]}.rec"
    mistaken.write_bytes((archive_dir / f"{other.recording_id}-{files[0]}.rec").read_bytes())
    with client_of("aerotape", archive_dir, aeron_dir) as client:
        await_true(lambda: segment_bases(archive_dir, stream.recording_id) == files[:1])
        assert replay(client, other.recording_id)["count"] == 100
    mistaken.unlink()
    assert is_verified(archive_dir)


def test_a_kill_during_a_truncation(tmp_path: Path, aeron_dir: Path) -> None:
    """After a kill at any point the recording ends at the old or new position, and can be
    extended."""
    archive_dir = tmp_path / "archive"
    position = 3 * SEGMENT_LENGTH
    with client_of("aerotape", archive_dir, aeron_dir) as client:
        streams = [record(client, count=300) for _ in range(4)]
    archive = AerotapeArchive(
        archive_dir,
        aeron_dir,
        properties={"aeron.archive.low.storage.space.threshold": "1m"},
    )
    for stream in streams:
        archive.start()
        with JavaClient(archive.aeron_dir) as client:
            client.connect(archive.control_channel)
            client.call("truncateRecording", stream.recording_id, position)
            archive.kill()
        age_mark_file(archive_dir)
    for kind in ("java", "aerotape"):
        with client_of(kind, archive_dir, aeron_dir) as client:
            for stream in streams:
                assert client.call("getStopPosition", stream.recording_id) == position
                assert replay(client, stream.recording_id)["count"] > 50
    with client_of("aerotape", archive_dir, aeron_dir) as client:
        for stream in streams:
            extend(client, stream.recording_id, seed=1, first_index=0)


@pytest.mark.parametrize("first, second", [("aerotape", "java"), ("java", "aerotape")])
def test_an_extension_that_is_killed(
    tmp_path: Path, aeron_dir: Path, first: str, second: str
) -> None:
    """The other archive finds the stop position, and extends from there."""
    archive_dir = tmp_path / "archive"
    made = AerotapeArchive if first == "aerotape" else java.JavaArchive
    properties = {"aeron.archive.low.storage.space.threshold": "1m"}
    killed = made(archive_dir, aeron_dir, properties=properties)
    with killed as archive, JavaClient(archive.aeron_dir) as client:
        client.connect(archive.control_channel)
        stream = record(client, count=100)
        seed, recording_id = stream.publication["streamId"], stream.recording_id
        row = descriptor(client, recording_id)
        client.call("extendRecording", recording_id, IPC, seed, "LOCAL")
        publication = client.add_exclusive_publication(channel_at(row, stream.position), seed)
        counter = client.recording_counter(publication["sessionId"])
        offered = client.offer(
            publication, seed=seed, first_index=100, count=100, min_length=100, max_length=1000
        )
        client.await_counter(counter["counterId"], offered["position"])
        archive.kill()
    age_mark_file(archive_dir)
    expected = [*messages(seed, 100, max_length=4000)]
    expected += messages(seed, 100, min_length=100, max_length=1000, first_index=100)
    with client_of(second, archive_dir, aeron_dir) as client:
        assert client.call("getStopPosition", recording_id) == offered["position"]
        assert replay(client, recording_id)["digest"] == digest(expected)
        extend(client, recording_id, seed=seed, first_index=200)
        expected += messages(seed, 100, max_length=4000, first_index=200)
        assert replay(client, recording_id)["digest"] == digest(expected)
    assert is_verified(archive_dir)
