"""A session of Spark Connect that starts its server."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOCK = Path(tempfile.gettempdir(), "aerotape-tests-spark-connect.lock")


@contextmanager
def local_url() -> Iterator[str]:
    """Yield its URL while no other test has one: such servers all listen on port 15002."""
    with _LOCK.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield "local[2]"
