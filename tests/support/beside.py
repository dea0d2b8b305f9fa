"""A thread that works beside a block."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def working(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """Run a function in a thread until the block ends: the event that it gets is set then."""
    done = threading.Event()
    thread = threading.Thread(target=work, args=(done,))
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
