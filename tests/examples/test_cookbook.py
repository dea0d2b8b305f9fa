"""The cookbook's commands print what the page says."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.jvm.java import ROOT
from support.processes import FAST_ARCHIVE, FAST_DRIVER, ChildProcess, free_port

PAGE = ROOT / "docs/cookbook.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A command with its continuation lines, then what it prints.
COMMAND = re.compile(r"^\$ (.*\n(?:> .*\n)*)((?:(?!\$ ).*\n)*)", re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks() -> list[list[tuple[str, str]]]:
    """Return the commands of each block with what they print."""
    return [
        [
            (re.sub("^> ", "", each[0], flags=re.MULTILINE), each[1])
            for each in COMMAND.findall(text)
        ]
        for text in BLOCK.findall(PAGE.read_text())
    ]


def check(wanted: str, found: str) -> None:
    """Compare an output with the page's, in which `...` stands for anything."""
    assert doctest.OutputChecker().check_output(wanted, found, FLAGS), found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the archive of the page's first command."""
    aeron_dir = tempfile.mkdtemp(prefix="aerotape-test-", dir="/dev/shm")
    monkeypatch.setenv("AERON_DIR", aeron_dir)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    [(command, ready)] = blocks()[0]
    properties = {
        **FAST_DRIVER,
        **FAST_ARCHIVE,
        "aeron.archive.control.channel": f"aeron:udp?endpoint=localhost:{free_port()}",
    }
    defines = [f"-D{name}={value}" for name, value in properties.items()]
    archive = ChildProcess([*command.split(), *defines])
    try:
        check(ready, archive.receive(60.0) + "\n")
        yield tmp_path
    finally:
        archive.stop()
        shutil.rmtree(aeron_dir, ignore_errors=True)


def test_outputs_are_those_of_the_page(folder: Path) -> None:
    tasks = blocks()[1:]
    assert len(tasks) == PAGE.read_text().count("\n## ") >= 10
    for command, wanted in (each for task in tasks for each in task):
        done = subprocess.run(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        check(wanted, done.stdout)
