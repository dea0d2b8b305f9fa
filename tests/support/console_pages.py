"""Pages whose commands tests run in order, comparing what they print with what the page says."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.jvm.java import ROOT

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A command with its continuation lines, then what it prints.
COMMAND = re.compile(r"^\$ (.*\n(?:> .*\n)*)((?:(?!\$ ).*\n)*)", re.MULTILINE)
LISTING = ("aerotape list", "aerotape sql", "aerotape retain")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands(block: str) -> list[tuple[str, str]]:
    """Return the commands of a console block with what they print."""
    return [
        (re.sub("^> ", "", each[0], flags=re.MULTILINE), each[1])
        for each in COMMAND.findall(block)
    ]


def blocks(page: Path) -> list[list[tuple[str, str]]]:
    """Return the commands of each console block of a page with what they print."""
    return [commands(text) for text in BLOCK.findall(page.read_text())]


def is_like(wanted: str, found: str) -> bool:
    """Compare an output with the page's, in which `...` stands for anything."""
    return doctest.OutputChecker().check_output(wanted, found, FLAGS)


def in_folder(folder: Path, aeron_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands run in a folder, with a media driver's directory."""
    monkeypatch.setenv("AERON_DIR", aeron_dir)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.chdir(folder)


def run(tasks: list[list[tuple[str, str]]]) -> None:
    """Run commands, and compare what they print."""
    for command, wanted in (each for task in tasks for each in task):
        deadline_s = time.monotonic() + 10
        # The archive stops a recording a moment after its publisher; a policy has an age.
        while not is_like(wanted, found := output(command)) and command.startswith(LISTING):
            assert time.monotonic() < deadline_s, found
        assert is_like(wanted, found), found


def output(command: str) -> str:
    """Return what a command prints on both streams."""
    return subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    ).stdout
