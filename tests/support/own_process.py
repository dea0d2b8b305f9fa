"""A separate Python process, for what changes a process permanently, such as Spark."""

from __future__ import annotations

import os
import subprocess
import sys

from support.processes import ROOT


def run_python(
    *arguments: object, stdin: str | None = None, timeout_s: float = 120.0, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run Python with arguments and environment variables; it can import aerotape and `support`.

    Returns:
        What it printed, and its exit code.
    """
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", **variables},
    )
