"""Build of the native core with setuptools-rust; all else is in pyproject.toml."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import setup
from setuptools_rust import Binding, RustExtension, Strip

sys.path.insert(0, str(Path(__file__).resolve().parent / "native"))
from build_environment import build_environment

os.environ.update(build_environment(os.environ))
setup(
    rust_extensions=[
        RustExtension(
            "aerotape._native",
            path="native/Cargo.toml",
            binding=Binding.PyO3,
            py_limited_api=True,
            debug=False,
            strip=Strip.Debug,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
