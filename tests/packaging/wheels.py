"""Check what built extensions need from the system: the C library alone, and not a newer one.

usage: wheels.py FILE...; each a wheel, or an extension, whose machine and C library are not checked
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

# The C library (libpthread and libdl are files of their own before 2.34), and GCC's runtime.
ALLOWED = re.compile(r"lib(c|m|gcc_s|pthread|dl)\.so\.\d|ld-linux-[\w-]+\.so\.\d")
NEWEST = (2, 28)
MACHINES = {"x86_64": "X86-64", "aarch64": "AArch64"}


def _readelf(option: str, library: Path) -> str:
    command = ["readelf", "--wide", option, str(library)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _problems(library: Path) -> Iterator[str]:
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", _readelf("--dynamic", library)))
    if "libc.so.6" not in needed:
        yield "does not need the C library"
    yield from (f"needs {name}" for name in sorted(needed) if not ALLOWED.fullmatch(name))


def _problems_of_wheel(library: Path, architecture: str) -> Iterator[str]:
    yield from _problems(library)
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", _readelf("--version-info", library))
    newest = max((int(major), int(minor)) for major, minor in versions)
    if newest != NEWEST:
        yield f"needs glibc {newest[0]}.{newest[1]}, expected {NEWEST[0]}.{NEWEST[1]}"
    if MACHINES[architecture] not in _readelf("--file-header", library):
        yield f"is not for {architecture}"


def check(file: Path) -> list[str]:
    """Return what is wrong with a wheel or an extension."""
    if file.suffix != ".whl":
        return list(_problems(file))
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(file) as wheel:
        library = Path(wheel.extract("aerotape/_native.abi3.so", folder))
        return list(_problems_of_wheel(library, re.split(r"2_28_|\.whl", file.name)[1]))


def main() -> int:
    """Report the problems of the files; 1 if there are any."""
    found = [f"{name}: {each}" for name in sys.argv[1:] for each in check(Path(name))]
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found or not sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
