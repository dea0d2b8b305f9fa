"""The systemd unit and the Containerfile, as far as a machine without either can run them."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.daemon.daemon import AerotapeArchive
from support.jvm.java import ROOT
from support.processes import FAST_ARCHIVE

DEPLOY = ROOT / "examples/deploy"
UNIT = DEPLOY / "aerotape-archive.service"
INSTRUCTION = re.compile(r"^([A-Z]+) (.*(?:\\\n.*)*)$", re.MULTILINE)
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd is not installed"
)


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Containerfile with their arguments."""
    return INSTRUCTION.findall((DEPLOY / "Containerfile").read_text())


def command(name: str) -> list[str]:
    """Return the command of an instruction in the form of JSON."""
    [text] = [text[text.index("[") :] for found, text in instructions() if found == name]
    found = json.loads(text)
    assert isinstance(found, list)
    return found


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "aerotape", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tempfile.gettempdir(),
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )


@needs_systemd
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """Without a warning, once the program that it starts is there; and exposes little."""
    unit = tmp_path / UNIT.name
    program = tmp_path / "aerotape"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit.write_text(UNIT.read_text().replace("/opt/aerotape/bin/aerotape", str(program)))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    exposure = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)]
    assert subprocess.run(exposure, capture_output=True).returncode == 0


def test_the_unit_starts_an_archive(tmp_path: Path) -> None:
    """Its command line is valid."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read(UNIT)
    properties = tmp_path / "archive.properties"
    properties.write_text("aeron.archive.control.channel=aeron:udp?endpoint=localhost:8010\n")
    program, *arguments = shlex.split(parser["Service"]["ExecStart"])
    assert program.endswith("/bin/aerotape")
    arguments[-1] = str(properties)
    done = run(*arguments, "--print-config", "--json")
    assert done.returncode == 0, done.stderr
    assert "aeron:udp?endpoint=localhost:8010" in done.stdout


def test_the_container_starts_an_archive() -> None:
    """Its command line is valid, and it copies what `make wheel` builds."""
    program, *arguments = [*command("ENTRYPOINT"), *command("CMD")]
    assert program == "aerotape"
    done = run(*arguments, "--print-config", "--json")
    assert done.returncode == 0, done.stderr
    assert "aeron:udp?endpoint=0.0.0.0:8010" in done.stdout
    [copied] = [text.split()[0] for name, text in instructions() if name == "COPY"]
    for architecture in ("x86_64", "aarch64"):
        wheel = f"dist/aerotape-1.2.3-cp311-abi3-manylinux_2_28_{architecture}.whl"
        assert Path(wheel).match(copied)


def test_the_health_check(tmp_path: Path, aeron_dir: Path) -> None:
    """It succeeds beside an archive in the container, and fails without one."""
    program, *arguments = command("HEALTHCHECK")
    assert program == "aerotape"
    channels = {"aeron.archive.control.channel": "aeron:udp?endpoint=localhost:0"}
    with AerotapeArchive(tmp_path / "archive", aeron_dir, properties=FAST_ARCHIVE | channels):
        done = run(*arguments, AERON_DIR=str(aeron_dir))
        assert done.returncode == 0, done.stderr
    assert run(*arguments, AERON_DIR=str(aeron_dir)).returncode == 1
