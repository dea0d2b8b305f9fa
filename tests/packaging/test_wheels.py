"""What the extension needs from the system: this one, and those of the wheels in dist/."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.jvm.java import ROOT

from aerotape import _native

WHEELS = sorted((ROOT / "dist").glob("*-manylinux_2_28_*.whl"))


def check(file: Path | str) -> tuple[int, str]:
    """Run what `make wheel` runs; return its exit code and what it reports."""
    script = Path(__file__).with_name("wheels.py")
    done = subprocess.run([sys.executable, script, file], capture_output=True, text=True)
    return done.returncode, done.stderr


def test_this_extension_needs_the_c_library_alone() -> None:
    assert _native.__file__ is not None
    assert check(_native.__file__) == (0, "")


def test_another_library_is_reported(tmp_path: Path) -> None:
    """A program that is linked with zlib."""
    library = tmp_path / "other.so"
    command = ["cc", "-shared", "-o", str(library), "-Wl,--no-as-needed", "-l:libz.so.1"]
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("no C compiler, or no zlib")
    code, reported = check(library)
    assert (code, "needs libz.so.1" in reported) == (1, True)


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name)
def test_wheels_need_glibc_2_28(wheel: Path) -> None:
    """The newest symbol is that of the platform's tag, and nothing but the C library is needed."""
    assert check(wheel) == (0, "")
