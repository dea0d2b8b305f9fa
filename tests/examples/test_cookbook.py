"""The commands of the cookbook, and of the page on Java's directories, print what they say."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon.archives import serve
from support.jvm.java import ROOT
from support.processes import FAST_ARCHIVE, FAST_DRIVER, ChildProcess, free_port

import aerotape

COOKBOOK = ROOT / "docs/cookbook.md"
WITH_JAVA = ROOT / "docs/java-directory.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A command with its continuation lines, then what it prints.
COMMAND = re.compile(r"^\$ (.*\n(?:> .*\n)*)((?:(?!\$ ).*\n)*)", re.MULTILINE)
LISTING = ("aerotape list", "aerotape sql", "aerotape retain")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page: Path) -> list[list[tuple[str, str]]]:
    """Return the commands of each block with what they print."""
    return [
        [
            (re.sub("^> ", "", each[0], flags=re.MULTILINE), each[1])
            for each in COMMAND.findall(text)
        ]
        for text in BLOCK.findall(page.read_text())
    ]


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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the archive of the page's first command."""
    aeron_dir = tempfile.mkdtemp(prefix="aerotape-test-", dir="/dev/shm")
    in_folder(tmp_path, aeron_dir, monkeypatch)
    [(command, ready)] = blocks(COOKBOOK)[0]
    properties = {
        **FAST_DRIVER,
        **FAST_ARCHIVE,
        "aeron.archive.control.channel": f"aeron:udp?endpoint=localhost:{free_port()}",
    }
    defines = [f"-D{name}={value}" for name, value in properties.items()]
    archive = ChildProcess([*command.split(), *defines])
    try:
        assert is_like(ready, archive.receive(60.0) + "\n")
        yield tmp_path
    finally:
        archive.stop()
        shutil.rmtree(aeron_dir, ignore_errors=True)


def test_the_cookbook(folder: Path) -> None:
    tasks = blocks(COOKBOOK)[1:]
    assert len(tasks) == COOKBOOK.read_text().count("\n## ") >= 10
    run(tasks)


@pytest.mark.jvm
def test_a_directory_of_the_java_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded by Java's archive, which continues to run."""
    with serve("java") as served:
        in_folder(served.archive_dir.parent, str(served.aeron_dir), monkeypatch)
        with served.connect() as client, aerotape.Aeron(served.aeron_dir) as aeron:
            client.start_recording("aeron:ipc", 1001)
            publication = aeron.add_publication("aeron:ipc", 1001)
            for price in (b"1.50", b"2.50", b"3.50"):
                publication.send(b'{"price": %s}' % price)
            publication.close()
            client.await_signal(aerotape.RecordingSignal.STOP)
        monkeypatch.setenv("CHANNEL", served.control_channel)
        run(blocks(WITH_JAVA))
