"""The mark file: which process may use a directory."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import subprocess
import sys
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from support.builders import mark_files
from support.damage.overwriting import overwrite
from support.jvm.java import archive_tool

from aerotape.catalog import layout
from aerotape.catalog.durability import write_at
from aerotape.catalog.mark.layout import (
    ACTIVITY_TIMESTAMP,
    CLAIMED_TIMESTAMP_MS,
    FILE_NAME,
    HEADER_LENGTH,
    VERSION,
    MarkFileHeader,
)
from aerotape.catalog.mark.mark_file import MarkFile
from aerotape.catalog.mark.ownership import unused
from aerotape.codecs.generated import mark as codecs
from aerotape.errors import ArchiveInUseError, ClosedError, MarkFileError

SETTINGS: dict[str, Any] = {
    "archive_id": 7,
    "control_channel": "aeron:udp?endpoint=localhost:8010",
    "control_stream_id": 10,
    "local_control_channel": "aeron:ipc",
    "local_control_stream_id": 11,
    "events_channel": "aeron:udp?control-mode=dynamic|control=localhost:8030",
    "events_stream_id": 30,
    "aeron_directory": "/dev/shm/aeron-test",
    "error_buffer_length": 64 * 1024,
}


def acquire(directory: Path, **changes: Any) -> MarkFile:
    return mark_files.acquire(directory, **{**SETTINGS, **changes})


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def snapshot(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in directory.iterdir()}


def put(directory: Path, offset: int, data: bytes) -> None:
    overwrite(directory / FILE_NAME, offset, data)


def put_timestamp(directory: Path, timestamp_ms: int) -> None:
    put(directory, ACTIVITY_TIMESTAMP, layout.LONG.pack(timestamp_ms))


def abandoned(directory: Path, age_ms: int) -> None:
    """Create a mark file as an archive leaves it that crashed `age_ms` ago."""
    acquire(directory).close()
    put_timestamp(directory, now_ms() - age_ms)


def test_a_running_archive_can_be_identified(tmp_path: Path) -> None:
    """The values can be read while the archive runs, and the file is active."""
    with acquire(tmp_path) as mark_file:
        assert MarkFile.read(tmp_path).header.version == 0
        mark_file.ready()
        info = MarkFile.read(tmp_path)
        assert info.is_active()
        assert info.header.version == layout.SEMANTIC_VERSION
        assert info.header.pid == os.getpid()
        assert info.header.header_length == HEADER_LENGTH
        for name, value in SETTINGS.items():
            assert getattr(info.header, name) == value
        length = (tmp_path / FILE_NAME).stat().st_size
        assert (length, length % 4096) == (HEADER_LENGTH + 64 * 1024, 0)
        mark_file.update_activity(1234)
        assert MarkFile.read(tmp_path).header.activity_timestamp_ms == 1234


def test_the_header_equals_that_of_the_generated_codec(tmp_path: Path) -> None:
    """The layout and the generated codec agree byte for byte."""
    fields: dict[str, Any] = {
        "version": 3,
        "start_timestamp_ms": 5,
        "pid": 6,
        "control_stream_id": 7,
        "local_control_stream_id": 8,
        "events_stream_id": 9,
        "header_length": 10,
        "error_buffer_length": 11,
        "archive_id": 12,
        "control_channel": "a",
        "local_control_channel": "bc",
        "events_channel": "",
        "aeron_directory": "def",
    }
    header = MarkFileHeader(activity_timestamp_ms=4, **fields)
    fields["start_timestamp"] = fields.pop("start_timestamp_ms")
    message = codecs.MarkFileHeader(activity_timestamp=4, **fields)
    assert header.encode() == message.encode()
    assert MarkFileHeader.decode(message.encode()) == header


def test_a_second_archive_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    """While one runs in this process, a second one is refused with the pid; no byte changes."""
    with acquire(tmp_path) as mark_file:
        mark_file.ready()
        before = snapshot(tmp_path)
        with pytest.raises(ArchiveInUseError, match=f"process {os.getpid()}") as raised:
            acquire(tmp_path, control_channel="aeron:udp?endpoint=localhost:9999")
        assert raised.value.pid == os.getpid()
        assert snapshot(tmp_path) == before


@pytest.mark.parametrize("age_ms", [0, -60_000], ids=["now", "in the future"])
def test_a_fresh_timestamp_without_lock_is_respected(tmp_path: Path, age_ms: int) -> None:
    """The Java archive takes no lock: a recent timestamp alone keeps other archives out, also after
    the clock was set back."""
    abandoned(tmp_path, age_ms=age_ms)
    before = snapshot(tmp_path)
    with pytest.raises(ArchiveInUseError, match="sign of life"):
        acquire(tmp_path)
    assert snapshot(tmp_path) == before


def test_the_lock_holds_where_the_timestamp_is_stale(tmp_path: Path) -> None:
    """An archive that is delayed for long still owns its directory."""
    with acquire(tmp_path) as mark_file:
        mark_file.ready()
        mark_file.update_activity(now_ms() - 3_600_000)
        with pytest.raises(ArchiveInUseError, match="lock"):
            acquire(tmp_path)


def test_a_stale_file_is_taken_over(tmp_path: Path) -> None:
    """Once the timestamp is as old as the timeout, a start succeeds, and no old data remains."""
    abandoned(tmp_path, age_ms=10_000)
    before = MarkFile.read(tmp_path).header
    with acquire(tmp_path, archive_id=8, control_channel="", aeron_directory="/x") as mark_file:
        info = MarkFile.read(tmp_path)
        assert info.is_active()
        assert (info.header.archive_id, info.header.control_channel) == (8, "")
        assert info.header.start_timestamp_ms >= before.start_timestamp_ms
        mark_file.ready()
    header = (tmp_path / FILE_NAME).read_bytes()[:HEADER_LENGTH]
    assert header.rstrip(b"\0").endswith(b"/x")


def test_the_timeout_can_be_set(tmp_path: Path) -> None:
    """The caller's liveness timeout decides what is stale."""
    abandoned(tmp_path, age_ms=2_000)
    with pytest.raises(ArchiveInUseError):
        acquire(tmp_path, liveness_timeout_ms=60_000)
    acquire(tmp_path, liveness_timeout_ms=1_000).close()


