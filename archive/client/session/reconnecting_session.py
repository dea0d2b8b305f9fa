"""A control session that reconnects when it is lost, without blocking its user.

A separate thread connects, because responding to a challenge takes time on purpose and because the
handshake must progress while the user is busy with a message. The user polls for the session.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from aerotape.archive.client.session.client_session import ClientSession
from aerotape.archive.client.session.keep_alive import IdleReader
from aerotape.archive.client.session.threads import begin_in_thread
from aerotape.errors import ClosedError, ConfigurationError

_RETRY_AFTER_NS: Final = 100_000_000


_Attempt = Future[ClientSession]


def _attempt(open_session: Callable[[], ClientSession]) -> _Attempt:
    """Try to connect once."""
    return begin_in_thread(open_session, "aerotape-connect")


def _close_opened(attempt: _Attempt) -> None:
    if attempt.exception() is None:
        attempt.result().close()


class ReconnectingSession:
    """A session with an archive that is opened again whenever it is lost. For one thread."""

    def __init__(
        self,
        open_session: Callable[[], ClientSession],
        on_error: Callable[[Exception], None],
        keep_alive_interval_ns: int,
    ) -> None:
        """Start to connect.

        Args:
            open_session: connects; called in a thread.
            on_error: called for each failed attempt, which is repeated.
            keep_alive_interval_ns: how often a thread reads the session; 0: only `service` does.
        """
        self._open_session = open_session
        self._keep_alive_interval_ns = keep_alive_interval_ns
        self._on_error = on_error
        self._attempt: _Attempt | None = _attempt(open_session)
        self._session: ClientSession | None = None
        self._reader: IdleReader | None = None
        self._retry_at_ns = 0
        self._is_closed = False

    @property
    def session(self) -> ClientSession | None:
        """The session, None while there is none."""
        session = self._session
        return None if session is None or session.is_closed else session

    def service(self) -> None:
        """Do one duty cycle, without blocking; raise a ConfigurationError of an attempt."""
        if self._is_closed:
            return
        if self._session is not None:
            try:
                self._session.ensure_open("stay connected")
                self._session.read(0, what="stay connected")
                return
            except ClosedError:
                self._drop()
        if self._attempt is None:
            if time.monotonic_ns() >= self._retry_at_ns:
                self._attempt = _attempt(self._open_session)
        elif self._attempt.done():
            attempt, self._attempt = self._attempt, None
            try:
                self._session = attempt.result()
            except ConfigurationError:
                raise
            except Exception as error:
                self._retry_at_ns = time.monotonic_ns() + _RETRY_AFTER_NS
                self._on_error(error)
            else:
                # Its user may be busy with a message for longer than the archive waits.
                if self._keep_alive_interval_ns > 0:
                    self._reader = IdleReader(self._session, self._keep_alive_interval_ns)

    def _drop(self) -> None:
        session, self._session = self._session, None
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
        if session is not None:
            session.close()

    def close(self) -> None:
        """Close the session and stop reconnecting. Idempotent."""
        self._is_closed = True
        self._drop()
        if self._attempt is not None:
            self._attempt.add_done_callback(_close_opened)
            self._attempt = None
