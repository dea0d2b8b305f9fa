"""The thread that reads a session's response stream while nobody else does.

An archive pings its clients ten times a second and drops those that do not read, which an idle
Python program would not.
"""

from __future__ import annotations

import threading
import weakref

from aerotape.archive.client.session import ControlSession
from aerotape.errors import ClosedError


class IdleReader:
    """Reads now and then, until it is closed or the session is over or forgotten."""

    def __init__(self, session: ControlSession, interval_ns: int) -> None:
        self._stop = threading.Event()
        # The thread must not keep a forgotten client alive.
        reference = weakref.ref(session, lambda _: self._stop.set())
        self._thread = threading.Thread(
            target=_read_while_idle,
            args=(reference, self._stop, interval_ns / 1e9),
            name="aerotape-archive-client",
            daemon=True,
        )
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()


def _read_while_idle(
    reference: weakref.ref[ControlSession], stop: threading.Event, interval_s: float
) -> None:
    while not stop.wait(interval_s):
        session = reference()
        if session is None or session.is_closed:
            return
        try:
            session.service()
        except ClosedError:
            return  # whoever uses the client next is told
        del session
