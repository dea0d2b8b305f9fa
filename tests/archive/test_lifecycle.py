"""The lifecycle of an archive: the command `aerotape archive` and `Archive.launch`."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.daemon.control_rig import RawClient, await_true
from support.jvm import java
from support.processes import inherited

from aerotape import _native
from aerotape.archive.archive import Archive
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.mark.mark_file import MarkFile
from aerotape.catalog.mark.ownership import unused
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ArchiveInUseError
from aerotape.media_driver import launch_driver

ROOT = Path(__file__).resolve().parents[2]
LOCAL = "aeron:ipc?term-length=64k"


def aerotape(*args: str) -> subprocess.CompletedProcess[str]:
    """Run the command line until it exits."""
    return subprocess.run(
        [sys.executable, "-m", "aerotape", *args],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )


class Live:
    """A live recording: its client, its publication and its position."""

    def __init__(self, aeron: _native.AeronClient, publication: Any, position: int) -> None:
        self.aeron = aeron
        self.publication = publication
        self.position = position


def record_one(aeron_dir: Path, stream_id: int = 1) -> Live:
    """Start a recording and publish to it."""
    aeron = _native.AeronClient(str(aeron_dir))
    raw = RawClient(aeron, LOCAL, response_stream_id=900)
    raw.connect()
    raw.call(codecs.StartRecordingRequest, stream_id=stream_id, channel="aeron:ipc")
    publication = aeron.add_exclusive_publication("aeron:ipc", stream_id)
    position = 0
    for _ in range(10):
        position = publication.offer_within(b"x" * 500, 5_000_000_000)
        assert position > 0
    await_true(lambda: [row[7] for row in aeron.counters().rows(100)] == [position])
    return Live(aeron, publication, position)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_it_cleanly(
    start_daemon: Callable[..., Any], number: signal.Signals
) -> None:
    """The exit code is 0, live recordings get stop positions, and the directory is unlocked at
    once."""
    with inherited(number, signal.SIG_DFL):
        daemon = start_daemon()
    live = record_one(daemon.aeron_dir)
    assert daemon.stop(number) == 0
    live.aeron.close()
    with Catalog.open(daemon.archive_dir, read_only=True) as catalog:
        descriptor = catalog.descriptor(0)
    assert descriptor.stop_position == live.position
    assert descriptor.stop_timestamp_ms >= descriptor.start_timestamp_ms
    assert MarkFile.read(daemon.archive_dir).header.activity_timestamp_ms == -1
    again = start_daemon()
    assert again.stop() == 0


def test_an_ignored_hangup_stays_ignored(start_daemon: Callable[..., Any]) -> None:
    """Under nohup the archive outlives its terminal."""
    with inherited(signal.SIGHUP, signal.SIG_IGN):
        daemon = start_daemon()
    daemon.process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        daemon.process.wait(2)
    assert daemon.stop() == 0


@pytest.mark.parametrize("text", ["index out of bounds", ""])
def test_a_panic_ends_it_with_a_failure(tmp_path: Path, aeron_dir: Path, text: str) -> None:
    """After a panic in native code on the conductor the exit code is 1, one line has the time and
    the reason, all is closed."""
    script = f"""
import sys
from aerotape.archive.conductor import Conductor
from aerotape.tools._cli.main import main
class Panic(BaseException):
    pass
def panic(self, events):
    raise Panic({text!r})