def test_a_clean_stop_frees_the_directory_at_once(tmp_path: Path) -> None:
    """Closing stores -1 as the timestamp; the next start does not wait."""
    mark_file = acquire(tmp_path)
    mark_file.ready()
    mark_file.close()
    mark_file.close()
    info = MarkFile.read(tmp_path)
    assert info.header.activity_timestamp_ms == -1
    assert not info.is_active()
    with pytest.raises(ClosedError):
        mark_file.update_activity(1)
    acquire(tmp_path).close()


@pytest.mark.parametrize("is_written", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("is_new", [True, False], ids=["new", "taken over"])
def test_a_start_that_is_interrupted_frees_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_new: bool, is_written: bool
) -> None:
    """At each write, before it or after it: another start need not wait for a timeout.

    The interrupt strikes once, as a stop signal does: the writes that free the directory succeed.
    """
    at = writes = 0

    def interrupted(descriptor: int, data: bytes, offset: int) -> None:
        nonlocal writes
        writes += 1
        if writes != at or is_written:
            write_at(descriptor, data, offset)
        if writes == at:
            raise KeyboardInterrupt

    monkeypatch.setattr("aerotape.catalog.mark.mark_file.write_at", interrupted)
    while True:
        if is_new:
            (tmp_path / FILE_NAME).unlink(missing_ok=True)
        else:
            abandoned(tmp_path, age_ms=60_000)
        at, writes = at + 1, 0
        try:
            mark_file = acquire(tmp_path)
            break
        except KeyboardInterrupt:
            with unused(tmp_path, 10_000):
                pass
    assert at > 3
    at = 0
    mark_file.close()


