"""A control session that reconnects when it is lost, without blocking its user.

A separate thread connects, because responding to a challenge takes time on purpose and because the
handshake must progress while the user is busy with a message. The user polls for the session.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from aerotape.archive.client.session.control_session import ControlSession
from aerotape.archive.client.session.keep_alive import IdleReader
from aerotape.errors import AerotapeError, ClosedError, ConfigurationError

_KEEP_ALIVE_INTERVAL_NS: Final = 1_000_000_000
_RETRY_AFTER_NS: Final = 100_000_000


class _Attempt:
    """One try to connect, in a thread."""

    def __init__(self, open_session: Callable[[], ControlSession]) -> None:
        self.is_done = False
        self.session: ControlSession | None = None
        self.error: Exception | None = None
        self._open_session = open_session
        self._lock = threading.Lock()
        self._is_abandoned = False
        threading.Thread(target=self._run, name="aerotape-connect", daemon=True).start()

    def _run(self) -> None:
        session = None
        try:
            session = self._open_session()
        except Exception as error:
            self.error = error
        with self._lock:
            self.session = session
            self.is_done = True
            is_abandoned = self._is_abandoned
        if is_abandoned and session is not None:
            session.close()

    def abandon(self) -> None:
        """Close the session that the attempt opens or has opened."""
        with self._lock:
            self._is_abandoned = True
            session = self.session
        if session is not None:
            session.close()


class ReconnectingSession:
    """A session with an archive that is opened again whenever it is lost. For one thread."""

    def __init__(
        self, open_session: Callable[[], ControlSession], on_error: Callable[[Exception], None]
    ) -> None:
        """Start to connect.

        Args:
            open_session: connects; may block.
            on_error: called with the error of a failed attempt, which is repeated.
        """
        self._open_session = open_session
        self._on_error = on_error
        self._attempt: _Attempt | None = _Attempt(open_session)
        self._session: ControlSession | None = None
        self._reader: IdleReader | None = None
        self._retry_at_ns = 0
        self._is_closed = False

    @property
    def session(self) -> ControlSession | None:
        """The session, None while there is none."""
        session = self._session
        return None if session is None or session.is_closed else session

    def service(self) -> None:
        """Do one duty cycle, without blocking.

        Raises:
            ConfigurationError: the options can never work.
        """
        if self._is_closed:
            return
        if self._session is not None:
            try:
                self._session.ensure_connected("stay connected")
                return
            except ClosedError:
                self._drop()
        if self._attempt is None:
            if time.monotonic_ns() >= self._retry_at_ns:
                self._attempt = _Attempt(self._open_session)
        elif self._attempt.is_done:
            attempt, self._attempt = self._attempt, None
            if attempt.session is not None:
                self._session = attempt.session
                # Its user may be busy with a message for longer than the archive waits.
                self._reader = IdleReader(attempt.session, _KEEP_ALIVE_INTERVAL_NS)
            elif isinstance(attempt.error, ConfigurationError):
                raise attempt.error
            else:
                self._retry_at_ns = time.monotonic_ns() + _RETRY_AFTER_NS
                self._on_error(attempt.error or AerotapeError("cannot connect"))

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
            self._attempt.abandon()
            self._attempt = None
