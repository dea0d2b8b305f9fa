"""The one control session of the web service: opened on demand, and again after a failure."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from aerotape.archive.client.client import ArchiveClient
from aerotape.context import Closing
from aerotape.errors import (
    AeronError,
    AeronTimeoutError,
    ClosedError,
)

_T = TypeVar("_T")


class ControlSession(Closing):
    """A client of the archive that requests share, one at a time.

    An error of the connection closes it, and the next request opens it again, so the service needs
    no restart with the archive.
    """

    def __init__(self, connect: Callable[[], ArchiveClient]) -> None:
        """Create it; nothing is opened.

        Args:
            connect: connects to the archive, within the time that a request may take.
        """
        self._connect = connect
        self._lock = threading.Lock()
        self._client: ArchiveClient | None = None

    def run(self, request: Callable[[ArchiveClient], _T]) -> _T:
        """Make a request, and return its result (AerotapeError)."""
        with self._lock:
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