def _start_at(barrier: Barrier, directory: str, results: Any) -> None:
    barrier.wait(30)
    try:
        mark_file = acquire(Path(directory))
        mark_file.ready()
        results.put("acquired")
        barrier.wait(30)
        mark_file.close()
    except ArchiveInUseError:
        results.put("refused")
        barrier.wait(30)


@pytest.mark.parametrize("stale", [False, True])
def test_of_simultaneous_starts_exactly_one_succeeds(tmp_path: Path, stale: bool) -> None:
    """Processes that start at the same instant do not both get the directory."""
    context = multiprocessing.get_context("fork")
    for _ in range(5):
        if stale:
            abandoned(tmp_path, age_ms=60_000)
        else:
            (tmp_path / FILE_NAME).unlink(missing_ok=True)
        barrier, results = context.Barrier(4), context.Queue()
        starts = [
            context.Process(target=_start_at, args=(barrier, str(tmp_path), results))
            for _ in range(4)
        ]
        for start in starts:
            start.start()
        outcomes = sorted(results.get(timeout=30) for _ in starts)
        for start in starts:
            start.join(30)
        assert outcomes == ["acquired", "refused", "refused", "refused"]


def test_a_killed_archive_leaves_no_lock(tmp_path: Path) -> None:
    """After SIGKILL only the timestamp reserves the directory, until it is stale."""
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from support.builders.mark_files import acquire\n"
        f"mark_file = acquire(Path(sys.argv[1]), **{SETTINGS!r})\n"
        "mark_file.ready()\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        with pytest.raises(ArchiveInUseError, match=r"stop it first$") as raised:
            acquire(tmp_path)
        assert raised.value.pid == child.pid
        child.kill()
        child.wait()
    with pytest.raises(ArchiveInUseError, match="sign of life"):
        acquire(tmp_path)
    put_timestamp(tmp_path, now_ms() - 10_001)
    acquire(tmp_path).close()


@pytest.mark.parametrize("version", [layout.SEMANTIC_VERSION, 2 << 16])
def test_a_claim_of_a_java_archive_is_respected(tmp_path: Path, version: int) -> None:
    """While Java takes over a mark file, its timestamp is the largest value. The process may be in
    another container, so its pid proves nothing."""
    abandoned(tmp_path, age_ms=60_000)
    put_timestamp(tmp_path, CLAIMED_TIMESTAMP_MS)
    put(tmp_path, VERSION, layout.INT.pack(version))
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    for pid in (os.getpid(), child.pid):
        put(tmp_path, 8 + 24, layout.LONG.pack(pid))
        before = snapshot(tmp_path)
        with (
            pytest.raises(ArchiveInUseError, match=r"starting there .*: move .* away"),
            unused(tmp_path, 10_000),
        ):
            pass
        if version == layout.SEMANTIC_VERSION:
            with pytest.raises(ArchiveInUseError, match=f"process {pid}: a Java archive"):
                acquire(tmp_path)
        assert MarkFile.read(tmp_path).is_active()
        assert snapshot(tmp_path) == before


def test_a_file_of_another_major_version_is_refused_unchanged(tmp_path: Path) -> None:
    """A directory that must be migrated first is not changed."""
    abandoned(tmp_path, age_ms=60_000)
    put(tmp_path, VERSION, layout.INT.pack(2 << 16))
    before = snapshot(tmp_path)
    with pytest.raises(MarkFileError, match=r"2\.0\.0"):
        acquire(tmp_path)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("content", [b"", bytes(100), bytes(HEADER_LENGTH)])
def test_a_start_after_an_immediate_crash_succeeds(tmp_path: Path, content: bytes) -> None:
    """An empty mark file, or one of zeros, is replaced."""
    (tmp_path / FILE_NAME).write_bytes(content)
    with acquire(tmp_path) as mark_file:
        mark_file.ready()
        assert MarkFile.read(tmp_path).is_active()


