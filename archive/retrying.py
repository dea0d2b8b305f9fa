"""Repeats the add of a resource while the driver refuses it temporarily.

The port or session id of a closed channel is in use until the driver has cleaned up; until then
it refuses with RESOURCE_TEMPORARILY_UNAVAILABLE.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from aerotape.aeron import RESOURCE_TEMPORARILY_UNAVAILABLE
from aerotape.errors import AeronError, AeronTimeoutError

if TYPE_CHECKING:
    from aerotape._native import _Pending

_T = TypeVar("_T")


class Retrying(Generic[_T]):
    """A publication, subscription or counter that is being added. Never blocks."""

    def __init__(self, begin: Callable[[], _Pending[_T]], deadline_ns: int | None = None) -> None:
        """Request the resource.

        Args:
            begin: sends the command to the driver; called again after each temporary refusal.
            deadline_ns: from then on a temporary refusal is final, and no response is an error,
                by `time.monotonic_ns`; None: never.
        """
        self._begin = begin
        self._deadline_ns = deadline_ns
        self._pending: _Pending[_T] | None = begin()

    def poll(self) -> _T | None:
        """Return the resource once the driver has added it, None before.

        Must not be called again after it returned an object or raised.

        Raises:
            AeronError: the driver refuses, or still refuses at the deadline.
            AeronTimeoutError: it has not responded at the deadline.
            ClosedError: the client has been closed, as its driver is lost.
        """
        if self._pending is None:
            self._pending = self._begin()
        try:
            added = self._pending.poll()
        except AeronError as error:
            self._pending = None
            if error.code != RESOURCE_TEMPORARILY_UNAVAILABLE or self._is_late():
                raise
            return None
        if added is not None:
            self._pending = None
        elif self._is_late():
            self.cancel()
            raise AeronTimeoutError("the media driver does not respond: is it running?")
        return added

    def _is_late(self) -> bool:
        return self._deadline_ns is not None and time.monotonic_ns() >= self._deadline_ns

    def cancel(self) -> None:
        """Cancel a pending request. Idempotent."""
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
