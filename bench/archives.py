"""The two archives of a benchmark, ours and the Java one, each in its own process.

Both run on the same kind of media driver with the same settings and in the same threading mode,
so that a ratio compares only the archives.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from support.jvm.java import JAVA_OPENS, java_command
from support.processes import FAST_ARCHIVE, ROOT, free_port

from aerotape.context import Closing

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
IPC = "aeron:ipc"
# Control streams: over UDP, and over IPC.
STREAM_ID = 10
LOCAL_STREAM_ID = 110


class Child(Closing):
    """A child process that is ready when it has printed its first line.

    It is stopped by SIGTERM, or by the end of its input: a Java archive that is terminated leaves
    a mark file that looks active.
    """

    def __init__(
        self,
        command: list[str],
        *,
        await_ready: bool = True,
        ends_with_input: bool = False,
        root: Path = ROOT,
    ) -> None:
        self._ends_with_input = ends_with_input
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
        )
        assert self._process.stdout is not None
        if await_ready and not self._process.stdout.readline():
            raise RuntimeError(f"did not start: {' '.join(command)}")

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu_seconds(self) -> float:
        """Processor time that the process has used so far, all threads, user and system."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def wake_ups(self) -> int:
        """The number of times that its threads began to run after waiting (context switches)."""
        statuses = Path(f"/proc/{self.pid}/task").glob("*/status")
        found = (
            re.search(r"^voluntary_ctxt_switches:\s+(\d+)", each.read_text(), re.MULTILINE)
            for each in statuses
        )
        return sum(int(each[1]) for each in found if each)

    def close(self) -> None:
        """Stop the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._ends_with_input:
            try:
                self._process.wait(30)
                return
            except subprocess.TimeoutExpired:
                pass
        self._process.terminate()
        self._process.wait(30)


def media_driver(aeron_dir: Path) -> Child:
    """Start the C media driver in its own process."""
    properties = {
        "aeron.dir": str(aeron_dir),
        "aeron.dir.delete.on.start": "true",
        "aeron.dir.delete.on.shutdown": "true",
        "aeron.term.buffer.sparse.file": "true",
    }
    defines = [f"-D{name}={value}" for name, value in properties.items()]
    return Child([sys.executable, "-m", "aerotape", "driver", *defines])


class BenchedArchive:
    """The commands to start one of the archives, and its control channel."""

    def __init__(
        self, name: str, aeron_dir: Path, archive_dir: Path, earlier: Path | None = None
    ) -> None:
        """Prepare "aerotape" or "java"; `earlier` is another checkout to start aerotape from."""
        self.name = name
        self._earlier = earlier
        self.aeron_dir = aeron_dir
        self.archive_dir = archive_dir
        self.control_channel = f"aeron:udp?endpoint=localhost:{free_port()}"

    def control_address(self, media: str) -> tuple[str, int]:
        """Return channel and stream of requests over "ipc" or "udp"."""
        return (IPC, LOCAL_STREAM_ID) if media == "ipc" else (self.control_channel, STREAM_ID)

    def start(
        self, driver: str, properties: Mapping[str, str], *, await_ready: bool = True
    ) -> Child:
        """Start the archive with an "embedded" or on an "external" driver."""
        settings = {
            "aeron.archive.threading.mode": FAST_ARCHIVE["aeron.archive.threading.mode"],
            "aeron.archive.replication.channel": FAST_ARCHIVE["aeron.archive.replication.channel"],
            "aeron.archive.control.channel": self.control_channel,
            "aeron.archive.local.control.stream.id": str(LOCAL_STREAM_ID),
            "aeron.dir.delete.on.start": "true" if driver == "embedded" else "false",
            **properties,
        }
        if self.name == "aerotape":
            root = self._earlier or ROOT
            python = str(root / ".venv/bin/python") if self._earlier else sys.executable
            command = [python, "-m", "aerotape", "archive", "--driver", driver]
            command += ["--dir", str(self.archive_dir), "--aeron-dir", str(self.aeron_dir)]
            command += [f"-D{name}={value}" for name, value in settings.items()]
            return Child(command, await_ready=await_ready, root=root)
        settings |= {"aeron.dir": str(self.aeron_dir), "aeron.archive.dir": str(self.archive_dir)}
        command = java_command(
            "harness.ArchiveProcess", driver, properties=settings, options=JAVA_OPENS
        )
        return Child(command, await_ready=await_ready, ends_with_input=True)


def java_client_command(name: str, *arguments: object) -> list[str]:
    """Return the command that runs one of the programs in `java/`."""
    source = Path(__file__).parent / "java" / f"{name}.java"
    return java_command(str(source), *map(str, arguments), options=JAVA_OPENS)


def run_java_client(name: str, *arguments: object, timeout_s: float) -> str:
    """Run one of the programs in `java/` and return what it has printed."""
    done = subprocess.run(
        java_client_command(name, *arguments),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout


def idle_cpu_percent(child: Child, settle_s: float, window_s: float) -> float:
    """Return the percentage of a core that the process uses while it is idle."""
    time.sleep(settle_s)
    before, started_at = child.cpu_seconds(), time.perf_counter()
    time.sleep(window_s)
    return 100.0 * (child.cpu_seconds() - before) / (time.perf_counter() - started_at)
