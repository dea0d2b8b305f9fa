"""What the extension needs from the system: this one, and those of the wheels in dist/."""

from __future__ import annotations

import re
import subprocess
import zipfile
from pathlib import Path

import pytest
from support.jvm.java import ROOT

from aerotape import _native

# The C library (libpthread and libdl are files of their own before 2.34), and GCC's runtime.
ALLOWED = re.compile(r"lib(c|m|gcc_s|pthread|dl)\.so\.\d|ld-linux-[\w-]+\.so\.\d")
WHEELS = sorted((ROOT / "dist").glob("*-manylinux_2_28_*.whl"))


def readelf(option: str, library: Path) -> str:
    command = ["readelf", "--wide", option, str(library)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(library: Path) -> set[str]:
    """Return the names of the libraries that the loader must find."""
    found = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic", library)))
    assert "libc.so.6" in found
    return found


def test_this_extension_needs_the_c_library_alone() -> None:
    assert _native.__file__ is not None
    assert {name for name in needed(Path(_native.__file__)) if not ALLOWED.fullmatch(name)} == set()


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name)
def test_wheels_need_glibc_2_28(wheel: Path, tmp_path: Path) -> None:
    """The newest symbol is that of the platform's tag, and nothing but the C library is needed."""
    with zipfile.ZipFile(wheel) as file:
        library = Path(file.extract("aerotape/_native.abi3.so", tmp_path))
    assert {name for name in needed(library) if not ALLOWED.fullmatch(name)} == set()
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", readelf("--version-info", library))
    assert max((int(major), int(minor)) for major, minor in versions) == (2, 28)
    machine = {"x86_64": "X86-64", "aarch64": "AArch64"}[re.split(r"2_28_|\.whl", wheel.name)[1]]
    assert machine in readelf("--file-header", library)
