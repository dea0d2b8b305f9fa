"""A separate Python process, for what changes a process permanently, such as Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import aerotape


def run_script(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script that can import this aerotape, and return what it printed and its exit code."""
    root = Path(aerotape.__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