Conductor.do_work = panic
sys.exit(main(sys.argv[1:]))
"""
    archive_dir = tmp_path / "archive"
    done = subprocess.run(
        [sys.executable, "-c", script, "archive", "--dir", str(archive_dir),
         "--aeron-dir", str(aeron_dir), "-Daeron.archive.control.channel.enabled=false"],
        capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 1
    line = f"aerotape archive: ended: Panic: {text}".rstrip(": ")
    assert re.search(rf"^\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ {line}$", done.stderr, re.MULTILINE)
    assert MarkFile.read(archive_dir).header.activity_timestamp_ms == -1


def test_a_worker_that_panics_ends_the_archive(tmp_path: Path, aeron_dir: Path) -> None:
    """An archive whose recorder panics ends, and its error has the text of the panic."""
    properties = {
        "aeron.archive.control.channel.enabled": "false",
        "aeron.threading.mode": "SHARED",
    }
    with Archive.launch(tmp_path / "a", aeron_dir, properties=properties) as archive:
        failed = _native.WorkerFailed("archive-recorder", "a text")
        archive._conductor._events.append(failed)
        assert archive.wait(30)
    assert "archive-recorder has failed: internal error: a text: " in str(archive.failure)


@pytest.mark.jvm
def test_the_ready_line(tmp_path: Path, start_daemon: Callable[..., Any]) -> None:
    """The ready line has channel, directories and id, as ArchiveTool describes them."""
    archive_dir = tmp_path / "archive"
    aeron_dir = tmp_path / "aeron"
    file = tmp_path / "my.properties"
    channel = f"aeron:udp?endpoint=localhost:{java.free_port()}"
    file.write_text(
        f"aeron.archive.dir={archive_dir}\naeron.dir={aeron_dir}\naeron.archive.id=17\n"
        f"aeron.archive.control.channel={channel}\naeron.archive.control.stream.id=33\n"
        "aeron.archive.no.such.thing=1\n"
    )
    command = [sys.executable, "-m", "aerotape", "archive", str(file), "--json"]
    command += ["-Daeron.archive.control.stream.id=34", "-Daeron.term.buffer.length=64k"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    try:
        assert ready == {
            "event": "ready",
            "archive_id": 17,
            "archive_dir": str(archive_dir),
            "aeron_dir": str(aeron_dir),
            "control_channel": channel,
            "control_stream_id": 34,
            "local_control_channel": "aeron:ipc?term-length=64k",
            "local_control_stream_id": 10,
        }
        described = java.archive_tool(archive_dir, "describe").stdout
        assert channel in described
        assert f"aeronDirectory='{aeron_dir}'" in described
        assert str(process.pid) in java.archive_tool(archive_dir, "pid").stdout
    finally:
        process.send_signal(signal.SIGTERM)
        out, log = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")
    assert "aeron.archive.no.such.thing" in log


def test_a_second_archive_on_the_directory_is_refused(start_daemon: Callable[..., Any]) -> None:
    """The exit code is 1 with one line that names the owner; the first archive is not affected."""
    daemon = start_daemon()
    live = record_one(daemon.aeron_dir)
    before = {path.name: path.stat().st_mtime_ns for path in daemon.archive_dir.glob("*.*")}
    # The first one updates its activity timestamp, and the recorded position once the stream rests;
    # it touches the lock file to see that the disk responds.
    lock = daemon.archive_dir / "aerotape-archive.lock"
    own, owner = ("archive-mark.dat", "aerotape-0.time-index", lock.name), lock.read_bytes()
    refused = aerotape("archive", "--dir", str(daemon.archive_dir), "--aeron-dir", "/dev/shm/no")
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert str(daemon.process.pid) in refused.stderr
    assert refused.stdout == ""
    assert not Path("/dev/shm/no").exists()
    after = {path.name: path.stat().st_mtime_ns for path in daemon.archive_dir.glob("*.*")}
    assert {name: time for name, time in after.items() if name not in own} == {
        name: time for name, time in before.items() if name not in own
    }
    assert lock.read_bytes() == owner
    with pytest.raises(ArchiveInUseError):
        Archive.launch(dir=daemon.archive_dir, aeron_dir="/dev/shm/no")
    raw = RawClient(live.aeron, LOCAL, response_stream_id=901)
    raw.connect()
    assert raw.call(codecs.RecordingPositionRequest, recording_id=0).relevant_id == live.position
    live.aeron.close()


@pytest.mark.parametrize("inside", ["", "marks"])
def test_the_mark_file_in_the_drivers_directory(
    tmp_path: Path, aeron_dir: Path, start_daemon: Callable[..., Any], inside: str
) -> None:
    """It survives the start of the embedded driver, which deletes the directory, and locks others
    out; neither a stop nor a crash prevents the next start.
    """
    mark_file_dir = aeron_dir / inside
    properties = {"aeron.archive.mark.file.dir": str(mark_file_dir)}
    for _ in range(2):
        daemon = start_daemon(properties=properties)
        assert MarkFile.read(daemon.archive_dir).path == mark_file_dir / "archive-mark.dat"
        assert MarkFile.read(daemon.archive_dir).is_active()
        before = sorted(aeron_dir.rglob("*"))
        for other in (aeron_dir, tmp_path / "other"):
            with pytest.raises(ArchiveInUseError, match=f"process {daemon.process.pid}"):
                Archive.launch(daemon.archive_dir, other, properties=properties)
            with pytest.raises(ArchiveInUseError, match=f"process {daemon.process.pid}"):
                Archive.launch(daemon.archive_dir, other)
        assert not (tmp_path / "other").exists()
        assert sorted(aeron_dir.rglob("*")) == before
        assert daemon.stop() == 0
        assert not MarkFile.read(daemon.archive_dir).is_active()


def test_the_directory_is_locked_before_the_driver_is_started(
    tmp_path: Path, aeron_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second archive is refused while the first starts its driver, and does not start another."""
    launched = []
    real = launch_driver

    def launch(properties: Any) -> Any:
        launched.append(properties["aeron.dir"])
        with pytest.raises(ArchiveInUseError, match=f"process {os.getpid()}: stop it first"):
            Archive.launch(tmp_path / "archive", tmp_path / "other")
        with (
            pytest.raises(ArchiveInUseError, match=f"process {os.getpid()}"),
            unused(tmp_path / "archive", 10_000),
        ):
            pass
        return real(properties)

    monkeypatch.setattr("aerotape.archive.archive.launch_driver", launch)
    properties = {
        "aeron.archive.control.channel.enabled": "false",
        "aeron.archive.mark.file.dir": str(aeron_dir),
    }
    with Archive.launch(tmp_path / "archive", aeron_dir, properties=properties):
        pass
    assert launched == [str(aeron_dir)]