@pytest.mark.parametrize("version", [1 << 16, 2 << 16, 4 << 16, -1])
@pytest.mark.parametrize("is_named", [True, False], ids=["with a message header", "without"])
def test_a_directory_of_another_version_is_in_use(
    tmp_path: Path, version: int, is_named: bool
) -> None:
    """It is in use while its timestamp is recent; with an unknown version that cannot be
    decided."""
    abandoned(tmp_path, age_ms=1_000)
    put(tmp_path, VERSION, layout.INT.pack(version))
    if not is_named:
        data = (tmp_path / FILE_NAME).read_bytes()
        (tmp_path / FILE_NAME).write_bytes(data[8:])
    is_older = 0 < version < 3 << 16
    before = snapshot(tmp_path)
    if not is_named and not is_older:
        with unused(tmp_path, 10_000):  # nothing says that it is a mark file
            pass
        return
    with pytest.raises(ArchiveInUseError, match="sign of life"), unused(tmp_path, 10_000):
        pass
    if is_older:
        with unused(tmp_path, 500), pytest.raises(ArchiveInUseError), unused(tmp_path, 500):
            pass
    else:
        with pytest.raises(MarkFileError, match="is not known here"), unused(tmp_path, 500):
            pass
    assert snapshot(tmp_path) == before


def test_another_kind_of_file_is_refused_unchanged(tmp_path: Path) -> None:
    """A file of another kind with the mark file's name is not overwritten."""
    (tmp_path / FILE_NAME).write_bytes(b"not a mark file at all\n" * 500)
    before = snapshot(tmp_path)
    with pytest.raises(MarkFileError, match="not the mark file"):
        acquire(tmp_path)
    assert snapshot(tmp_path) == before


def test_settings_that_do_not_fit_create_no_file(tmp_path: Path) -> None:
    """Channels longer than the header's 8 KiB are refused before a file is created."""
    with pytest.raises(MarkFileError, match="8192"):
        acquire(tmp_path, control_channel="aeron:udp?" + "x" * 9000)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.jvm
def test_a_full_error_log_continues_to_count(tmp_path: Path) -> None:
    """An entry that does not fit is refused, existing entries are still counted, and a shorter text
    may still fit. ArchiveTool shows all entries while the file is in use."""
    with acquire(tmp_path, error_buffer_length=1_024) as mark_file:
        recorded = 0
        while mark_file.record_error(f"error {recorded} " + "x" * 200, 1_000 + recorded):
            recorded += 1
        assert recorded == 4
        assert mark_file.record_error("error 0 " + "x" * 200, 9_000)
        assert not mark_file.record_error("error 9 " + "x" * 200, 9_001)
        assert mark_file.record_error("short", 9_002)
        errors = MarkFile.read(tmp_path).errors
        assert [(each.count, each.last_timestamp_ms) for each in errors] == [
            (2, 9_000),
            (1, 1_001),
            (1, 1_002),
            (1, 1_003),
            (1, 9_002),
        ]
        mark_file.ready()
        shown = archive_tool(tmp_path, "errors").stdout
        assert "5 distinct errors observed." in shown
        assert "2 observations from 1970-01-01" in shown


def test_errors_are_counted_and_saved_by_the_next_start(tmp_path: Path) -> None:
    """The error log counts repeats; the next start saves it to a file and creates an empty one."""
    with acquire(tmp_path) as mark_file:
        for timestamp in (5, 6, 7):
            assert mark_file.record_error("disk on fire", timestamp)
        assert mark_file.record_error("out of ink", 8)
        assert not mark_file.record_error("x" * 64 * 1024, 9)
    first, second = MarkFile.read(tmp_path).errors
    assert (first.text, first.count) == ("disk on fire", 3)
    assert (first.first_timestamp_ms, first.last_timestamp_ms) == (5, 7)
    assert (second.text, second.count) == ("out of ink", 1)
    with acquire(tmp_path):
        assert MarkFile.read(tmp_path).errors == []
    [log] = tmp_path.glob("archive-*-error.log")
    saved = log.read_text()
    assert "3 observations" in saved
    assert "disk on fire" in saved
    assert "out of ink" in saved


