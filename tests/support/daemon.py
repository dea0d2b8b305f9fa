"""Our archive as a child process, with the same handles as support.java.JavaArchive."""

from __future__ import annotations

import collections
import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from aerotape.closing import Closing
from support.java import FAST_ARCHIVE, FAST_DRIVER, ROOT, HarnessError, free_port

_PR_SET_PDEATHSIG = 1
# Offset of MarkFileHeader.activityTimestamp (int64, little-endian) in archive-mark.dat: after the
# message header, version (int32) and four bytes of padding.
_ACTIVITY_TIMESTAMP_OFFSET = 16


def _end_with_the_test_run() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class AerotapeArchive(Closing):
    """`aerotape archive`, run as a user would.

    Attributes:
        ready: what it said of itself when it was up.
    """

    def __init__(
        self,
        archive_dir: Path,
        aeron_dir: Path,
        *,
        driver: str = "embedded",
        control_port: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.archive_dir = archive_dir
        self.aeron_dir = aeron_dir
        self.driver = driver
        self.control_channel = f"aeron:udp?endpoint=localhost:{control_port or free_port()}"
        self.response_channel = "aeron:udp?endpoint=localhost:0"
        driver_properties = {} if driver == "external" else dict(FAST_DRIVER)
        self._properties = {
            **driver_properties,
            **FAST_ARCHIVE,
            "aeron.archive.control.channel": self.control_channel,
            **(properties or {}),
        }
        self.ready: dict[str, Any] = {}
        self._process: subprocess.Popen[str] | None = None
        self._log: collections.deque[str] = collections.deque(maxlen=500)
        self._log_reader: threading.Thread | None = None

    @property
    def process(self) -> subprocess.Popen[str]:
        if self._process is None:
            raise HarnessError("the archive has not been started")
        return self._process

    def log(self) -> str:
        """Return the last lines that it has written to stderr."""
        return "".join(self._log.copy())

    def await_log(self, text: str, timeout_s: float = 60.0) -> None:
        """Wait until it has said this; a thread reads what it says, sooner or later."""
        deadline_s = time.monotonic() + timeout_s
        while text not in self.log():
            assert time.monotonic() < deadline_s, f"{text!r} is not in its log:\n{self.log()}"
            time.sleep(0.02)

    def start(self, timeout_s: float = 120.0) -> Self:
        """Start it and wait until it serves; HarnessError with its log when it does not."""
        command = [sys.executable, "-m", "aerotape", "archive", "--json"]
        command += ["--dir", str(self.archive_dir), "--aeron-dir", str(self.aeron_dir)]
        command += ["--driver", self.driver]
        command += [f"-D{name}={value}" for name, value in self._properties.items()]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
            preexec_fn=_end_with_the_test_run,
        )
        self._log_reader = threading.Thread(target=self._read_log, daemon=True)
        self._log_reader.start()
        give_up = threading.Timer(timeout_s, self._process.kill)
        give_up.start()
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        give_up.cancel()
        if not line:
            code = self.stop()
            raise HarnessError(f"the archive did not start, exit code {code}:\n{self.log()}")
        self.ready = json.loads(line)
        assert self.ready["event"] == "ready"
        return self

    def _read_log(self) -> None:
        assert self._process is not None and self._process.stderr is not None
        for line in self._process.stderr:
            self._log.append(line)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would; its own driver goes with it."""
        self.process.kill()
        self.process.wait()

    def stop(self, number: signal.Signals = signal.SIGTERM, timeout_s: float = 60.0) -> int:
        """Have a signal stop it and return its exit code; HarnessError when it does not end.

        Idempotent.
        """
        process = self.process
        if process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.kill()
                raise HarnessError(f"{number.name} did not stop it:\n{self.log()}") from None
        if self._log_reader is not None:
            self._log_reader.join(5.0)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        return process.returncode

    def __enter__(self) -> Self:
        return self if self._process is not None else self.start()

    def close(self) -> None:
        """Stop it. Idempotent."""
        self.stop()


def age_mark_file(archive_dir: Path) -> None:
    """Make the mark file of a killed archive look stale, to save waiting for it to become so."""
    with (archive_dir / "archive-mark.dat").open("r+b") as mark_file:
        mark_file.seek(_ACTIVITY_TIMESTAMP_OFFSET)
        [timestamp] = struct.unpack("<q", mark_file.read(8))
        assert timestamp > 1_500_000_000_000, f"not an activity timestamp in ms: {timestamp}"
        mark_file.seek(_ACTIVITY_TIMESTAMP_OFFSET)
        mark_file.write(struct.pack("<q", 1))
