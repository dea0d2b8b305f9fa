"""Waiting without blocking: what replication does is written down as generators.

A *step* is a generator that the conductor advances once a turn: it yields while there is nothing
to do but wait, and returns its result when it has one. One step waits for another with
``yield from``, so that a conversation with another archive reads from top to bottom although no
part of it ever blocks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Protocol, TypeVar

from aerotape.aeron import RESOURCE_TEMPORARILY_UNAVAILABLE
from aerotape.errors import AeronError, AeronTimeoutError

if TYPE_CHECKING:
    from aerotape._native import _Pending

_T = TypeVar("_T")
_ResourceT = TypeVar("_ResourceT", bound="Closeable")
Step = Generator[None, None, _T]


class Closeable(Protocol):
    """What the driver gives and takes back."""

    def close(self) -> None: ...


def wait_for(probe: Callable[[], _T | None], deadline_ns: int, what: str) -> Step[_T]:
    """Ask `probe` every turn until it has something.

    Args:
        deadline_ns: by `time.monotonic_ns`.
        what: what cannot be done without, for the error: "failed {what}".

    Raises:
        AeronTimeoutError: it had nothing by the deadline.
    """
    while (found := probe()) is None:
        if time.monotonic_ns() >= deadline_ns:
            raise AeronTimeoutError(f"failed {what}: timeout")
        yield
    return found


def add(begin: Callable[[], _Pending[_ResourceT]], deadline_ns: int, what: str) -> Step[_ResourceT]:
    """Have the driver add something; asked again while it says that it will work later.

    Raises:
        AeronError: the driver refuses.
        AeronTimeoutError: it has not answered by the deadline.
    """
    pending: _Pending[_ResourceT] | None = None
    try:
        while True:
            if pending is None:
                pending = begin()
            try:
                if (added := pending.poll()) is not None:
                    pending = None
                    return added
            except AeronError as error:
                pending = None
                if error.code != RESOURCE_TEMPORARILY_UNAVAILABLE:
                    raise
            if time.monotonic_ns() >= deadline_ns:
                raise AeronTimeoutError(f"failed {what}: the media driver has not answered in time")
            yield
    finally:
        if pending is not None:
            pending.cancel()
