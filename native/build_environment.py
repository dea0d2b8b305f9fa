"""The environment Cargo needs to build the native core: where CMake and libclang are.

Aeron's CMake files want CMake >= 3.30 and bindgen wants libclang; both come from PyPI as build
requirements (pyproject.toml), so that nothing but a C compiler and Rust must be on the
machine. setup.py uses this; to run Cargo by hand:

    eval "$(.venv/bin/python native/build_environment.py)" && cd native && cargo build --release
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

NATIVE = Path(__file__).resolve().parent
# The bindings' default is -march=native; a wheel must run on other machines too.
BASELINE_CPU = {"x86_64": "x86-64-v2", "aarch64": "armv8-a"}


def build_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to set; those the caller has set already are left alone."""
    variables: dict[str, str] = {}
    target = environ.get("CARGO_BUILD_TARGET", "")
    architecture = target.partition("-")[0] or os.uname().machine
    cmake = _package_folder("cmake")
    if cmake is not None:
        search_path = environ.get("PATH", os.defpath)
        variables["PATH"] = f"{cmake / 'data' / 'bin'}{os.pathsep}{search_path}"
    clang = _package_folder("clang")
    if clang is not None and "LIBCLANG_PATH" not in environ:
        variables["LIBCLANG_PATH"] = str(_at_a_stable_place(clang / "native", environ))
        headers = _zig_headers(architecture) if target else _compiler_headers(environ)
        arguments = f"{environ.get('BINDGEN_EXTRA_CLANG_ARGS', '')} {headers}"
        variables["BINDGEN_EXTRA_CLANG_ARGS"] = arguments.strip()
    variables["UUID_NO_PKG_CONFIG"] = "1"  # toolchain.cmake has Aeron do without
    if "CMAKE_TOOLCHAIN_FILE" not in environ:
        variables["CMAKE_TOOLCHAIN_FILE"] = str(NATIVE / "toolchain.cmake")
    if not target and "PYO3_PYTHON" not in environ:
        # As setuptools-rust has it: PyO3, with all of ours after it, is built again if it changes.
        variables["PYO3_PYTHON"] = sys.executable
    cpu = BASELINE_CPU.get(architecture)
    if cpu is not None and "RUSTERON_C_MARCH" not in environ:
        variables["RUSTERON_C_MARCH"] = cpu
    return variables


def _compiler_headers(environ: Mapping[str, str]) -> str:
    """Return Clang's options for the headers of the C compiler."""
    compiler = [environ.get("CC", "cc"), "-print-file-name=include"]
    found = subprocess.run(compiler, capture_output=True, text=True, check=True)
    return f"-I{found.stdout.strip()}"


def _zig_headers(architecture: str) -> str:
    """Return Clang's options for the headers of Zig's C library, for another target."""
    zig = _package_folder("ziglang")
    if zig is None:
        raise SystemExit("Zig is not installed: pip install ziglang cargo-zigbuild")
    family = {"x86_64": "x86"}.get(architecture, architecture)
    folders = (
        "include",
        f"libc/include/{family}-linux-gnu",
        "libc/include/generic-glibc",
        f"libc/include/{family}-linux-any",
        "libc/include/any-linux-any",
    )
    return " ".join(["-nostdinc", *(f"-isystem {zig / 'lib' / each}" for each in folders)])


def _package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def _at_a_stable_place(libclang: Path, environ: Mapping[str, str]) -> Path:
    """Link libclang into the target folder and return the link.

    An isolated build has its requirements in a temporary folder of another name each time, and
    bindgen, with all of Aeron after it, is built again when LIBCLANG_PATH changes.
    """
    target = Path(environ.get("CARGO_TARGET_DIR", NATIVE / "target")).absolute()
    target.mkdir(parents=True, exist_ok=True)
    link = target / "libclang"
    fresh = target / f"libclang-{os.getpid()}"
    fresh.symlink_to(libclang)
    fresh.replace(link)
    return link


if __name__ == "__main__":
    if shutil.which("cc") is None and "CC" not in os.environ:
        raise SystemExit("no C compiler: run native/prerequisites.sh")
    for name, value in build_environment(os.environ).items():
        print(f"export {name}={shlex.quote(value)}")
