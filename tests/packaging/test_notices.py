"""NOTICES.txt, the licences of what a wheel contains."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.jvm.java import ROOT

NOTICES = ROOT / "NOTICES.txt"
CRATE = re.compile(r"^-{80}\n([\w-]+) (\d[^,\s]*), \S+: \S", re.MULTILINE)


def test_each_crate_is_one_of_the_lock_file() -> None:
    """With the version that is built."""
    locked = {
        (each["name"], each["version"])
        for each in tomllib.loads((ROOT / "native/Cargo.lock").read_text())["package"]
    }
    named = set(CRATE.findall(NOTICES.read_text()))
    assert len(named) > 40
    assert {"pyo3", "arrow-array", "rusteron-client"} <= {name for name, _ in named}
    assert named <= locked


def test_it_is_what_the_script_writes(tmp_path: Path) -> None:
    """No crate that is linked into the extension is missing."""
    search_path = f"{os.environ['PATH']}:{Path.home() / '.cargo/bin'}"
    if shutil.which("cargo", path=search_path) is None:
        pytest.skip("Cargo is not installed")
    script = "import notices, sys; sys.stdout.write(notices.notices())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=ROOT / "native",
        env={**os.environ, "PATH": search_path},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == NOTICES.read_text()


def test_the_distribution_has_it() -> None:
    """And the project's own licence."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"LICENSE", "NOTICES.txt"} == set(project["license-files"])
