"""The first Python example of README.md."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.jvm.java import ROOT
from support.processes import free_port


def test_it_records_and_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands there, but for the port."""
    example = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)[0]
    assert ":8010" in example
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with tempfile.TemporaryDirectory(prefix="aerotape-test-", dir="/dev/shm") as aeron_dir:
        monkeypatch.setenv("AERON_DIR", f"{aeron_dir}/aeron")
        done = subprocess.run(
            [sys.executable, "-c", example.replace(":8010", f":{free_port()}")],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "0 b'hello'" in lines
    assert lines[-1].endswith(" 64")
