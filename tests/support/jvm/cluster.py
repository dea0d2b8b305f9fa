"""Members and clients of an Aeron Cluster whose archives are processes of their own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aerotape.context import Closing
from support.daemon.archives import ARCHIVES
from support.daemon.daemon import age_mark_file
from support.jvm.java import java_command
from support.processes import ArchiveProcess, ChildProcess, HarnessError, free_port

# Quick failovers; long enough that a busy machine does not cause one.
_DRIVER = {
    "aeron.client.liveness.timeout": "4s",
    "aeron.publication.unblock.timeout": "5s",
    "aeron.image.liveness.timeout": "2s",
    "aeron.dir.delete.on.start": "true",
}
_CLUSTER = {
    "aeron.cluster.log.channel": "aeron:udp?term-length=64k",
    "aeron.cluster.replication.channel": "aeron:udp?endpoint=localhost:0",
    "aeron.cluster.ingress.channel": "aeron:udp?term-length=64k",
    "aeron.cluster.leader.heartbeat.timeout": "2s",
    "aeron.cluster.startup.canvass.timeout": "4s",
    "aeron.cluster.election.timeout": "500ms",
    "aeron.cluster.session.timeout": "60s",
}
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class MemberState:
    """The state of a member's service."""

    role: str
    count: int
    hash: int
    in_snapshot: int


class ClusterMember(Closing):
    """An archive with its media driver, and a Java process with consensus module and service."""

    _program = "harness.ClusterNode"

    def __init__(self, kind: str, folder: Path, member_id: int, ports: Sequence[Sequence[int]]):
        """Prepare both.

        Args:
            kind: of the archive, "aerotape" or "java".
            folder: for all directories of the member.
            member_id: its index in `ports`.
            ports: for each member ingress, consensus, log, catch-up and archive.
        """
        self.cluster_dir = folder / "cluster"
        self.archive: ArchiveProcess = ARCHIVES[kind](
            folder / "archive",
            folder / "aeron",
            control_port=ports[member_id][-1],
            properties=_DRIVER,
        )
        members = (
            f"{id}," + ",".join(f"localhost:{port}" for port in ports_of_member)
            for id, ports_of_member in enumerate(ports)
        )
        self._properties = {
            **_CLUSTER,
            "aeron.dir": str(folder / "aeron"),
            "aeron.cluster.dir": str(self.cluster_dir),
            "aeron.cluster.member.id": str(member_id),
            "aeron.cluster.members": "|".join(members),
        }
        self._node: ChildProcess | None = None
        self._archive_runs = False

    @property
    def node(self) -> ChildProcess:
        assert self._node is not None, "the node has not been started"
        return self._node

    def launch(self) -> None:
        """Start the archive, unless it runs, and the node without waiting for it."""
        if not self._archive_runs:
            self.archive.start()
            self._archive_runs = True
        self._node = ChildProcess(java_command(self._program, properties=self._properties))

    def await_ready(self) -> None:
        """Wait until the node runs.

        It is started again while the driver has counters of the one that was killed.
        """
        deadline_s = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                assert self.node.receive(_TIMEOUT_S) == "READY"
                return
            except HarnessError:
                is_early = "existing consensus module detected" in self.node.log()
                if not is_early or time.monotonic() > deadline_s:
                    raise
            self.node.stop()
            self.launch()

    def state(self) -> MemberState:
        """Return the state of the service."""
        self.node.send("")
        role, *numbers = self.node.receive(_TIMEOUT_S).split()
        return MemberState(role, *map(int, numbers))

    def await_count(self, count: int) -> MemberState:
        """Wait until the service has applied this number of messages."""
        deadline_s = time.monotonic() + _TIMEOUT_S
        while (state := self.state()).count != count:
            assert time.monotonic() < deadline_s, f"{state}, expected {count}:\n{self.node.log()}"
            time.sleep(0.02)
        return state

    def kill_node(self) -> None:
        """Kill the node as a crash would; its mark files, which look active, are deleted."""
        self.node.kill()
        for mark_file in self.cluster_dir.glob("cluster-mark*"):
            mark_file.unlink()

    def kill_archive(self) -> None:
        """Kill the archive and its driver as a crash would, and let its mark file look old."""
        self.archive.kill()
        age_mark_file(self.archive.archive_dir)
        self._archive_runs = False

    def close(self) -> None:
        """End both. Idempotent."""
        if self._node is not None:
            self._node.stop()
        self.archive.close()


class ClusterBackup(ClusterMember):
    """An archive with its media driver, and a Java process that copies what members record.

    A ClusterMember of the same folder and ports starts from the copy.
    """

    _program = "harness.ClusterBackupNode"

    def __init__(
        self, kind: str, folder: Path, ports: Sequence[int], members: Sequence[Sequence[int]]
    ):
        """Prepare both; `ports` are its own, `members` those of the cluster."""
        super().__init__(kind, folder, 0, [ports])
        self._properties |= {
            "aeron.cluster.consensus.endpoints": ",".join(f"localhost:{of[1]}" for of in members),
            "aeron.archive.control.channel": "aeron:udp",
            "aeron.archive.control.response.channel": "aeron:udp?endpoint=localhost:0",
            "aeron.cluster.backup.cool.down.interval": "1s",
        }

    def await_backing_up(self) -> None:
        """Wait until it has the last snapshot and records the log."""
        deadline_s = time.monotonic() + _TIMEOUT_S
        while True:
            self.node.send("")
            state = self.node.receive(_TIMEOUT_S)
            if state == "BACKING_UP":
                return
            assert time.monotonic() < deadline_s, f"{state}:\n{self.node.log()}"
            time.sleep(0.02)


class ClusterClient(Closing):
    """A client that sends numbered messages."""

    def __init__(self, aeron_dir: Path, ports: Sequence[Sequence[int]], applied: int = 0):
        """Connect to the leader.

        Args:
            aeron_dir: the directory of a media driver that outlives the members.
            ports: the members', as in ClusterMember.
            applied: the number of messages that the service has applied.
        """
        endpoints = ",".join(f"{id}=localhost:{of[0]}" for id, of in enumerate(ports))
        properties = {
            "aeron.dir": str(aeron_dir),
            "aeron.cluster.ingress.channel": "aeron:udp?term-length=64k",
            "aeron.cluster.ingress.endpoints": endpoints,
            "aeron.cluster.egress.channel": "aeron:udp?term-length=64k|endpoint=localhost:0",
            "aeron.cluster.message.timeout": "20s",
        }
        self._process = ChildProcess(
            java_command("harness.ClusterClient", str(applied), properties=properties)
        )
        self.leader = int(self._process.receive(_TIMEOUT_S))

    def send(self, count: int) -> int:
        """Send messages; return the number that the service has applied since its start."""
        self._process.send(str(count))
        leader, applied = self._process.receive(_TIMEOUT_S).split()
        self.leader = int(leader)
        return int(applied)

    def close(self) -> None:
        """End it. Idempotent."""
        self._process.stop()


def ports_for(members: int) -> list[list[int]]:
    """Return free ports for the members of a cluster, as ClusterMember takes them."""
    return [[free_port() for _ in range(5)] for _ in range(members)]
