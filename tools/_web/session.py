"""The one control session of the web service: opened on demand, and again after a failure."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

from aerotape.clients import ArchiveClient
from aerotape.context import Closing
from aerotape.errors import (
    AeronError,
    AeronTimeoutError,
    AerotapeError,
    ClosedError,
)

_T = TypeVar("_T")
_MAX_WAITING: Final = 8
_WAIT_S: Final = 5.0


class SessionBusyError(AerotapeError):
    """Other requests have the session, and too many wait for it or for too long."""


class ControlSession(Closing):
    """A client of the archive that requests share, one at a time.

    An error of the connection closes it, and the next request opens it again, so the service needs
    no restart with the archive. A few requests wait for it, and not for long, so that an archive
    that does not respond holds up a few threads only.
    """

    def __init__(
        self,
        connect: Callable[[], ArchiveClient],
        max_waiting: int = _MAX_WAITING,
        wait_s: float = _WAIT_S,
    ) -> None:
        """Create it; nothing is opened.

        Args:
            connect: connects to the archive, within the time that a request may take.
            max_waiting: the most requests that wait for another one.
            wait_s: how long each waits, seconds.
        """
        self._connect = connect
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(1 + max_waiting)
        self._max_waiting, self._wait_s = max_waiting, wait_s
        self._client: ArchiveClient | None = None

    def run(self, request: Callable[[ArchiveClient], _T]) -> _T:
        """Make a request, and return its result.

        Raises:
            SessionBusyError: the archive is busy with others.
            AerotapeError: the archive refuses it, or does not respond.
        """
        if not self._places.acquire(blocking=False):
            raise SessionBusyError(
                f"{self._max_waiting} requests wait for the archive already: try again"
            )
        try:
            if not self._lock.acquire(timeout=self._wait_s):
                raise SessionBusyError(
                    f"the archive has not ended another request for {self._wait_s:g} s: try again"
                )
            try:
                return self._run(request)
            finally:
                self._lock.release()
        finally:
            self._places.release()

    def _run(self, request: Callable[[ArchiveClient], _T]) -> _T:
        is_new = self._client is None
        if self._client is None:
            self._client = self._connect()
        try:
            return request(self._client)
        except (AeronError, AeronTimeoutError, ClosedError):
            self._close()
            if is_new:
                raise
        # The session was of an archive that has restarted since.
        self._client = self._connect()
        return request(self._client)

    def _close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def close(self) -> None:
        with self._lock:
            self._close()
