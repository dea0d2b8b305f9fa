"""Aeron Cluster on our archive."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.daemon.recording import wait_until
from support.jvm.cluster import ClusterBackup, ClusterClient, ClusterMember, ports_for
from support.jvm.java import java_command

import aerotape
from aerotape import _native

pytestmark = pytest.mark.jvm

_COUNT = 300
_LOG_STREAM_ID = 100


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory for the members, removed afterwards."""
    path = Path(tempfile.mkdtemp(prefix="aerotape-cluster-", dir="/dev/shm"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.parametrize(
    ("kind", "with_archive"),
    [("aerotape", False), ("aerotape", True), ("java", True)],
    ids=["node", "node-and-archive", "from-a-java-archive"],
)
def test_a_single_node(
    folder: Path, driver: _native.MediaDriver, kind: str, with_archive: bool
) -> None:
    """After a crash a node loads its snapshot, replays the rest of its log and extends it."""
    ports = ports_for(1)
    with ExitStack() as stack:
        member = stack.enter_context(ClusterMember(kind, folder, 0, ports))
        member.launch()
        member.await_ready()
        with ClusterClient(Path(driver.aeron_dir), ports) as client:
            assert client.send(_COUNT) == _COUNT
            _take_snapshot(member)
            assert client.send(_COUNT) == 2 * _COUNT
        before = member.state()
        member.kill_node()
        if with_archive:
            member.kill_archive()
            member = stack.enter_context(ClusterMember("aerotape", folder, 0, ports))
        member.launch()
        member.await_ready()
        after = member.await_count(2 * _COUNT)
        assert (after.hash, after.in_snapshot) == (before.hash, _COUNT)
        with ClusterClient(Path(driver.aeron_dir), ports, 2 * _COUNT) as client:
            assert client.send(_COUNT) == 3 * _COUNT


@pytest.mark.parametrize(
    ("kinds", "with_archive"),
    [
        (("aerotape", "aerotape", "java"), False),
        (("aerotape", "aerotape", "aerotape"), True),
    ],
    ids=["node-beside-a-java-archive", "node-and-archive"],
)
def test_a_killed_leader(
    folder: Path, driver: _native.MediaDriver, kinds: Sequence[str], with_archive: bool
) -> None:
    """Another node leads, and the killed one catches up; then all have recorded the same log."""
    ports = ports_for(len(kinds))
    with ExitStack() as stack:
        members = [
            stack.enter_context(ClusterMember(kind, folder / str(id), id, ports))
            for id, kind in enumerate(kinds)
        ]
        for member in members:
            member.launch()
        for member in members:
            member.await_ready()
        with ClusterClient(Path(driver.aeron_dir), ports) as client:
            assert client.send(_COUNT) == _COUNT
            killed = client.leader
            members[killed].kill_node()
            if with_archive:
                members[killed].kill_archive()
            assert client.send(_COUNT) == 2 * _COUNT
            assert client.leader != killed
            members[killed].launch()
            members[killed].await_ready()
            assert client.send(_COUNT) == 3 * _COUNT
        states = [member.await_count(3 * _COUNT) for member in members]
        assert len({state.hash for state in states}) == 1
    logs = [_log(member) for member in members]
    shortest = min(map(len, logs))
    assert shortest > 3 * _COUNT
    assert len({tuple(log[:shortest]) for log in logs}) == 1


def test_a_backup(folder: Path, driver: _native.MediaDriver) -> None:
    """ClusterBackup on our archive copies snapshot and log, and a node that starts from them has
    what the cluster had."""
    ports, other_ports = ports_for(1), ports_for(1)
    with ExitStack() as stack:
        member = stack.enter_context(ClusterMember("aerotape", folder / "0", 0, ports))
        member.launch()
        member.await_ready()
        other = folder / "backup"
        backup = stack.enter_context(ClusterBackup("aerotape", other, other_ports[0], ports))
        with ClusterClient(Path(driver.aeron_dir), ports) as client:
            assert client.send(_COUNT) == _COUNT
            _take_snapshot(member)
            assert client.send(_COUNT) == 2 * _COUNT
            backup.launch()
            backup.await_ready()
            backup.await_backing_up()
            assert client.send(_COUNT) == 3 * _COUNT
        before, end = member.state(), _log_end(member)
        wait_until(lambda: _log_end(backup) >= end, "the backup of the log")
        member.close()
        backup.close()
        restored = stack.enter_context(ClusterMember("aerotape", other, 0, other_ports))
        restored.launch()
        restored.await_ready()
        after = restored.await_count(3 * _COUNT)
        assert (after.hash, after.in_snapshot) == (before.hash, _COUNT)
        with ClusterClient(Path(driver.aeron_dir), other_ports, 3 * _COUNT) as client:
            assert client.send(_COUNT) == 4 * _COUNT


def _take_snapshot(member: ClusterMember) -> None:
    tool = java_command("io.aeron.cluster.ClusterTool", str(member.cluster_dir), "snapshot")
    subprocess.run(tool, check=True, capture_output=True, timeout=60)


def _log_end(member: ClusterMember) -> int:
    """Return up to where an archive has recorded the cluster's log."""
    with member.archive.connect() as client:
        [log] = client.list_recordings_for_uri("", _LOG_STREAM_ID)
        return client.max_recorded_position(log.recording_id)


def _log(member: ClusterMember) -> list[tuple[int, bytes]]:
    """Positions and payloads of the messages in the recording of the cluster's log."""
    directory = aerotape.open_directory(member.archive.archive_dir)
    [log] = [
        recording
        for recording in directory.recordings()
        if recording.descriptor.stream_id == _LOG_STREAM_ID
    ]
    return [(message.position, message.payload) for message in log.messages()]
