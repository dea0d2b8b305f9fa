"""The library that controls the syncs of segment files in processes that preload it."""

from __future__ import annotations

import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("failing_sync.c")


def build_shim(folder: Path) -> Path:
    """Compile the library into a folder; return its path, for LD_PRELOAD."""
    shim = folder / "failing_sync.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, _SOURCE, "-ldl"], check=True)
    return shim
