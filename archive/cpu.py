"""Threads on processors of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from aerotape.errors import ConfigurationError

NO_AFFINITY = -1


@contextmanager
def started_on(cpu: int, name: str) -> Iterator[None]:
    """Have the threads that are started inside run on one processor; -1 on any.

    A thread begins with the affinity of the one that starts it, native ones too: nobody has to be
    told, and none runs elsewhere first.

    Args:
        name: the property that says so, for errors.

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
