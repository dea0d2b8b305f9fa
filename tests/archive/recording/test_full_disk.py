"""A full disk (a real one): recordings end at a frame, and resume once there is space."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import KINDS
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive
from support.damage.full_disk_rig import IPC, MEBIBYTE, PROPERTIES, Rig, content
from support.damage.small_disk import SmallDisk, small_disk
from support.jvm import java

import aerotape
from aerotape.catalog.mark.mark_file import MarkFile
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode, RecordingSignal
from aerotape.counter_keys import CounterType
from aerotape.protocol import ErrorCode

NO_SPACE = int(ErrorCode.STORAGE_SPACE)


@pytest.mark.parametrize("kind", KINDS)
def test_a_recording_that_fills_the_disk(
    kind: str, disk: SmallDisk, start_rig: Callable[..., Rig], tmp_path: Path
) -> None:
    """Both archives send an error with the code for space and a stop signal, and refuse new
    recordings meanwhile. The archive continues; with space, it records again.
    """
    # Java's mark file has holes: writing its error log fails on a full disk, too.
    rig = start_rig(kind, {"aeron.archive.mark.file.dir": str(tmp_path / "mark")})
    correlation_id, publication = rig.start()
    rig.offer(publication, 0, 10)
    disk.fill(leave_bytes=128 << 10)
    rig.offer_until_error(publication, correlation_id, 10)
    assert rig.error(correlation_id).relevant_id == NO_SPACE
    stopped = rig.signal(correlation_id, RecordingSignal.STOP)
    assert rig.descriptor(stopped.recording_id).stop_position == stopped.position
    refused = rig.try_start(999)
    assert (refused.code, refused.relevant_id) == (ControlResponseCode.ERROR, NO_SPACE)
    disk.clear()
    again, publication = rig.start()
    rig.offer(publication, 0, 5)
    await_true(lambda: rig.value(100) == publication.position)
    assert rig.raw.call(codecs.StopRecordingRequest, stream_id=102, channel=IPC)
    last = rig.signal(again, RecordingSignal.STOP)
    assert last.position == publication.position


@pytest.mark.jvm
@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"aeron.archive.record.checksum": "crc-32c", "aeron.archive.replay.checksum": "crc-32c"},
        {
            "aeron.archive.file.sync.level": "1",
            "aeron.archive.catalog.file.sync.level": "1",
            "aeron.archive.threading.mode": "SHARED",
        },
    ],
    ids=["plain", "checksums", "synced"],
)
def test_only_that_recording_ends(
    properties: dict[str, str], disk: SmallDisk, start_rig: Callable[..., Rig]
) -> None:
    """Our recording ends at its last complete frame; other recordings and replays continue."""
    rig = start_rig(properties=properties)
    _, finished = rig.start()
    rig.offer(finished, 0, 100)
    await_true(lambda: rig.value(100) == finished.position)
    stop = rig.raw.call(codecs.StopRecordingRequest, stream_id=101, channel=IPC)
    assert stop.code is ControlResponseCode.OK
    await_true(lambda: not rig.aeron.counters().rows(100))
    _, quiet = rig.start()
    rig.offer(quiet, 0, 3)
    await_true(lambda: rig.value(100) == quiet.position)
    correlation_id, failing = rig.start()
    await_true(lambda: len(rig.aeron.counters().rows(100)) == 2)
    assert rig.value(CounterType.LOW_STORAGE) == 0

    disk.fill(leave_bytes=300 << 10)
    errors_before = rig.value(CounterType.ERRORS)
    sent = rig.offer_until_error(failing, correlation_id)
    error = rig.error(correlation_id)
    assert error.relevant_id == NO_SPACE
    assert "No space left on device" in error.error_message
    assert "free space in the archive directory" in error.error_message
    stopped = rig.signal(correlation_id, RecordingSignal.STOP)
    end = stopped.position
    assert (rig.descriptor(2).stop_position, stopped.recording_id) == (end, 2)
    # Every message up to the stop position, none after it.
    received = rig.messages(2, end)
    assert received == [content(index) for index in range(len(received))]
    assert 0 < len(received) <= sent
    assert f"position {end}" in error.error_message

    assert rig.value(CounterType.ERRORS) == errors_before + 1
    archive_dir = disk.path / "archive"
    await_true(lambda: any("No space" in each.text for each in MarkFile.read(archive_dir).errors))
    [retained] = [each for each in MarkFile.read(archive_dir).errors if "No space" in each.text]
    assert (retained.count, f"at position {end}" in retained.text) == (1, True)
    assert rig.value(CounterType.LOW_STORAGE) == 1
    assert rig.value(CounterType.RECORDING_SESSIONS) == 1
    assert rig.messages(0, finished.position) == [content(index) for index in range(100)]
    assert rig.try_start(555).relevant_id == NO_SPACE

    disk.clear()
    await_true(lambda: rig.value(CounterType.LOW_STORAGE) == 0)
    rig.offer(quiet, 3, 50)
    await_true(lambda: rig.value(100) == quiet.position)
    rig.start()
    archive = rig.archive
    ends = [finished.position, quiet.position, end]
    assert archive.stop() == 0
    lines = archive.log().splitlines()
    assert len([line for line in lines if "is low on space" in line]) == 1
    assert len([line for line in lines if "has space again" in line]) == 1
    assert len([line for line in lines if "recording failed" in line]) == 1
    assert "Traceback" not in archive.log()
    recordings = aerotape.open_directory(disk.path / "archive").recordings()
    assert [recording.descriptor.stop_position for recording in recordings][:3] == ends
    verified = java.archive_tool(disk.path / "archive", "verify", answers="y\n")
    assert "ERR" not in verified.stdout, verified.stdout


@pytest.mark.root
def test_no_space_for_the_next_segment(tmp_path: Path, aeron_dir: Path) -> None:
    """With space for bytes but not for another file, the recording ends with the last segment."""
    properties = {**PROPERTIES, "aeron.archive.segment.file.length": "65536"}
    with (
        small_disk(tmp_path / "disk", 8 * MEBIBYTE, ",nr_inodes=8") as disk,
        ExitStack() as stack,
    ):
        archive = stack.enter_context(
            AerotapeArchive(disk.path / "archive", aeron_dir, properties=properties)
        )
        rig = Rig(archive, stack)
        correlation_id, publication = rig.start()
        rig.offer_until_error(publication, correlation_id)
        assert rig.error(correlation_id).relevant_id == NO_SPACE
        stopped = rig.signal(correlation_id, RecordingSignal.STOP)
        assert stopped.position > 0 and stopped.position % 65_536 == 0
        received = rig.messages(0, stopped.position)
        assert received == [content(index) for index in range(len(received))]
        for segment in (disk.path / "archive").glob("0-*.rec"):
            segment.unlink()
        # There was space for bytes, so new recordings are not refused.
        assert rig.value(CounterType.LOW_STORAGE) == 0
        _, publication = rig.start()
        rig.offer(publication, 0, 1)
        await_true(lambda: rig.value(100) == publication.position)
        rig.raw.close()


def test_a_catalog_that_cannot_grow_on_a_full_disk(
    disk: SmallDisk, start_rig: Callable[..., Rig]
) -> None:
    """The new recording is refused with the code for space; the catalog is unchanged."""
    archive_dir = disk.path / "archive"
    archive_dir.mkdir()
    properties = {
        "aeron.archive.catalog.capacity": "4096",
        "aeron.archive.low.storage.space.threshold": "1",
        "aeron.archive.segment.file.length": "65536",
    }
    rig = start_rig(properties=properties)
    path = archive_dir / "archive.catalog"
    publications: list[Any] = []
    while path.stat().st_size == 4_096 and len(publications) < 3:
        publications.append(rig.start()[1])
    length = path.stat().st_size
    alias = "a" * 4_000
    long_channel = f"{IPC}|alias={alias}"
    disk.fill(leave_bytes=4_096)
    granted = rig.try_start(900, long_channel)
    assert granted.code is ControlResponseCode.OK
    first = rig.aeron.add_exclusive_publication(IPC, 900)
    refusal = rig.error(granted.correlation_id)
    assert refusal.relevant_id == NO_SPACE
    assert "cannot grow" in refusal.error_message
    assert path.stat().st_size == length
    assert len(rig.aeron.counters().rows(100)) == len(publications)
    disk.clear()
    first.close()
    second = rig.aeron.add_exclusive_publication(IPC, 900)
    signal = rig.signal(granted.correlation_id, RecordingSignal.START)
    assert signal.recording_id == len(publications)
    assert path.stat().st_size > length
    assert not second.is_closed
    assert rig.archive.stop() == 0
    found = [each.recording_id for each in aerotape.open_directory(archive_dir).recordings()]
    assert found == list(range(len(publications) + 1))