def test_files_and_directories_are_not_world_readable(start_daemon: Callable[..., Any]) -> None:
    """Files, including segment files, are 0640 and directories 0750 whatever the umask."""
    before = os.umask(0)
    try:
        daemon = start_daemon()
    finally:
        os.umask(before)
    record_one(daemon.aeron_dir).aeron.close()
    assert daemon.stop() == 0
    made = {path.name: stat.S_IMODE(path.stat().st_mode) for path in daemon.archive_dir.iterdir()}
    assert {"archive.catalog", "0-0.rec", "aerotape-0.time-index"} < made.keys()
    assert set(made.values()) == {0o640}, made
    assert stat.S_IMODE(daemon.archive_dir.stat().st_mode) == 0o750


def test_the_mark_file_is_updated(start_daemon: Callable[..., Any]) -> None:
    """The activity timestamp is updated about once a second."""
    daemon = start_daemon()

    def timestamp() -> int:
        return MarkFile.read(daemon.archive_dir).header.activity_timestamp_ms

    first = timestamp()
    await_true(lambda: timestamp() > first)
    second = timestamp()
    await_true(lambda: timestamp() > second)
    assert abs(timestamp() - time.time() * 1000) < 5_000


@pytest.mark.parametrize(
    ("args", "name"),
    [
        (["-Daeron.archive.segment.file.length=100"], "aeron.archive.segment.file.length=100"),
        (["-Daeron.archive.control.channel=ipc"], "aeron.archive.control.channel=ipc"),
        (["-Dnonsense"], "-Dnonsense"),
        (["missing.properties"], "missing.properties"),
    ],
)
def test_usage_errors_are_one_line(tmp_path: Path, args: list[str], name: str) -> None:
    """The exit code is 2, the line names the property, and no directory is created."""
    refused = aerotape("archive", "--dir", str(tmp_path / "a"), *args)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    assert name in refused.stderr
    assert not (tmp_path / "a").exists()


