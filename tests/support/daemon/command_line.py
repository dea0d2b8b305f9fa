"""The command `aerotape`, connected to a running archive."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from aerotape.tools._cli.main import main
from support.daemon.archives import ServedArchive
from support.damage.tool_commands import Done, run
from support.json_output import check
from support.jvm.java import ROOT


@dataclass(frozen=True)
class CommandLine:
    """Runs `aerotape` with the connection in the environment."""

    archive: ServedArchive

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "AERON_DIR": str(self.archive.aeron_dir),
            "AERON_ARCHIVE_CONTROL_CHANNEL": self.archive.control_channel,
        }

    def start(self, *args: object, **options: Any) -> subprocess.Popen[Any]:
        """Start a command whose outputs are pipes."""
        return subprocess.Popen(
            [sys.executable, "-m", "aerotape", *map(str, args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
            **options,
        )

    def run(
        self, *args: object, expect: int = 0, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command and check its exit code.

        In this process, which has loaded what commands load; in another thread of it, which cannot
        have standard output for itself, as a separate process.
        """
        arguments = [str(argument) for argument in args]
        environment = self.environment if env is None else env
        if threading.current_thread() is threading.main_thread():
            done = _run_here(arguments, environment)
        else:
            command = [sys.executable, "-m", "aerotape", *arguments]
            done = subprocess.run(command, capture_output=True, env=environment, timeout=60)
        assert done.returncode == expect, done.stderr.decode()
        assert b"Traceback" not in done.stderr
        check(arguments, done.stdout.decode(errors="replace"))
        return done

    def json(self, *args: object) -> Any:
        """Run a command with --json and return what it printed."""
        return json.loads(self.run(*args, "--json").stdout)

    def record(self, *args: object) -> dict[str, str]:
        """Run a command and return the names and values that it printed for people."""
        lines = [line.partition(":") for line in self.run(*args).stdout.decode().splitlines()]
        return {name: value.strip() for name, _, value in lines}

    def error(self, *args: object, code: int = 1, env: dict[str, str] | None = None) -> str:
        """Run a command that must fail with one line on standard error; return the line."""
        done = self.run(*args, expect=code, env=env)
        assert done.stdout == b""
        lines = done.stderr.decode().splitlines()
        assert len(lines) == 1, lines
        return lines[0]


def _run_here(
    arguments: list[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in this process, with the environment and the streams of one of its own."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", RuntimeWarning)
        code = main(arguments)
    printed = []
    for stream in (out, err):
        stream.flush()
        printed.append(stream.buffer.getvalue())
    return subprocess.CompletedProcess(arguments, code, *printed)


def aerotape(*args: object, expect: int | None = 0) -> Done:
    """Run a command in this process and check its exit code; None stands for any."""
    done = run(*args)
    assert expect in (None, done.code), done.err
    return done


def tool(directory: Path | str, *args: object, expect: int | None = 0) -> Done:
    """Run a command of `aerotape tool`, as `aerotape` does."""
    return aerotape("tool", directory, *args, expect=expect)
