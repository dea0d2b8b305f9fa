"""One directory, two archives: each opens the directory of the other and continues it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import KINDS
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive, age_mark_file
from support.jvm.java import JavaArchive, JavaClient, archive_tool
from support.model.messages import digest, messages

from aerotape import connect
from aerotape.aeron import ADMIN_ACTION
from aerotape.replay.offline.directory import open_directory

pytestmark = pytest.mark.jvm

StartArchive = Callable[..., AerotapeArchive | JavaArchive]
OTHER = {"java": "aerotape", "aerotape": "java"}
CRC_32C = {"aeron.archive.record.checksum": "io.aeron.archive.checksum.Crc32c"}
CRC_32C_REPLAY = {**CRC_32C, "aeron.archive.replay.checksum": "io.aeron.archive.checksum.Crc32c"}
COUNT = 300
MAX_LENGTH = 6_000


def record(client: JavaClient, stream_id: int, seed: int) -> dict[str, Any]:
    """Record a stream over several segments; the recording stays live."""
    channel = "aeron:ipc?term-length=64k"
    client.call("startRecording", channel, stream_id, "LOCAL")
    publication = client.add_exclusive_publication(channel, stream_id)
    counter = client.recording_counter(publication["sessionId"])
    offered = client.offer(publication, seed=seed, count=COUNT, max_length=MAX_LENGTH)
    reached = client.await_counter(counter["counterId"], offered["position"])
    assert reached == offered["position"] > 3 * 65_536
    return {"publication": publication, "id": counter["recordingId"], **offered}


def listed(client: JavaClient) -> list[dict[str, Any]]:
    volatile = {"controlSessionId", "correlationId"}
    return [
        {name: row[name] for name in row.keys() - volatile}
        for row in client.call("listRecordings", 0, 100)
    ]


def changes(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> list[Any]:
    """Return the differences between two listings: recording, field, old value, new value."""
    return [
        (old["recordingId"], name, old[name], new[name])
        for old, new in zip(before, now, strict=True)
        for name in old
        if old[name] != new[name]
    ]


def replayed(client: JavaClient, recording_id: int, end: int) -> str:
    replay = client.call("replay", recording_id, 0, end, "aeron:ipc?term-length=64k", 99)
    polled = client.poll(replay, COUNT + 1)
    client.close_resource(replay)
    assert polled["ended"]
    return str(polled["digest"])


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("properties", [{}, CRC_32C_REPLAY], ids=["plain", "crc-32c"])
def test_the_other_archive_takes_over(
    start_archive: StartArchive, tmp_path: Path, first: str, properties: dict[str, str]
) -> None:
    """After a clean stop the other archive lists, replays and extends the first one's recordings,
    and then the first one opens the directory again."""
    made: list[dict[str, Any]] = []
    before: list[dict[str, Any]] = []
    for seed, kind in enumerate((first, OTHER[first], first)):
        with (
            start_archive(kind, properties=properties) as archive,
            JavaClient(archive.aeron_dir) as client,
        ):
            client.connect(archive.control_channel)
            now = listed(client)
            assert changes(before, now) == []
            for each in made:
                assert replayed(client, each["id"], each["position"]) == each["digest"]
            made.append(record(client, 10 + seed, seed))
            assert made[-1]["id"] == seed
            client.call("stopRecording", "aeron:ipc?term-length=64k", 10 + seed)
            await_true(lambda: client.call("getStopPosition", seed) != -1)  # noqa: B023
            before = listed(client)
    directory = open_directory(tmp_path / "archive")
    for seed, recording in enumerate(directory.recordings()):
        assert recording.descriptor.stop_position == made[seed]["position"]
        assert digest(
            message.payload
            for message in recording.messages(checksum="crc-32c" if properties else "none")
        ) == digest(messages(seed, COUNT, max_length=MAX_LENGTH))
    assert len(directory.recordings()) == 3


@pytest.mark.parametrize("first", KINDS)
def test_the_other_archive_takes_over_after_a_crash(
    start_archive: StartArchive, tmp_path: Path, first: str
) -> None:
    """Killed while recording: the other archive finds the stop position and replays to it."""
    archive = start_archive(first, properties=CRC_32C)
    with JavaClient(archive.aeron_dir) as client:
        client.connect(archive.control_channel)
        made = record(client, 5, 1)
        archive.kill()
    archive.stop()
    age_mark_file(tmp_path / "archive")
    with (
        start_archive(OTHER[first], properties=CRC_32C) as successor,
        JavaClient(successor.aeron_dir) as client,
    ):
        client.connect(successor.control_channel)
        assert client.call("getStopPosition", made["id"]) == made["position"]
        assert replayed(client, made["id"], made["position"]) == made["digest"]


def test_our_directory_is_read_while_java_records(
    start_archive: StartArchive, tmp_path: Path
) -> None:
    """A live Java recording is read offline up to its current end."""
    archive = start_archive("java")
    with JavaClient(archive.aeron_dir) as client:
        client.connect(archive.control_channel)
        made = record(client, 5, 2)
        [recording] = open_directory(tmp_path / "archive").recordings()
        assert recording.descriptor.stop_position == -1
        assert recording.recorded_position == made["position"]
        payloads = [message.payload for message in recording.messages()]
    assert payloads == list(messages(2, COUNT, max_length=MAX_LENGTH))


@pytest.mark.parametrize("live", [False, True], ids=["stopped", "running"])
def test_archive_tool_describes_our_directory(
    start_archive: StartArchive, tmp_path: Path, live: bool
) -> None:
    """ArchiveTool reports our recordings, process id and mark file, also while we run."""
    archive = start_archive("aerotape")
    with JavaClient(archive.aeron_dir) as client:
        client.connect(archive.control_channel)
        made = record(client, 5, 2)
        if not live:
            client.call("stopRecording", "aeron:ipc?term-length=64k", 5)
            archive.stop()
        described = archive_tool(tmp_path / "archive", "describe")
        assert described.returncode == 0, described.stderr
        stop = -1 if live else made["position"]
        assert f"stopPosition={stop}" in described.stdout
        assert "streamId=5" in described.stdout
        pid = archive_tool(tmp_path / "archive", "pid").stdout.split()
        if live:
            assert pid[-1] == str(archive.process.pid)


def test_archive_tool_verifies_our_checksums(start_archive: StartArchive, tmp_path: Path) -> None:
    """ArchiveTool accepts the CRC-32C of each of our frames, and reports a damaged one."""
    with (
        start_archive("aerotape", properties=CRC_32C) as archive,
        JavaClient(archive.aeron_dir) as client,
    ):
        client.connect(archive.control_channel)
        record(client, 5, 2)
        client.call("stopRecording", "aeron:ipc?term-length=64k", 5)
    verify = ("verify", "-a", "-checksum", "io.aeron.archive.checksum.Crc32c")
    good = archive_tool(tmp_path / "archive", *verify, answers="y\n")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "(recordingId=0) OK" in good.stdout

    with (tmp_path / "archive" / "0-65536.rec").open("r+b") as segment:
        segment.seek(40)
        byte = segment.read(1)
        segment.seek(40)
        segment.write(bytes([byte[0] ^ 1]))
    bad = archive_tool(tmp_path / "archive", *verify, answers="y\n")
    assert "(recordingId=0) OK" not in bad.stdout
    assert "0-65536.rec) ERR: checksum failed" in bad.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_archive_tool_truncates_padding_at_the_end(
    start_archive: StartArchive, tmp_path: Path, kind: str
) -> None:
    """Either archive records padding with its session id and no checksum, its header only. So
    ArchiveTool takes one that ends a recording and crosses pages for a torn frame."""
    term_length, session_id = 65_536, 0x01020304
    channel = f"aeron:ipc?term-length=64k|session-id={session_id}"
    properties = {**CRC_32C, "aeron.archive.segment.file.length": str(2 * term_length)}
    with (
        start_archive(kind, properties=properties) as archive,
        connect(
            aeron_dir=archive.aeron_dir, control_request_channel=archive.control_channel
        ) as client,
    ):
        client.start_recording(channel, 5)
        publication = client.aeron.add_exclusive_publication(channel, 5)
        padding = 0
        for _ in range(55):
            padding = publication.send(bytes(1_000))
        # It does not fit into the rest of the term, and is not offered again.
        while publication.offer(bytes(8_000)) != ADMIN_ACTION:
            pass
        await_true(lambda: client.recording_position(0) == term_length)
        publication.close()
        await_true(lambda: client.stop_position(0) == term_length)
    segment = (tmp_path / "archive" / "0-0.rec").read_bytes()
    frame = struct.unpack_from("<iBBHiiii", segment, padding)
    assert frame[0] == term_length - padding > 4_096
    assert (frame[3], frame[4], frame[5]) == (0, padding, session_id)
    assert not any(segment[padding + 32 :])
    verify = ("verify", "-a", "-checksum", "io.aeron.archive.checksum.Crc32c")
    for answer, stop_position in (("n\n", term_length), ("y\n", padding)):
        done = archive_tool(tmp_path / "archive", *verify, answers=answer)
        assert "(recordingId=0) OK" in done.stdout, done.stdout + done.stderr
        [recording] = open_directory(tmp_path / "archive").recordings()
        assert recording.descriptor.stop_position == stop_position