def test_the_mark_file_can_be_in_another_directory(tmp_path: Path) -> None:
    """A link file in the archive directory names its path, and is deleted when it is not needed."""
    archive_dir, mark_dir = tmp_path / "archive", tmp_path / "marks"
    archive_dir.mkdir()
    mark_dir.mkdir()
    with acquire(archive_dir, mark_file_dir=mark_dir) as mark_file:
        assert mark_file.path == mark_dir / FILE_NAME
        assert (archive_dir / "archive-mark.lnk").read_text() == str(mark_dir)
        assert MarkFile.read(archive_dir).path == mark_dir / FILE_NAME
        with pytest.raises(ArchiveInUseError):
            acquire(archive_dir, mark_file_dir=mark_dir)
    acquire(archive_dir).close()
    assert MarkFile.read(archive_dir).path == archive_dir / FILE_NAME


def test_the_timestamp_is_updated_during_a_long_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The timestamp advances without calls of update_activity, and not after the block."""
    monkeypatch.setattr("aerotape.catalog.mark.mark_file.KEEP_ALIVE_INTERVAL_S", 0.01)
    with acquire(tmp_path) as mark_file:
        mark_file.update_activity(1)
        with mark_file.kept_alive():
            deadline = time.monotonic() + 60
            while not MarkFile.read(tmp_path).is_active():
                assert time.monotonic() < deadline
                time.sleep(0.005)
        mark_file.update_activity(1)
        time.sleep(0.05)
        assert MarkFile.read(tmp_path).header.activity_timestamp_ms == 1


def test_the_timestamp_is_not_updated_after_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the file is closed during the periodic update, the directory stays free."""
    monkeypatch.setattr("aerotape.catalog.mark.mark_file.KEEP_ALIVE_INTERVAL_S", 0.0)
    for _ in range(50):
        mark_file = acquire(tmp_path)
        with mark_file.kept_alive():
            mark_file.close()
        assert MarkFile.read(tmp_path).header.activity_timestamp_ms == -1


def test_without_locks_the_timestamp_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a file system without locks, the activity timestamp shows that a directory is in use."""
    abandoned(tmp_path, age_ms=60_000)

    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with unused(tmp_path, 10_000):
        pass
    put_timestamp(tmp_path, now_ms())
    with pytest.raises(ArchiveInUseError, match="sign of life"), unused(tmp_path, 10_000):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything")
def test_a_mark_file_that_cannot_be_opened_prevents_a_start(tmp_path: Path) -> None:
    """Whether an archive uses the directory is unknown, so the directory counts as in use."""
    acquire(tmp_path).close()
    (tmp_path / FILE_NAME).chmod(0)
    with pytest.raises(MarkFileError, match="Permission denied"), unused(tmp_path, 10_000):
        pass


def test_an_incomplete_header_does_not_block_a_start(tmp_path: Path) -> None:
    """After a crash between the timestamp and the rest of a new file, it is free once it is
    stale."""
    (tmp_path / FILE_NAME).write_bytes(bytes(HEADER_LENGTH + 65_536))
    put(tmp_path, ACTIVITY_TIMESTAMP, now_ms().to_bytes(8, "little"))
    # A sector of the channels that a power cut left.
    put(tmp_path, 1024, b"localhost")
    with pytest.raises(ArchiveInUseError):
        acquire(tmp_path)
    with acquire(tmp_path, liveness_timeout_ms=0) as mark_file:
        mark_file.ready()
        assert MarkFile.read(tmp_path).header.archive_id == 7


def test_torn_channels_do_not_block_a_start(tmp_path: Path) -> None:
    """A power cut may mix channels of two archives: the lengths are wrong, other fields are
    valid."""
    acquire(tmp_path).close()
    put(tmp_path, 8 + 128, b"\xff\xff\xff\x7f")
    assert MarkFile.read(tmp_path).header.control_channel == ""
    assert MarkFile.read(tmp_path).header.archive_id == 7
    with acquire(tmp_path):
        assert MarkFile.read(tmp_path).header.control_channel == SETTINGS["control_channel"]
