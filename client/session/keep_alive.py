"""A thread that reads a session's response stream while no other thread does.

An archive pings its clients ten times a second and drops those that do not read, as an idle Python
program would not. An event loop cannot block in the session: for it this thread reads continuously
while a response is awaited.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

from aerotape.client.session.client_session import ClientSession
from aerotape.errors import ClosedError
from aerotape.waiting import SLICE_NS


class IdleReader:
    """Reads at an interval, until it is closed or the session has ended or been collected."""

    def __init__(
        self,
        session: ClientSession,
        interval_ns: int,
        is_awaiting: Callable[[ClientSession], bool] = lambda _: False,
    ) -> None:
        """Start the thread; while `is_awaiting`, it reads without a break."""
        self._interval_s = interval_ns / 1e9
        self._is_awaiting = is_awaiting
        self._is_closed = False
        self._wake = threading.Event()
        # The thread must not keep an unreferenced client alive.
        self._reference = weakref.ref(session, lambda _: self._wake.set())
        self._thread = threading.Thread(
            target=self._read, name="aerotape-archive-client", daemon=True
        )
        self._thread.start()

    def wake(self) -> None:
        """Read now."""
        self._wake.set()

    def close(self) -> None:
        """End the thread."""
        self._is_closed = True
        self._wake.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _read(self) -> None:
        while not self._is_closed:
            session = self._reference()
            if session is None or session.is_closed:
                return
            try:
                if self._is_awaiting(session):
                    session.service(SLICE_NS)
                    continue
                session.service()
            except ClosedError:
                return  # the next use of the client raises it
            del session
            self._wake.wait(self._interval_s)
            self._wake.clear()
