"""The catalog compacted while its archive is running."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.builders.held_recordings import add_recording, segments
from support.builders.streams import TERM_LENGTH, record
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive
from support.jvm.java import JavaArchive, JavaClient, archive_tool

from aerotape.archive.compaction import CatalogCompaction
from aerotape.archive.error_log import ErrorLog
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.compaction_request import (
    ANSWER_FILE_NAME,
    REQUEST_FILE_NAME,
    request_compaction,
)
from aerotape.catalog.layout import MIN_CAPACITY_BYTES, RecordingState
from aerotape.errors import AerotapeError
from aerotape.tools._cli.main import main

NOW_NS = 1_700_000_000 * 10**9


class Rig:
    """What serves requests, with a clock that the test moves."""

    def __init__(self, directory: Path, capacity_bytes: int = 0) -> None:
        self.directory = directory
        self.catalog = Catalog.open(directory, capacity_bytes=MIN_CAPACITY_BYTES)
        self.deleting: set[int] = set()
        self.now_ns = 0
        self.woken = threading.Event()
        self.compaction = CatalogCompaction(
            archive_dir=directory,
            catalog=self.catalog,
            capacity_bytes=capacity_bytes,
            is_deleting=lambda recording_id: recording_id in self.deleting,
            errors=ErrorLog(),
            wake=self.woken.set,
            monotonic_ns=lambda: self.now_ns,
        )

    def ask(self) -> dict[str, Any]:
        """Leave a request, let it be served, and return the answer."""
        (self.directory / REQUEST_FILE_NAME).write_text("word")
        self.now_ns += 1_000_000_000
        answer = self.directory / ANSWER_FILE_NAME
        deadline_s = time.monotonic() + 60
        while not answer.exists():
            assert time.monotonic() < deadline_s
            self.compaction.do_work()
            self.woken.wait(0.01)
        told = json.loads(answer.read_bytes())
        answer.unlink()
        assert told.pop("word") == "word"
        assert isinstance(told, dict)
        return told

    def close(self) -> None:
        self.compaction.close()
        self.catalog.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Six recordings: 1, 3 and 4 purged, of 3 there is a file left; 2 invalid."""
    made = tmp_path / "archive"
    for number in range(6):
        add_recording(made, [1], now_ns=NOW_NS, channel=f"aeron:ipc?alias={'x' * 40 * number}")
    with Catalog.open(made) as catalog:
        for purged in (1, 3, 4):
            catalog.change_state(purged, RecordingState.DELETED)
        catalog.change_state(2, RecordingState.INVALID)
    for purged in (1, 4):
        [path] = made.glob(f"{purged}-*.rec")
        path.unlink()
    return made


@pytest.fixture
def start(directory: Path) -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def start_rig(capacity_bytes: int = 0) -> Rig:
        made.append(Rig(directory, capacity_bytes))
        return made[-1]

    yield start_rig
    for rig in made:
        rig.close()


def states(directory: Path) -> dict[int, int]:
    with Catalog.open(directory, read_only=True) as catalog:
        return {entry.recording_id: entry.state for entry in catalog.entries()}


def bodies(catalog: Catalog) -> dict[int, bytes]:
    return {each: catalog.entry(each).body for each in catalog.recording_ids()}


def test_purged_recordings_without_files_are_left_out(
    directory: Path, start: Callable[..., Rig]
) -> None:
    """All others stay to the byte, ids go on, and the open catalog is used as before."""
    rig = start()
    before, capacity = bodies(rig.catalog), rig.catalog.capacity_bytes
    told = rig.ask()
    assert told["recordings_removed"] == [1, 4]
    assert told["capacity_bytes_before"] == capacity
    assert told["capacity_bytes"] == rig.catalog.capacity_bytes < capacity
    assert states(directory) == {
        0: RecordingState.VALID,
        2: RecordingState.INVALID,
        3: RecordingState.DELETED,
        5: RecordingState.VALID,
    }
    assert bodies(rig.catalog) == before
    assert rig.catalog.next_recording_id == 6
    rig.catalog.set_start_position(5, 65_536)
    rig.catalog.change_state(2, RecordingState.VALID)
    assert add_to(rig.catalog) == 6
    with Catalog.open(directory, read_only=True) as seen:
        assert list(seen.recording_ids()) == [0, 2, 5, 6]
        assert seen.start_position(5) == 65_536
    assert not (directory / REQUEST_FILE_NAME).exists()
    assert sorted(path.name for path in directory.glob("archive.catalog*")) == ["archive.catalog"]


