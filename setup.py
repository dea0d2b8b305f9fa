"""Build of the native core: tells Cargo where the tools from the build requirements are.

Aeron's CMake files want CMake >= 3.30 and bindgen wants libclang; both come from PyPI as build
requirements (pyproject.toml), so nothing but a C compiler, Rust and two Debian libraries must be
on the machine.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools_rust import Binding, RustExtension

ROOT = Path(__file__).parent


def module_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def prepare_environment() -> None:
    environ = os.environ
    cmake = module_folder("cmake")
    if cmake is not None:
        environ["PATH"] = f"{cmake / 'data' / 'bin'}{os.pathsep}{environ['PATH']}"
    clang = module_folder("clang")
    if clang is not None and "LIBCLANG_PATH" not in environ:
        environ["LIBCLANG_PATH"] = str(clang / "native")
        headers = subprocess.run(
            [environ.get("CC", "cc"), "-print-file-name=include"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()
        environ["BINDGEN_EXTRA_CLANG_ARGS"] = (
            f"{environ.get('BINDGEN_EXTRA_CLANG_ARGS', '')} -I{headers}".strip()
        )
    environ.setdefault(
        "CMAKE_TOOLCHAIN_FILE", str(ROOT.resolve() / "native" / "position-independent.cmake")
    )
    # The default of the bindings is -march=native; a wheel must run on other machines too.
    environ.setdefault("RUSTERON_C_MARCH", "x86-64-v2" if os.uname().machine == "x86_64" else "")


prepare_environment()
setup(
    rust_extensions=[
        RustExtension(
            "aerotape._native",
            path="native/Cargo.toml",
            binding=Binding.PyO3,
            py_limited_api=True,
            debug=False,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
