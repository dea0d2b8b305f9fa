"""Child processes of the tests: programs that print lines, and archives; ports for them."""

from __future__ import annotations

import collections
import contextlib
import functools
import queue
import random
import signal
import socket
import subprocess
import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import aerotape
from aerotape.context import Closing

ROOT = Path(__file__).resolve().parents[2]
# Small and quiet: one driver thread, sparse files, short timeouts.
FAST_DRIVER = {
    "aeron.threading.mode": "SHARED",
    "aeron.term.buffer.sparse.file": "true",
    "aeron.term.buffer.length": "65536",
    "aeron.ipc.term.buffer.length": "65536",
    "aeron.dir.delete.on.start": "true",
    "aeron.shared.idle.strategy": "org.agrona.concurrent.BackoffIdleStrategy",
}
FAST_ARCHIVE = {
    "aeron.archive.threading.mode": "SHARED",
    "aeron.archive.segment.file.length": "65536",
    "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
    "aeron.archive.recording.events.enabled": "false",
}
# A function that is called in a fork could wait for ever for a lock of a thread that it lacks.
_KILLED_WITH_ITS_PARENT = ("setpriv", "--pdeathsig", "KILL")
# Not Python's default generator, which hypothesis seeds with the same value each time.
_PORTS = random.SystemRandom()


class HarnessError(Exception):
    """A child process did not start, ended or did not respond in time."""


@contextlib.contextmanager
def inherited(number: signal.Signals, disposition: signal.Handlers) -> Iterator[None]:
    """Let processes that are started in the block have this disposition of a signal.

    Otherwise they have that of the test run, which nohup, a shell's background jobs and
    supervisors change.
    """
    before = signal.signal(number, disposition)
    try:
        yield
    finally:
        signal.signal(number, before)


def free_port() -> int:
    """Return a UDP port of the loopback interface that is not in use.

    It is not in the range from which the system draws for port 0, so that no other socket gets it
    before it is used.
    """
    while True:
        port = _PORTS.randrange(10_000, _first_ephemeral_port())
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


@functools.cache
def _first_ephemeral_port() -> int:
    first, _ = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    return int(first)


class ChildProcess:
    """A child that prints lines to stdout, and whose stderr is read as its log.

    Java programs of the harness end when their stdin ends, at the latest with the test run.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        dies_with_parent: bool = False,
    ) -> None:
        """Start it; with `dies_with_parent` it is killed when the starting thread ends."""
        self._process = subprocess.Popen(
            [*_KILLED_WITH_ITS_PARENT, *command] if dies_with_parent else command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            bufsize=1,
            env=env,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._log: collections.deque[str] = collections.deque(maxlen=500)
        self._readers = [
            threading.Thread(target=read, daemon=True) for read in (self._read, self._read_log)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._process.wait()
        self._readers[1].join(timeout=5.0)
        self._lines.put(None)

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._log.append(line)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def send(self, line: str) -> None:
        """Write a line to its stdin."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
        except (BrokenPipeError, ValueError) as error:
            raise HarnessError(f"the process has ended:\n{self.log()}") from error

    def receive(self, timeout_s: float) -> str:
        """Return the next line of its stdout; HarnessError with its log when none comes."""
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise HarnessError(f"no line within {timeout_s} s:\n{self.log()}") from None
        if line is None:
            self._lines.put(None)
            code = self._process.wait()
            raise HarnessError(f"the process has ended, exit code {code}:\n{self.log()}")
        return line

    def log(self) -> str:
        """Return the last lines that the process has written to stderr."""
        return "".join(self._log.copy())

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait until it has ended and return its exit code; subprocess.TimeoutExpired."""
        return self._process.wait(timeout_s)

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        self._process.kill()
        self._process.wait()

    def stop(self, number: signal.Signals | None = None, timeout_s: float = 15.0) -> int:
        """End its stdin, or send a signal, and wait; kill it when that is not enough.

        Returns:
            The exit code.
        """
        if number is None:
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        elif self.is_running:
            self._process.send_signal(number)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
        for reader in self._readers:
            reader.join(5.0)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        return self._process.returncode


class ArchiveProcess(Closing):
    """An archive in a child process, started by `start` or by a `with` statement."""

    def __init__(
        self,
        archive_dir: Path,
        aeron_dir: Path,
        *,
        driver: str = "embedded",
        control_port: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare the command.

        Args:
            archive_dir: the directory of the archive.
            aeron_dir: the directory of the media driver.
            driver: "embedded", or "external" for a driver that runs.
            control_port: the port of the control channel. Default: a free one.
            properties: system properties, besides those that make it small and quick.
        """
        self.archive_dir = archive_dir
        self.aeron_dir = aeron_dir
        self.driver = driver
        self.control_channel = f"aeron:udp?endpoint=localhost:{control_port or free_port()}"
        self._properties = {
            **FAST_ARCHIVE,
            "aeron.archive.control.channel": self.control_channel,
            **(properties or {}),
        }
        self._process: ChildProcess | None = None

    @property
    def process(self) -> ChildProcess:
        if self._process is None:
            raise HarnessError("the archive has not been started")
        return self._process

    @abstractmethod
    def _launch(self) -> ChildProcess:
        """Start the process."""

    @abstractmethod
    def _is_ready(self, line: str) -> bool:
        """Whether this is the line that an archive prints when it serves."""

    def launch(self) -> None:
        """Start it, to serve at some time; `await_ready` waits for that."""
        self._process = self._launch()

    def start(self, timeout_s: float = 120.0) -> Self:
        """Start it and wait until it serves; HarnessError with its log when it does not."""
        self.launch()
        return self.await_ready(timeout_s)

    def await_ready(self, timeout_s: float = 120.0) -> Self:
        """Wait until it serves; HarnessError with its log when it does not."""
        assert self._process is not None
        try:
            line = self._process.receive(timeout_s)
            if not self._is_ready(line):
                raise HarnessError(f"the archive did not start: {line}\n{self.log()}")
        except HarnessError:
            self._process.kill()
            self._process.stop()
            raise
        return self

    def connect(self, **options: Any) -> aerotape.ArchiveClient:
        """Connect our client to it, over UDP by default."""
        options.setdefault("control_request_channel", self.control_channel)
        return aerotape.connect(aeron_dir=self.aeron_dir, **options)

    def log(self) -> str:
        """Return the last lines that it has written to stderr."""
        return self.process.log()

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would, and its driver with it. Directories remain."""
        self.process.kill()

    @abstractmethod
    def stop(self) -> int:
        """Stop it cleanly and return its exit code. Idempotent."""

    def __enter__(self) -> Self:
        return self if self._process is not None else self.start()

    def close(self) -> None:
        """Stop it cleanly. Idempotent."""
        if self._process is not None:
            self.stop()