def add_to(catalog: Catalog) -> int:
    return catalog.add_recording(
        start_position=0,
        start_timestamp_ms=1,
        initial_term_id=1,
        segment_file_length=131_072,
        term_buffer_length=65_536,
        mtu_length=1408,
        session_id=1,
        stream_id=1,
        stripped_channel="aeron:ipc",
        original_channel="aeron:ipc",
        source_identity="aeron:ipc",
    )


def test_who_reads_the_old_file_keeps_what_it_held(
    directory: Path, start: Callable[..., Rig]
) -> None:
    rig = start()
    with Catalog.open(directory, read_only=True) as reader:
        held = [entry.recording_id for entry in reader.entries()]
        rig.ask()
        assert [entry.recording_id for entry in reader.entries()] == held


def test_what_is_being_deleted_waits_and_a_second_request_finds_it(
    directory: Path, start: Callable[..., Rig]
) -> None:
    rig = start()
    rig.deleting = {4}
    assert rig.ask()["recordings_removed"] == [1]
    rig.deleting = set()
    assert rig.ask()["recordings_removed"] == [4]
    inode = (directory / "archive.catalog").stat().st_ino
    assert rig.ask()["recordings_removed"] == []
    assert (directory / "archive.catalog").stat().st_ino == inode


def test_the_file_does_not_become_shorter_than_it_is_made(
    directory: Path, start: Callable[..., Rig]
) -> None:
    """Of a running archive there is room behind the last entry, of zeros."""
    rig = start(64 * 1024)
    assert rig.ask()["capacity_bytes"] == 64 * 1024
    assert (directory / "archive.catalog").stat().st_size == 64 * 1024


def test_damage_is_told_and_nothing_is_changed(directory: Path, start: Callable[..., Rig]) -> None:
    rig = start()
    place = rig.catalog.entry(5)
    rig.catalog.data[place.offset + 32 + 80 : place.offset + 32 + 84] = b"\xff\xff\xff\x7f"
    before = (directory / "archive.catalog").read_bytes()
    assert "is damaged" in rig.ask()["problem"]
    assert (directory / "archive.catalog").read_bytes() == before