def test_an_archive_directory_that_cannot_be_created(tmp_path: Path) -> None:
    """A file in place of the directory is an error with its path."""
    (tmp_path / "file").write_text("")
    refused = aerotape("archive", "--dir", str(tmp_path / "file"))
    assert refused.returncode == 1
    assert str(tmp_path / "file") in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_no_external_driver(tmp_path: Path) -> None:
    """An external driver that does not run is an error, and the directory is unlocked again."""
    archive_dir = tmp_path / "archive"
    refused = aerotape(
        "archive", "--dir", str(archive_dir), "--driver", "external",
        "--aeron-dir", str(tmp_path / "none"), "-Daeron.driver.timeout=1000",
    )  # fmt: skip
    assert refused.returncode == 1
    assert str(tmp_path / "none") in refused.stderr
    assert not (archive_dir / "archive-mark.dat").exists()
    with unused(archive_dir, 10_000):
        pass


@pytest.mark.slow
def test_an_external_driver_that_is_killed(
    tmp_path: Path, aeron_dir: Path, start_daemon: Callable[..., Any]
) -> None:
    """When the driver (`aerotape driver`) is killed, the archive ends with stop positions."""
    command = [sys.executable, "-m", "aerotape", "driver", "--aeron-dir", str(aeron_dir)]
    command += ["-Daeron.threading.mode=SHARED"]
    driver = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert driver.stdout is not None
    try:
        assert str(aeron_dir) in driver.stdout.readline()
        daemon = start_daemon(driver="external")
        live = record_one(aeron_dir)
        driver.kill()
        daemon.process.wait(60)
        live.aeron.close()
        assert daemon.process.wait() == 1
        daemon.stop()
        daemon.await_log("media driver")
        assert "Traceback" not in daemon.log()
        with Catalog.open(daemon.archive_dir, read_only=True) as catalog:
            assert catalog.stop_position(0) == live.position
        assert MarkFile.read(daemon.archive_dir).header.activity_timestamp_ms == -1
    finally:
        driver.kill()
        driver.wait()
        driver.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize("is_stopped", [True, False], ids=["stopped", "waits"])
def test_an_external_driver_that_has_just_died(
    tmp_path: Path, aeron_dir: Path, is_stopped: bool
) -> None:
    """An archive that starts in the directory of a driver whose last heartbeat is recent ends with
    an error once the driver has timed out; a stop signal ends it before.
    """
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "aerotape", "driver", "--aeron-dir", str(aeron_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=environ) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        driver.kill()
    archive_dir = tmp_path / "archive"
    archive = subprocess.Popen(
        [sys.executable, "-m", "aerotape", "archive", "--driver", "external",
         "--dir", str(archive_dir), "--aeron-dir", str(aeron_dir),
         f"-Daeron.archive.control.channel=aeron:udp?endpoint=localhost:{java.free_port()}",
         f"-Daeron.driver.timeout={60_000 if is_stopped else 3_000}"],
        stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environ,
    )  # fmt: skip
    try:
        if is_stopped:
            await_true((archive_dir / "archive-mark.dat").exists)
            archive.send_signal(signal.SIGTERM)
        _, log = archive.communicate(timeout=30)
    finally:
        archive.kill()
        archive.wait()
    assert archive.returncode == (0 if is_stopped else 1), log
    assert "Traceback" not in log
    assert is_stopped or "media driver" in log.splitlines()[-1]
    with unused(archive_dir, 10_000):
        pass


def test_a_control_channel_in_use(tmp_path: Path, start_daemon: Callable[..., Any]) -> None:
    """The error names the property, the channel and what to check."""
    other = start_daemon()
    refused = aerotape(
        "archive", "--dir", str(tmp_path / "second"), "--aeron-dir", str(tmp_path / "driver"),
        f"-Daeron.archive.control.channel={other.control_channel}",
    )  # fmt: skip
    assert refused.returncode == 1
    [line] = refused.stderr.splitlines()
    named = f"cannot listen on aeron.archive.control.channel={other.control_channel}: "
    assert line.startswith(f"aerotape archive: {named}is its port free")


