"""README.md, typed from the top in an empty folder."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.console_pages import commands, in_folder, is_like, run
from support.jvm.java import ROOT
from support.processes import FAST_ARCHIVE, FAST_DRIVER, ChildProcess, free_port

README = ROOT / "README.md"
BLOCK = re.compile(r"^```(console|python|xml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.spark
def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block runs in order, but for the port of the archive; commands print what it says."""
    aeron_dir = tempfile.mkdtemp(prefix="aerotape-test-", dir="/dev/shm")
    in_folder(tmp_path, aeron_dir, monkeypatch)
    [first, *others] = BLOCK.findall(README.read_text())
    [(start, ready), *first_commands] = commands(first[1])
    assert start.endswith(" &\n")
    properties = {
        **FAST_DRIVER,
        **FAST_ARCHIVE,
        "aeron.archive.control.channel": f"aeron:udp?endpoint=localhost:{free_port()}",
    }
    defines = [f"-D{name}={value}" for name, value in properties.items()]
    archive = ChildProcess([*start.removesuffix(" &\n").split(), *defines])
    try:
        assert is_like(ready, archive.receive(60.0) + "\n")
        run([first_commands])
        languages = []
        for language, block in others:
            languages.append(language)
            if language == "xml":
                Path("trades.xml").write_text(block)
            elif language == "console":
                run([commands(block)])
            else:
                python(block)
        assert languages == ["xml", "console", "python", "python"]
    finally:
        archive.stop()
        shutil.rmtree(aeron_dir, ignore_errors=True)


def python(example: str) -> None:
    """Run an example as a script; what it prints has what is recorded."""
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    if "aerotape.spark" in example:
        assert re.search(r"\| +1001\| +3\|", done.stdout), done.stdout
        assert re.search(r"\| +1002\| +2\|", done.stdout), done.stdout
    else:
        first, *recordings = done.stdout.splitlines()
        assert first == "[b'hello']"
        assert len(recordings) == 3


def test_it_is_short() -> None:
    """It fits on a few screens."""
    assert len(README.read_text().splitlines()) <= 120
