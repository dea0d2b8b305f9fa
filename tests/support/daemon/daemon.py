"""Our archive as a child process."""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any

from support.processes import FAST_DRIVER, ROOT, ArchiveProcess, ChildProcess, HarnessError

# Offset of MarkFileHeader.activityTimestamp (int64, little-endian) in archive-mark.dat: after the
# message header, version (int32) and four bytes of padding.
_ACTIVITY_TIMESTAMP_OFFSET = 16


class AerotapeArchive(ArchiveProcess):
    """`aerotape archive`, run as a user would."""

    def __init__(self, archive_dir: Path, aeron_dir: Path, **options: Any) -> None:
        super().__init__(archive_dir, aeron_dir, **options)
        if self.driver == "embedded":
            self._properties = FAST_DRIVER | self._properties

    def _launch(self) -> ChildProcess:
        command = [sys.executable, "-m", "aerotape", "archive", "--json"]
        command += ["--dir", str(self.archive_dir), "--aeron-dir", str(self.aeron_dir)]
        command += ["--driver", self.driver, *self._arguments()]
        command += [f"-D{name}={value}" for name, value in self._properties.items()]
        env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
        return ChildProcess(command, env=env, dies_with_parent=True)

    def _arguments(self) -> list[str]:
        """Return further arguments."""
        return []

    def _is_ready(self, line: str) -> bool:
        return bool(json.loads(line)["event"] == "ready")

    def await_log(self, text: str, timeout_s: float = 60.0) -> None:
        """Wait until its log has this text."""
        deadline_s = time.monotonic() + timeout_s
        while text not in self.log():
            assert time.monotonic() < deadline_s, f"{text!r} is not in its log:\n{self.log()}"
            time.sleep(0.02)

    def stop(self, number: signal.Signals = signal.SIGTERM, timeout_s: float = 60.0) -> int:
        """Stop it by a signal and return its exit code; HarnessError when it does not end.

        Idempotent.
        """
        was_running = self.process.is_running
        code = self.process.stop(number, timeout_s)
        if was_running and code == -signal.SIGKILL:
            raise HarnessError(f"{number.name} did not stop it:\n{self.log()}")
        return code


def age_mark_file(archive_dir: Path) -> None:
    """Make the mark file of a killed archive stale, instead of waiting for it."""
    with (archive_dir / "archive-mark.dat").open("r+b") as mark_file:
        mark_file.seek(_ACTIVITY_TIMESTAMP_OFFSET)
        [timestamp] = struct.unpack("<q", mark_file.read(8))
        assert timestamp > 1_500_000_000_000, f"not an activity timestamp in ms: {timestamp}"
        mark_file.seek(_ACTIVITY_TIMESTAMP_OFFSET)
        mark_file.write(struct.pack("<q", 1))
