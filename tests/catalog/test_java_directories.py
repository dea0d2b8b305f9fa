"""Directories of the Java archive opened by our archive, and the reverse."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.beside import working
from support.builders.built_archive import add_entry
from support.builders.mark_files import acquire, in_use, leave
from support.builders.segment_builder import SegmentBuilder, crc32
from support.damage.overwriting import overwrite
from support.jvm.java import HarnessError, JavaArchive, JavaClient, archive_tool

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.maintenance.verify import run_verification
from aerotape.catalog.mark.layout import ACTIVITY_TIMESTAMP, CLAIMED_TIMESTAMP_MS, FILE_NAME
from aerotape.catalog.mark.mark_file import MarkFile
from aerotape.catalog.recovery.refresh import Outcome, refresh
from aerotape.errors import ArchiveInUseError
from aerotape.frame_header import ChecksumName
from aerotape.replay.offline.directory import open_directory

pytestmark = pytest.mark.jvm

StartClient = Callable[[Path | str], JavaClient]
IPC = "aeron:ipc?term-length=65536"
CRC_32 = "io.aeron.archive.checksum.Crc32"
NOW_MS = 1_700_000_000_123


def record(client: JavaClient, archive: JavaArchive, stream_id: int, count: int) -> dict[str, Any]:
    """Record messages of mixed sizes until all are written; leave the recording active."""
    client.connect(archive.control_channel)
    client.call("startRecording", IPC, stream_id, "LOCAL")
    publication = client.add_exclusive_publication(IPC, stream_id)
    counter = client.recording_counter(publication["sessionId"])
    offered = client.offer(publication, seed=stream_id, count=count, max_length=4000)
    client.await_counter(counter["counterId"], offered["position"])
    return {
        "id": counter["recordingId"],
        "position": offered["position"],
        "session_id": publication["sessionId"],
    }


def test_a_directory_of_a_running_java_archive_is_read(
    java_archive: JavaArchive, java_client: StartClient
) -> None:
    """Offline reading sees a live recording up to its last frame, then its stop position."""
    client = java_client(java_archive.aeron_dir)
    made = record(client, java_archive, 1001, 200)
    directory = open_directory(java_archive.archive_dir)
    (recording,) = directory.recordings()
    assert recording.descriptor.is_active
    assert recording.is_being_written
    assert recording.recorded_position == made["position"]
    assert recording.descriptor.session_id == made["session_id"]
    bases = [segment.base_position for segment in recording.segment_files()]
    assert bases == list(range(0, made["position"], 65_536))
    (check,) = run_verification(directory, all_segments=True).checks
    assert (check.problems, check.segments) == ((), len(bases))
    assert check.frames > 200

    client.call("stopRecording", IPC, 1001)
    # The Java archive responds first and writes the stop position a little later.
    deadline = time.monotonic() + 60
    while directory.recording(made["id"]).descriptor.is_active and time.monotonic() < deadline:
        time.sleep(0.01)
    stopped = directory.recording(made["id"])
    assert stopped.recorded_position == stopped.descriptor.stop_position == made["position"]
    info = directory.mark_file()
    assert info.is_active()
    assert info.header.control_channel == java_archive.control_channel
    assert str(info.header.pid) == archive_tool(java_archive.archive_dir, "pid").stdout.strip()


def test_a_running_java_archive_reserves_its_directory(java_archive: JavaArchive) -> None:
    """While it runs its directory is in use; after a clean stop it is free at once."""
    with pytest.raises(ArchiveInUseError) as raised:
        acquire(java_archive.archive_dir)
    assert raised.value.pid == java_archive.process.pid
    java_archive.stop()
    with in_use(java_archive.archive_dir):
        assert open_directory(java_archive.archive_dir).mark_file().header.archive_id == 42


def test_a_java_archive_refuses_a_directory_in_use(tmp_path: Path, aeron_dir: Path) -> None:
    """A Java archive refuses a directory that our archive uses, and ArchiveTool reports the
    process."""
    directory = tmp_path / "archive"
    directory.mkdir()
    Catalog.open(directory, create=True).close()
    with in_use(directory) as ours:
        ours.record_error("a fault of ours", NOW_MS)
        with signs_of_life(ours), pytest.raises(HarnessError, match="active"):
            JavaArchive(directory, aeron_dir).start()
        described = archive_tool(directory, "describe")
        assert "archiveId=42|" in described.stdout
        assert "controlChannel='aeron:udp?endpoint=localhost:8010'" in described.stdout
        assert archive_tool(directory, "pid").stdout.strip() == str(ours_pid(directory))
        assert "a fault of ours" in archive_tool(directory, "errors").stdout
    with JavaArchive(directory, aeron_dir) as theirs:
        assert open_directory(directory).mark_file().header.pid == theirs.process.pid


def test_both_archives_respect_a_claim(tmp_path: Path, aeron_dir: Path) -> None:
    """The timestamp that Java writes while it takes over a directory, of a process that has
    ended."""
    leave(tmp_path)
    with (tmp_path / FILE_NAME).open("r+b") as file:
        file.seek(ACTIVITY_TIMESTAMP)
        file.write(CLAIMED_TIMESTAMP_MS.to_bytes(8, "little"))
        file.write(bytes(8) + (1 << 30).to_bytes(8, "little"))
    with pytest.raises(HarnessError, match="active"):
        JavaArchive(tmp_path, aeron_dir).start()
    with pytest.raises(ArchiveInUseError, match="starting"):
        acquire(tmp_path)


@contextmanager
def signs_of_life(ours: MarkFile) -> Iterator[None]:
    """Refresh the activity timestamp as a conductor does, because the JVM may start slowly."""

    def beat(done: threading.Event) -> None:
        while not done.wait(0.2):
            ours.update_activity(time.time_ns() // 1_000_000)

    with working(beat):
        yield


def ours_pid(directory: Path) -> int:
    return MarkFile.read(directory).header.pid


@pytest.mark.parametrize("checksum", ["none", "crc-32"])
def test_a_killed_java_archive_is_repaired_as_by_archive_tool(
    tmp_path: Path, aeron_dir: Path, java_client: StartClient, checksum: ChecksumName
) -> None:
    """After SIGKILL our refresh and Java's ArchiveTool find the same stop position."""
    properties = {"aeron.archive.record.checksum": CRC_32} if checksum != "none" else {}
    directory = tmp_path / "archive"
    with JavaArchive(directory, aeron_dir, properties=properties) as archive:
        client = java_client(aeron_dir)
        made = record(client, archive, 1002, 150)
        archive.kill()
    theirs = tmp_path / "theirs"
    shutil.copytree(directory, theirs)
    segments = {path.name: path.read_bytes() for path in directory.glob("*.rec")}
    with Catalog.open(directory, checksum=checksum) as catalog:
        (outcome,) = refresh(catalog, directory, checksum=checksum, now_ms=NOW_MS)
        assert (outcome.outcome, outcome.stop_position) == (Outcome.REPAIRED, made["position"])
        assert catalog.descriptor(made["id"]).stop_timestamp_ms == NOW_MS
    assert {path.name: path.read_bytes() for path in directory.glob("*.rec")} == segments
    checked = archive_tool(theirs, "verify", answers="y\n")
    assert f"(recordingId={made['id']}) OK" in checked.stdout
    assert open_directory(theirs).recording(made["id"]).recorded_position == made["position"]


