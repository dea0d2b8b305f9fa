"""Threads on processors of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from aerotape.errors import ConfigurationError

NO_AFFINITY = -1


@contextmanager
def started_on(cpu: int, name: str) -> Iterator[None]:
    """Pin the threads that are started in the block to one processor; -1 pins none.

    A thread, native ones too, inherits the affinity of the thread that starts it, so that it never
    runs on another processor.

    Args:
        name: the property with the value, for errors.

    Raises:
        ConfigurationError: this process may not run there, or nowhere in particular.
    """
    if cpu == NO_AFFINITY:
        yield
        return
    if not hasattr(os, "sched_setaffinity"):
        raise ConfigurationError(f"{name}={cpu}: this system does not bind threads", name)
    before = os.sched_getaffinity(0)
    if cpu not in before:
        allowed = ", ".join(map(str, sorted(before)))
        raise ConfigurationError(
            f"{name}={cpu}: this process may not run on that processor; allowed: {allowed}", name
        )
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
