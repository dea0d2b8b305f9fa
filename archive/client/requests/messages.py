"""Asynchronous messages of the archive, and keep-alives."""

from __future__ import annotations

import time

from aerotape.archive.client.replay.signals import RecordingSignalEvent
from aerotape.archive.client.requests.request import CurrentSession, Pause, Steps
from aerotape.archive.client.session.control_session import ControlSession
from aerotape.archive.client.session.exchange import send
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ArchiveError
from aerotape.protocol import NULL_VALUE


def poll_for_errors() -> Steps[list[ArchiveError]]:
    """Return the errors that belong to no pending request, oldest first.

    Raises:
        ClosedError: the archive went away.
    """
    session = yield from _polled("poll for errors")
    return session.take_errors()


def poll_for_recording_signals() -> Steps[list[RecordingSignalEvent]]:
    """Return the signals (start, stop, …) received since the last call, oldest first.

    The last 4096 are stored.

    Raises:
        ClosedError: the archive went away.
    """
    session = yield from _polled("poll for recording signals")
    return session.signals.take_all()


def keep_alive() -> Steps[None]:
    """Send a keep-alive to the archive."""
    what = "keep the session alive"
    session = yield from _polled(what)
    yield from sent_keep_alive(session, what, time.monotonic_ns() + session.timeout_ns)


def sent_keep_alive(session: ControlSession, what: str, deadline_ns: int) -> Steps[None]:
    """Send a keep-alive, waiting for room (AeronTimeoutError)."""
    assert session.control_session_id is not None, "after the handshake"
    message = codecs.KeepAliveRequest(
        control_session_id=session.control_session_id, correlation_id=NULL_VALUE
    )
    data, no_room = message.encode(), session.back_pressure(what)
    yield from send(lambda: session.offer(data, what), no_room, deadline_ns, what)


def _polled(what: str) -> Steps[ControlSession]:
    """Poll the response stream once, and return the session."""
    session: ControlSession = yield CurrentSession()
    session.ensure_open(what)
    yield Pause(0, what)
    return session
