"""Where local Spark forks its Python workers from: PySpark's own daemon, from installed files.

PySpark hands its workers its code as a zip, first on the search path. That has no bytecode, so each
daemon compiles PySpark, which takes longer than a small job. The workers of a local master run
in the environment of the driver, where the same PySpark is installed. Spark is told of this module
by `spark.python.daemon.module` (`aerotape.spark.runtime.session`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import PurePath

_ZIP = "pyspark.zip"


def without_zip(path: Sequence[str]) -> list[str]:
    """Leave PySpark's zip out of a search path if PySpark is elsewhere on it, too."""
    others = [entry for entry in path if PurePath(entry).name != _ZIP]
    return list(path) if PathFinder.find_spec("pyspark", others) is None else others


def main() -> None:
    """Run PySpark's daemon."""
    sys.path[:] = without_zip(sys.path)
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
