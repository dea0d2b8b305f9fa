"""The one control session of the web service: opened on demand, and again after a failure."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import wait
from typing import Final, TypeVar

from aerotape.clients import ArchiveClient
from aerotape.context import Closing
from aerotape.errors import AeronError, AeronTimeoutError, AerotapeError, ClosedError
from aerotape.waiting import begin_in_thread

_T = TypeVar("_T")
_MAX_WAITING: Final = 8
_WAIT_S: Final = 5.0
_LIMIT_S: Final = 10.0


class SessionBusyError(AerotapeError):
    """Other requests have the session, and too many wait for it or for too long."""


class ControlSession(Closing):
    """A client of the archive that requests share, one at a time.

    An error of the connection closes it, and the next request opens it again, so the service needs
    no restart with the archive. A few requests wait for it, and not for long. Each is made in a
    thread of its own, for which its caller does not wait longer than a limit, whatever hangs.
    """

    def __init__(
        self,
        connect: Callable[[], ArchiveClient],
        max_waiting: int = _MAX_WAITING,
        wait_s: float = _WAIT_S,
        limit_s: float = _LIMIT_S,
    ) -> None:
        """Create it; nothing is opened.

        Args:
            connect: connects to the archive.
            max_waiting: the most requests that wait for another one.
            wait_s: how long each waits, seconds.
            limit_s: how long one may take, with connecting, seconds.
        """
        self._connect = connect
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(1 + max_waiting)
        self._max_waiting, self._wait_s, self._limit_s = max_waiting, wait_s, limit_s
        self._client: ArchiveClient | None = None

    def run(self, request: Callable[[ArchiveClient], _T]) -> _T:
        """Make a request, and return its result.

        Raises:
            SessionBusyError: the archive is busy with others.
            AeronTimeoutError: the archive does not respond in time. It may respond later.
            AerotapeError: the archive refuses it, or is not there.
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
            return self._run_in_thread(request)
        finally:
            self._places.release()

    def _run_in_thread(self, request: Callable[[ArchiveClient], _T]) -> _T:
        """Make a request in a thread, which releases the lock when it ends."""
        is_late = threading.Event()

        def make() -> _T:
            try:
                return self._make(request, is_late)
            finally:
                self._lock.release()

        made = begin_in_thread(make, "archive-request")
        if wait([made], self._limit_s).done:
            return made.result()
        is_late.set()
        client = self._client
        if client is not None:  # what the thread waits for raises an error then
            begin_in_thread(client.close, "archive-close")
        raise AeronTimeoutError(
            f"the archive has not responded to a request for {self._limit_s:g} s"
        )

    def _make(self, request: Callable[[ArchiveClient], _T], is_late: threading.Event) -> _T:
        is_new = self._client is None
        try:
            if self._client is None:
                self._client = self._connect()
            return request(self._client)
        except (AeronError, AeronTimeoutError, ClosedError) as error:
            self._close()
            # After a timeout the archive may have done it: only the caller can decide.
            if is_new or is_late.is_set() or isinstance(error, AeronTimeoutError):
                raise
        # The session was of an archive that has restarted since.
        self._client = self._connect()
        return request(self._client)

    def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def close(self) -> None:
        """Close the client, also while a request hangs."""
        is_idle = self._lock.acquire(timeout=self._wait_s)
        self._close()
        if is_idle:
            self._lock.release()