@pytest.mark.parametrize("call", ["posix_fallocate", "pwrite", "fsync", "fchmod"])
def test_a_failure_at_any_step_leaves_the_old_catalog(
    directory: Path, start: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    rig = start()
    before = (directory / "archive.catalog").read_bytes()
    held = bodies(rig.catalog)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    assert "No space left on device" in rig.ask()["problem"]
    monkeypatch.undo()
    assert (directory / "archive.catalog").read_bytes() == before
    assert bodies(rig.catalog) == held
    assert rig.ask()["recordings_removed"] == [1, 4]


@pytest.mark.parametrize("call", ["posix_fallocate", "pwrite", "fsync", "rename"])
def test_a_crash_at_any_step_leaves_one_catalog_or_the_other(
    directory: Path, start: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Before and after each step, what the next start finds has all valid recordings."""
    rig = start()
    held = bodies(rig.catalog)

    class Killed(BaseException):
        pass

    owner: Any = Path if call == "rename" else os
    real = getattr(owner, call)

    for after in (False, True):

        def die(*args: Any, now: bool = after) -> None:
            if call == "rename" and "catalog" not in str(args[0]):
                real(*args)
                return
            if now:
                real(*args)
            raise Killed

        monkeypatch.setattr(owner, call, die)
        with pytest.raises(Killed):
            rig.ask()
        monkeypatch.undo()
        (directory / REQUEST_FILE_NAME).unlink(missing_ok=True)
        with Catalog.open(directory) as catalog:
            assert bodies(catalog) == held
            assert catalog.next_recording_id == 6


def test_nobody_asks_twice_and_nobody_waits_for_ever(directory: Path) -> None:
    with pytest.raises(AerotapeError, match="has not answered within"):
        request_compaction(directory, 0.1)
    assert not (directory / REQUEST_FILE_NAME).exists()
    (directory / REQUEST_FILE_NAME).write_text("other")
    with pytest.raises(AerotapeError, match="has been asked for already"):
        request_compaction(directory, 0.1)
    assert (directory / REQUEST_FILE_NAME).read_text() == "other"


def test_without_an_archive_the_command_is_refused_and_a_dry_run_is_not(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (directory / "archive.catalog").read_bytes()
    assert main(["tool", str(directory), "compact", "--online"]) == 2
    assert "no archive of this package is using" in capsys.readouterr().err
    assert main(["tool", str(directory), "compact", "--online", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["recordings_removed"] == [1, 4]
    assert (directory / "archive.catalog").read_bytes() == before


def test_a_running_archive_compacts_and_goes_on(
    tmp_path: Path, aeron_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """While it records; its clients see no difference, and the Java archive takes it over."""
    archive_dir = tmp_path / "archive"
    with (
        AerotapeArchive(
            archive_dir,
            aeron_dir,
            properties={
                "aeron.archive.low.storage.space.threshold": "1m",
                "aeron.archive.catalog.capacity": "4096",
            },
        ) as archive,
        JavaClient(archive.aeron_dir) as client,
    ):
        client.connect(archive.control_channel)
        live = record(client, 7001, TERM_LENGTH + 1024, live=True)
        purged = [record(client, 7002 + number, 1024) for number in range(20)]
        kept = record(client, 7100, 1024)
        for stream in purged[:-1]:
            client.call("purgeRecording", stream.recording_id)
        await_true(lambda: segments(archive_dir, purged[-2].recording_id) == [])
        listed = _listed(client)
        size = (archive_dir / "archive.catalog").stat().st_size
        await_true(lambda: _compacted(archive_dir, capsys) >= 0 and len(_entries(archive_dir)) == 3)
        assert (archive_dir / "archive.catalog").stat().st_size < size
        assert _listed(client) == listed
        assert client.call("getStopPosition", kept.recording_id) == 1024
        live.offer(client, TERM_LENGTH)
        new = record(client, 7200, 1024)
        assert new.recording_id == kept.recording_id + 1
        live.stop(client)
        client.call("stopRecording", "aeron:ipc", 7001)
        rows = _listed(client)
    described = archive_tool(archive_dir, "count-entries")
    assert described.stdout.strip() == "4", described.stderr
    with (
        JavaArchive(archive_dir, tmp_path / "java-aeron") as java,
        JavaClient(java.aeron_dir) as client,
    ):
        client.connect(java.control_channel)
        assert _listed(client) == rows
        assert record(client, 7300, 1024).recording_id == new.recording_id + 1


def _compacted(archive_dir: Path, capsys: pytest.CaptureFixture[str]) -> int:
    assert main(["tool", str(archive_dir), "compact", "--online", "--json"]) == 0
    return len(json.loads(capsys.readouterr().out)["recordings_removed"])


def _entries(archive_dir: Path) -> list[int]:
    with Catalog.open(archive_dir, read_only=True) as catalog:
        return [entry.recording_id for entry in catalog.entries()]


def _listed(client: JavaClient) -> list[dict[str, Any]]:
    """All recordings as a Java client sees them, without whom they were sent to."""
    rows = client.call("listRecordings", 0, 100)
    for row in rows:
        del row["controlSessionId"], row["correlationId"]
    return list(rows)