def test_java_accepts_a_repaired_directory(
    tmp_path: Path, aeron_dir: Path, java_client: StartClient
) -> None:
    """With marks, quarantine and checksums in it: verified by ArchiveTool, replayed by Java."""
    directory = tmp_path / "archive"
    directory.mkdir()
    stream = SegmentBuilder(checksum=crc32)
    with Catalog.open(directory, create=True, checksum="crc-32") as catalog:
        add_entry(catalog, stream)
        payloads = [bytes([65 + i % 26]) * (i * 37 % 4000 + 1) for i in range(100)]
        for payload in payloads:
            stream.message(payload)
        end = stream.position
        stream.frame(b"torn" * 300)
        stream.write(directory)
        last = stream.segment_path(directory, end)
        overwrite(last, end % stream.segment_length + 900, bytes(400))
        (outcome,) = refresh(catalog, directory, checksum="crc-32", now_ms=NOW_MS)
        assert (outcome.outcome, outcome.stop_position) == (Outcome.SUSPECT_TORN_TAIL, end)
        assert len(outcome.findings) == 1
    leave(directory)
    checked = archive_tool(directory, "verify", "-a", "-checksum", CRC_32)
    assert "(recordingId=0) OK" in checked.stdout, checked.stdout + checked.stderr
    properties = {"aeron.archive.replay.checksum": CRC_32}
    with JavaArchive(directory, aeron_dir, properties=properties) as archive:
        client = java_client(aeron_dir)
        client.connect(archive.control_channel)
        [row] = client.call("listRecordings", 0, 10)
        assert (row["recordingId"], row["stopPosition"]) == (0, end)
        replay = client.call("replay", 0, 0, end, "aeron:ipc", 2001)
        polled = client.poll(replay, 101, details=True)
        assert [bytes.fromhex(m["payload"]) for m in polled["messages"]] == payloads
    assert (directory / "aerotape-0.suspect").exists()
