"""A running archive daemon for the tests, started as a user would: by its command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from support import java

ROOT = Path(__file__).resolve().parents[2]

# Small files and buffers: many daemons are started, in memory.
SMALL = {
    "aeron.threading.mode": "SHARED",
    "aeron.term.buffer.sparse.file": "true",
    "aeron.term.buffer.length": "65536",
    "aeron.ipc.term.buffer.length": "65536",
    "aeron.dir.delete.on.start": "true",
    "aeron.archive.segment.file.length": "64k",
    "aeron.archive.low.storage.space.threshold": "1m",
}


class Daemon:
    """`aerotape archive` as a child process."""

    def __init__(
        self,
        archive_dir: Path,
        aeron_dir: Path,
        *,
        driver: str = "embedded",
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.archive_dir = archive_dir
        self.aeron_dir = aeron_dir
        self.control_channel = f"aeron:udp?endpoint=localhost:{java.free_port()}"
        merged = {
            **SMALL,
            "aeron.archive.control.channel": self.control_channel,
            **(properties or {}),
        }
        command = [sys.executable, "-m", "aerotape", "archive", "--json"]
        command += ["--dir", str(archive_dir), "--aeron-dir", str(aeron_dir), "--driver", driver]
        command += [f"-D{name}={value}" for name, value in merged.items()]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self._log: list[str] = []
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._log.append(line)

    def log(self) -> str:
        """What it has written to stderr."""
        return "".join(self._log)

    def await_ready(self) -> dict[str, Any]:
        """Return what it says of itself once it is up."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait(10)
            self._reader.join(5)
            raise AssertionError(f"the daemon ended: {self.process.returncode}\n{self.log()}")
        ready: dict[str, Any] = json.loads(line)
        return ready

    def stop(self, number: signal.Signals = signal.SIGTERM, timeout_s: float = 20.0) -> int:
        """Send a signal, wait for the end and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError(f"{number.name} did not stop it\n{self.log()}") from None
        self._reader.join(5)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return self.process.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


@pytest.fixture
def start_daemon(tmp_path: Path, aeron_dir: Path) -> Iterator[Callable[..., Daemon]]:
    """A function that starts a daemon (its arguments: those of Daemon) and awaits it."""
    with ExitStack() as stack:

        def start(**options: Any) -> Daemon:
            options.setdefault("archive_dir", tmp_path / "archive")
            options.setdefault("aeron_dir", aeron_dir)
            daemon = stack.enter_context(Daemon(**options))
            daemon.await_ready()
            return daemon

        yield start


@pytest.fixture
def daemon(start_daemon: Callable[..., Daemon]) -> Daemon:
    """A running daemon with the defaults of these tests."""
    return start_daemon()


@pytest.fixture
def client(daemon: Daemon) -> Iterator[java.JavaClient]:
    """A Java client that is connected to the daemon."""
    with java.JavaClient(daemon.aeron_dir) as connected:
        connected.connect(daemon.control_channel)
        yield connected


@pytest.fixture(params=["aerotape", "java"])
def either(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    aeron_dir: Path,
    start_daemon: Callable[..., Daemon],
) -> Iterator[Daemon | java.JavaArchive]:
    """Our daemon and the Java archive in turn: what a test expects of ours is the reference's."""
    if request.param == "aerotape":
        yield start_daemon()
        return
    with java.JavaArchive(
        tmp_path / "archive",
        aeron_dir,
        properties={"aeron.archive.low.storage.space.threshold": "1m"},
    ) as archive:
        yield archive