def test_two_archives_with_one_id_on_a_driver(
    tmp_path: Path, aeron_dir: Path, start_daemon: Callable[..., Any]
) -> None:
    """The second archive is refused, because clients could not distinguish the recordings."""
    with closing(_native.MediaDriver.launch({"aeron.dir": str(aeron_dir)})):
        properties = {"aeron.archive.id": "5"}
        daemon = start_daemon(driver="external", properties=properties)
        command = ["archive", "--driver", "external", "--aeron-dir", str(aeron_dir)]
        channel = f"aeron:udp?endpoint=localhost:{java.free_port()}"
        command += [f"-Daeron.archive.control.channel={channel}", "-Daeron.archive.id=5"]
        refused = aerotape(*command, "--dir", str(tmp_path / "two"))
        assert refused.returncode == 2
        assert refused.stderr.splitlines()[-1].startswith("aerotape archive: aeron.archive.id=5")
        assert daemon.stop() == 0
        again = start_daemon(driver="external", properties=properties)
        assert again.stop() == 0


def test_delete_on_start_empties_the_directory(start_daemon: Callable[..., Any]) -> None:
    """aeron.archive.dir.delete.on.start removes recordings, but only if the directory is not
    locked."""
    daemon = start_daemon()
    live = record_one(daemon.aeron_dir)
    assert daemon.stop() == 0
    live.aeron.close()
    assert list(daemon.archive_dir.glob("*.rec"))
    again = start_daemon(properties={"aeron.archive.dir.delete.on.start": "true"})
    assert list(again.archive_dir.glob("*.rec")) == []
    with Catalog.open(again.archive_dir, read_only=True) as catalog:
        assert list(catalog.recording_ids()) == []


@pytest.mark.parametrize("mode", ["SHARED", "DEDICATED"])
def test_launch_in_process(tmp_path: Path, aeron_dir: Path, mode: str) -> None:
    """Archive.launch serves clients of this process; closing twice is allowed."""
    properties = {
        "aeron.archive.control.channel.enabled": "false",
        "aeron.archive.threading.mode": mode,
        "aeron.archive.low.storage.space.threshold": "1m",
        "aeron.archive.segment.file.length": "64k",
        "aeron.ipc.term.buffer.length": "64k",
        "aeron.threading.mode": "SHARED",
    }
    with Archive.launch(tmp_path / "a", aeron_dir, properties=properties) as archive:
        assert archive.is_running
        assert archive.control_channel == ""
        assert archive.archive_dir == tmp_path / "a"
        live = record_one(aeron_dir)
        assert live.aeron.aeron_dir == archive.aeron_dir
        live.aeron.close()
        assert not archive.wait(0.0)
    assert not archive.is_running
    assert archive.failure is None
    archive.close()
    with Catalog.open(tmp_path / "a", read_only=True) as catalog:
        assert catalog.stop_position(0) == live.position


@pytest.mark.slow
def test_a_recording_left_open_by_a_crash_is_repaired(
    tmp_path: Path, start_daemon: Callable[..., Any]
) -> None:
    """After SIGKILL the next start finds and reports the end of the recording."""
    daemon = start_daemon()
    live = record_one(daemon.aeron_dir)
    daemon.process.kill()
    daemon.process.wait()
    live.aeron.close()
    with Catalog.open(daemon.archive_dir, read_only=True) as catalog:
        assert catalog.stop_position(0) == -1
    # Until its timestamp is stale the directory is in use.
    await_true(lambda: not MarkFile.read(daemon.archive_dir).is_active())
    again = start_daemon(aeron_dir=tmp_path / "aeron-2")
    with Catalog.open(again.archive_dir, read_only=True) as catalog:
        assert catalog.stop_position(0) == live.position
    again.await_log("recording 0")
