"""Starts on a full disk (a real one): refused with a reason or served, without side effects."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.daemon.archives import KINDS
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive, age_mark_file
from support.damage.full_disk_rig import MEBIBYTE, PROPERTIES, Rig, content
from support.damage.small_disk import SmallDisk
from support.jvm import java

from aerotape.catalog.mark.mark_file import MarkFile
from aerotape.counter_keys import CounterType
from aerotape.protocol import ErrorCode

NO_SPACE = int(ErrorCode.STORAGE_SPACE)


@pytest.mark.parametrize(
    ("leave_bytes", "words"),
    [
        (0, "cannot reserve"),
        (MEBIBYTE // 2, "for mark file"),
        (MEBIBYTE + MEBIBYTE // 2, "for catalog"),
    ],
)
@pytest.mark.parametrize("next_kind", KINDS)
def test_a_failed_start_on_a_full_disk_does_not_block_the_next(
    leave_bytes: int,
    words: str,
    next_kind: str,
    disk: SmallDisk,
    aeron_dir: Path,
    start_rig: Callable[..., Rig],
) -> None:
    """The error reports the lack of space; with space, the next start succeeds at once, ours or
    Java's."""
    disk.fill(leave_bytes)
    with pytest.raises(java.HarnessError) as failure:
        AerotapeArchive(disk.path / "archive", aeron_dir, properties=PROPERTIES).start()
    assert words in str(failure.value)
    assert "No space left on device" in str(failure.value)
    assert "exit code 1" in str(failure.value)
    assert "Traceback" not in str(failure.value)
    disk.clear()
    rig = start_rig(next_kind)
    _, publication = rig.start()
    rig.offer(publication, 0, 3)
    await_true(lambda: rig.value(100) == publication.position)


@pytest.mark.parametrize("torn", [False, True], ids=["whole", "torn"])
def test_a_crash_and_a_start_while_the_disk_is_full(
    torn: bool, disk: SmallDisk, aeron_dir: Path, start_rig: Callable[..., Rig]
) -> None:
    """The directory that was in use is served again though there is no space, not even to
    quarantine the rest of an interrupted write.
    """
    archive = AerotapeArchive(disk.path / "archive", aeron_dir, properties=PROPERTIES).start()
    with ExitStack() as stack:
        rig = Rig(archive, stack)
        _, publication = rig.start()
        rig.offer(publication, 0, 200)
        await_true(lambda: rig.value(100) == publication.position)
        end = publication.position
        archive.kill()
    if torn:
        with (archive.archive_dir / "0-0.rec").open("r+b") as segment:
            header = segment.read(32)
            segment.seek(end)
            segment.write((50_000).to_bytes(4, "little") + header[4:8])
            segment.write(end.to_bytes(4, "little") + header[12:] + bytes([7]) * 9_000)
    disk.fill()
    age_mark_file(archive.archive_dir)
    shutil.rmtree(aeron_dir, ignore_errors=True)
    rig = start_rig()
    assert ("were left in place" in rig.archive.log()) is torn
    assert rig.descriptor(0).stop_position == end
    assert rig.messages(0, end) == [content(index) for index in range(200)]
    assert rig.value(CounterType.LOW_STORAGE) == 1
    assert rig.try_start(700).relevant_id == NO_SPACE
    disk.clear()
    await_true(lambda: rig.value(CounterType.LOW_STORAGE) == 0)
    rig.start()
    assert rig.archive.stop() == 0
    assert not MarkFile.read(disk.path / "archive").is_active()


def test_a_stop_and_a_start_while_the_disk_is_full(
    disk: SmallDisk, start_rig: Callable[..., Rig]
) -> None:
    """A clean stop needs no space: stop positions are written, and the directory is unlocked."""
    rig = start_rig()
    _, publication = rig.start()
    disk.fill(leave_bytes=64 << 10)
    rig.offer(publication, 0, 5)
    await_true(lambda: rig.value(100) == publication.position)
    end = publication.position
    disk.fill()
    assert rig.archive.stop() == 0
    assert MarkFile.read(disk.path / "archive").header.activity_timestamp_ms == -1
    rig = start_rig()
    assert rig.descriptor(0).stop_position == end
    assert rig.messages(0, end) == [content(index) for index in range(5)]


@pytest.mark.jvm
def test_a_sparse_catalog_is_read_on_a_full_disk(
    disk: SmallDisk, start_rig: Callable[..., Rig], capsys: pytest.CaptureFixture[str]
) -> None:
    """Java's catalog has holes; reading a mapped hole without space would end the process."""
    from aerotape.tools._cli.main import main

    rig = start_rig("java")
    _, publication = rig.start()
    rig.offer(publication, 0, 3)
    await_true(lambda: rig.value(100) == publication.position)
    rig.archive.stop()
    archive_dir = disk.path / "archive"
    status = (archive_dir / "archive.catalog").stat()
    assert status.st_blocks * 512 < status.st_size
    disk.fill()
    assert main(["tool", str(archive_dir), "describe", "--json"]) == 0
    [recording] = json.loads(capsys.readouterr().out)["recordings"]
    assert recording["recording_id"] == 0


@pytest.mark.jvm
def test_a_start_on_the_catalog_of_java_with_no_space(
    disk: SmallDisk, aeron_dir: Path, start_rig: Callable[..., Rig]
) -> None:
    """Its holes cannot be filled: the start is refused, nothing is lost, and later it works."""
    rig = start_rig("java")
    _, publication = rig.start()
    rig.offer(publication, 0, 3)
    await_true(lambda: rig.value(100) == publication.position)
    end = publication.position
    rig.archive.stop()
    before = (disk.path / "archive" / "archive.catalog").read_bytes()
    # Enough for the mark file.
    disk.fill(leave_bytes=MEBIBYTE + 64 * 1024)
    with pytest.raises(java.HarnessError, match="for catalog"):
        AerotapeArchive(disk.path / "archive", aeron_dir, properties=PROPERTIES).start()
    assert (disk.path / "archive" / "archive.catalog").read_bytes() == before
    disk.clear()
    rig = start_rig()
    assert rig.messages(0, end) == [content(index) for index in range(3)]
