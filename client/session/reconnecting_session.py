"""A control session that reconnects when it is lost, without blocking its user.

A separate thread connects, because responding to a challenge takes time on purpose and because the
handshake must progress while the user is busy with a message. The user polls for the session.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.keep_alive import IdleReader
from aerotape.errors import ClosedError, ConfigurationError
from aerotape.waiting import Pause, Responses, Running, Task, Until, begin_in_thread

_RETRY_AFTER_NS: Final = 100_000_000


def _close_opened(attempt: Future[ClientSession]) -> None:
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
        self._session: ClientSession | None = None
        self._is_closed = False
        self._running = Running(self._stay_connected())
        self._running.advance()

    @property
    def session(self) -> ClientSession | None:
        """The session, None while there is none."""
        session = self._session
        return None if session is None or session.is_closed else session

    def service(self) -> None:
        """Do one duty cycle, without blocking; raise a ConfigurationError of an attempt."""
        if self._running.is_done and not self._is_closed:  # by an interrupt
            self._running = Running(self._stay_connected())
        self._running.advance()

    def _stay_connected(self) -> Task[None]:
        while True:
            attempt = begin_in_thread(self._open_session, "aerotape-connect")
            try:
                yield Until(attempt.done)
                session = attempt.result()
            except ConfigurationError:
                raise
            except Exception as error:
                self._on_error(error)
            except BaseException:
                attempt.add_done_callback(_close_opened)
                raise
            else:
                yield from self._stay_open(session)
                continue
            yield Pause(_RETRY_AFTER_NS)

    def _stay_open(self, session: ClientSession) -> Task[None]:
        """Read a session until it is lost, and close it."""
        reader = None
        try:
            # Its user may be busy with a message for longer than the archive waits.
            if self._keep_alive_interval_ns > 0:
                reader = IdleReader(session, self._keep_alive_interval_ns)
            self._session = session
            while True:
                yield Responses(session, "stay connected")
        except ClosedError:
            return
        finally:
            self._session = None
            if reader is not None:
                reader.close()
            session.close()

    def close(self) -> None:
        """Close the session and stop reconnecting. Idempotent."""
        self._is_closed = True
        self._running.close()
