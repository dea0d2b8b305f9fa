"""The commands as a user runs them, with the Java archive and with ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import KINDS, ServedArchive, serve

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class CommandLine:
    """Runs `aerotape` in a separate process, with the connection in the environment."""

    archive: ServedArchive

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "AERON_DIR": str(self.archive.aeron_dir),
            "AERON_ARCHIVE_CONTROL_CHANNEL": self.archive.control_channel,
        }

    def command(self, *args: object) -> list[str]:
        """Return the command line, to be run with `environment`."""
        return [sys.executable, "-m", "aerotape", *map(str, args)]

    def run(
        self, *args: object, expect: int = 0, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command and check its exit code."""
        done = subprocess.run(
            self.command(*args),
            capture_output=True,
            env=self.environment if env is None else env,
            timeout=60,
        )
        assert done.returncode == expect, done.stderr.decode()
        assert b"Traceback" not in done.stderr
        return done

    def json(self, *args: object) -> Any:
        """Run a command with --json and return what it printed."""
        return json.loads(self.run(*args, "--json").stdout)

    def error(self, *args: object, code: int = 1, env: dict[str, str] | None = None) -> str:
        """Run a command that must fail with one line on standard error; return the line."""
        done = self.run(*args, expect=code, env=env)
        assert done.stdout == b""
        lines = done.stderr.decode().splitlines()
        assert len(lines) == 1, lines
        return lines[0]


@pytest.fixture(scope="module", params=KINDS)
def cli(request: pytest.FixtureRequest) -> Iterator[CommandLine]:
    """The command line, with a running archive."""
    with serve(request.param) as served:
        yield CommandLine(served)
