"""The build: the Makefile and the check of what a machine must have."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.jvm.java import ROOT


def make(checkout: Path, target: str) -> subprocess.CompletedProcess[str]:
    """Run make in a checkout, without carrying out its commands."""
    return subprocess.run(
        ["make", "-n", "-C", checkout, "-f", ROOT / "Makefile", target],
        capture_output=True,
        text=True,
        env={**os.environ, "MAKEFLAGS": ""},
    )


def test_a_copied_checkout_must_be_cleaned(tmp_path: Path) -> None:
    """Targets other than `clean` and `help` are refused where the environment has another path."""
    built, copy = tmp_path / "built here", tmp_path / "copy"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", built / ".venv"], check=True)
    built.rename(copy)
    refused = make(copy, "check")
    assert refused.returncode == 2
    assert f"was built in {built} and then copied or moved" in refused.stderr
    assert "make clean" in refused.stderr
    assert make(copy, "clean").returncode == make(copy, "help").returncode == 0
    copy.rename(built)
    assert "was built in" not in make(built, "check").stderr


def test_the_rust_version_that_is_asked_for_is_cargos(tmp_path: Path) -> None:
    """With an older compiler, the check names the version in Cargo.toml."""
    rust_version = tomllib.loads((ROOT / "native/Cargo.toml").read_text())["package"][
        "rust-version"
    ]
    rustc = tmp_path / "rustc"
    rustc.write_text("#!/bin/sh\necho rustc 1.88.0\n")
    rustc.chmod(0o755)
    for name in ("cargo", "apt-get"):
        (tmp_path / name).symlink_to(rustc)
    done = subprocess.run(
        [ROOT / "native/prerequisites.sh", sys.executable],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert done.returncode == 1
    assert f"Rust 1.88.0 is too old: {rust_version} or newer is needed" in done.stderr


def test_a_wheel_needs_neither_root_nor_a_jdk(tmp_path: Path) -> None:
    """A compiler, Rust and Python are enough: where there is nothing else, nothing is missing."""
    tools = ("sh", "sed", "sort", "head", "tr", "cut", "dirname", "cc", "c++", "make")
    for name in tools:
        (tmp_path / name).symlink_to(shutil.which(name) or pytest.skip(f"there is no {name}"))
    for name in ("cargo", "rustc"):
        (tmp_path / name).write_text("#!/bin/sh\necho rustc 1.999.0\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [ROOT / "native/prerequisites.sh", sys.executable, "wheel"],
        capture_output=True,
        text=True,
        env={"PATH": str(tmp_path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    planned = make(ROOT, "wheel").stdout
    assert "tests/packaging/wheels.py dist" in planned
    assert "--editable" not in planned and "mvn" not in planned
