"""`aerotape doctor`: its findings, their fixes and the exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.daemon.command_line import CommandLine

from aerotape.tools.diagnostics import _checks

CHECKS = ["versions", "open files", "file size", "log buffers", "archive disk", "media driver"]


def doctor(
    *arguments: str, prefix: str = "", expect: int = 0, env: dict[str, str] | None = None
) -> dict[str, dict[str, Any]]:
    """Run the command in a shell, after `prefix`; return the findings by check."""
    command = [sys.executable, "-m", "aerotape", "doctor", *arguments, "--json"]
    done = subprocess.run(
        ["bash", "-c", f'{prefix} exec "$@"', "_", *command],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == expect, done.stderr
    findings = json.loads(done.stdout)
    for each in findings:
        assert (each["fix"] is None) == (each["state"] == "ok"), each
    return {each["check"]: each for each in findings}


def test_a_running_archive_is_well(cli: CommandLine, tmp_path: Path) -> None:
    """Driver and archive are found and respond; messages make a round trip."""
    found = doctor("--dir", str(tmp_path), env=cli.environment)
    assert list(found) == [*CHECKS, "archive", "round trip"]
    for check in ("media driver", "archive", "round trip"):
        assert found[check]["state"] == "ok", found
    assert "messages recorded and replayed" in found["round trip"]["found"]
    assert str(tmp_path) in found["archive disk"]["found"]


def test_a_driver_without_an_archive(cli: CommandLine) -> None:
    """The archive that does not respond is a warning, with its fix; the exit code stays 0."""
    stream = ["--control-channel", "aeron:ipc", "--control-stream-id", "4711"]
    found = doctor(*stream, "--timeout", "500ms", env=cli.environment)
    assert found["archive"]["state"] == "warning"
    assert "--control-channel" in found["archive"]["fix"]


def test_without_a_driver(tmp_path: Path) -> None:
    """It is a warning, and no archive is looked for."""
    found = doctor("--aeron-dir", str(tmp_path))
    assert list(found) == [*CHECKS, "round trip"]
    assert found["media driver"]["state"] == "warning"
    assert "aerotape driver" in found["media driver"]["fix"]


def test_limits_of_the_process(tmp_path: Path) -> None:
    """A small limit of open files is a warning; files that are too small for segments fail."""
    found = doctor("--aeron-dir", str(tmp_path), prefix="ulimit -n 200; ulimit -f 100;", expect=1)
    assert found["open files"]["state"] == "warning"
    assert "200" in found["open files"]["found"]
    assert found["file size"]["state"] == "failed"
    assert "ulimit -f unlimited" in found["file size"]["fix"]
    assert found["round trip"]["state"] == "failed"  # it cannot create its files either


def test_output_for_people(tmp_path: Path) -> None:
    """A line a finding, and its fix on the next one."""
    done = subprocess.run(
        [sys.executable, "-m", "aerotape", "doctor", "--aeron-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = done.stdout.splitlines()
    assert lines[0].startswith("ok       versions      aerotape ")
    at = next(at for at, line in enumerate(lines) if line.startswith("warning  media driver"))
    assert lines[at + 1].lstrip().startswith("fix: ")
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("check", [_checks.driver_space, _checks.archive_space])
def test_a_file_system_with_little_space(
    check: Callable[[str], _checks.Finding], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Is a warning that says how much is required, also for a directory that is missing yet."""
    usage = type("Usage", (), {"total": 64 << 20, "free": 1 << 20})
    monkeypatch.setattr("shutil.disk_usage", lambda _place: usage)
    finding = check(str(tmp_path / "missing" / "folder"))
    assert finding.state == "warning"
    assert finding.found == f"1 MiB of 64 MiB free in {tmp_path}"
    assert finding.fix is not None
    assert finding.fix.startswith("provide ")


def test_a_directory_below_a_file(tmp_path: Path) -> None:
    """Cannot be created, and fails."""
    (tmp_path / "file").write_text("")
    finding = _checks.archive_space(str(tmp_path / "file" / "archive"))
    assert finding.state == "failed"
    assert finding.found == f"cannot write in {tmp_path / 'file'}"


def test_no_round_trip_without_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails instead of filling memory, in which a write would end the process."""
    usage = type("Usage", (), {"total": 64 << 20, "free": 1 << 20})
    monkeypatch.setattr("shutil.disk_usage", lambda _place: usage)
    finding = _checks.round_trip()
    assert finding.state == "failed"
    assert "are not free" in finding.found


def test_invalid_options_are_usage_errors(cli: CommandLine) -> None:
    """One line and exit code 2, as for other commands."""
    done = subprocess.run(
        [sys.executable, "-m", "aerotape", "doctor", "--user", "someone"],
        env=cli.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "--secret-file" in done.stderr
