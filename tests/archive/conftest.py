"""A running archive daemon for the tests, started as a user would: by its command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from support import java

ROOT = Path(__file__).resolve().parents[2]
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

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


@contextmanager
def running(kind: str) -> Iterator[Daemon | java.JavaArchive]:
    """Our daemon ("aerotape") or the Java archive ("java") in directories of its own, in memory."""
    with tempfile.TemporaryDirectory(prefix="aerotape-test-", dir=IN_MEMORY) as parent:
        archive_dir, aeron_dir = Path(parent, "archive"), Path(parent, "aeron")
        if kind == "java":
            properties = {"aeron.archive.low.storage.space.threshold": "1m"}
            with java.JavaArchive(archive_dir, aeron_dir, properties=properties) as archive:
                yield archive
        else:
            with Daemon(archive_dir, aeron_dir) as daemon:
                daemon.await_ready()
                yield daemon


# Each in turn, so that what a test expects of ours is shown to be what the reference does. One
# serves a whole module, since starting takes longer than most tests: they keep to streams and
# recordings of their own.
@pytest.fixture(scope="module", params=["aerotape", "java"])
def either(request: pytest.FixtureRequest) -> Iterator[Daemon | java.JavaArchive]:
    """Our daemon, then the Java archive."""
    with running(request.param) as archive:
        yield archive
