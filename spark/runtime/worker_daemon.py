"""PySpark's worker daemon for local masters, run from installed files.

Spark puts PySpark's code as a zip first on the search path of workers. The zip has no bytecode, so
each daemon compiles PySpark, which takes longer than a small job. The workers of a local master run
in the environment of the driver, where the same PySpark is installed.
`aerotape.spark.runtime.session` sets `spark.python.daemon.module` to this module.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import PurePath

_ZIP = "pyspark.zip"


def without_zip(path: Sequence[str]) -> list[str]:
    """Return a search path without PySpark's zip, if PySpark is also in another entry."""
    others = [entry for entry in path if PurePath(entry).name != _ZIP]
    return list(path) if PathFinder.find_spec("pyspark", others) is None else others


def main() -> None:
    """Run PySpark's daemon."""
    sys.path[:] = without_zip(sys.path)
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
