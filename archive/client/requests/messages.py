"""Asynchronous messages of the archive, and keep-alives."""

from __future__ import annotations

from aerotape.archive.client.replay.signals import RecordingSignalEvent
from aerotape.archive.client.session.client_session import ClientSession
from aerotape.archive.client.session.exchange import send
from aerotape.archive.client.session.pending_request import PendingRequest
from aerotape.archive.waiting import Responses, Task
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ArchiveError
from aerotape.protocol import NULL_VALUE


def poll_for_errors(session: ClientSession) -> Task[list[ArchiveError]]:
    """Return the errors that belong to no pending request, oldest first."""
    yield Responses(session, "poll for errors")
    return session.take_errors()


def poll_for_recording_signals(session: ClientSession) -> Task[list[RecordingSignalEvent]]:
    """Return the signals received since the last call, oldest first."""
    yield Responses(session, "poll for recording signals")
    return session.signals.take_all()


def keep_alive(session: ClientSession) -> Task[None]:
    """Send a keep-alive to the archive."""
    what = "keep the session alive"
    yield Responses(session, what)
    yield from send_keep_alive(session, what)


def send_keep_alive(
    session: ClientSession, what: str, deadline_ns: int | None = None
) -> Task[None]:
    """Send a keep-alive, waiting for room (AeronTimeoutError)."""
    assert session.control_session_id is not None, "after the handshake"
    message = codecs.KeepAliveRequest(
        control_session_id=session.control_session_id, correlation_id=NULL_VALUE
    )
    yield from send(session, PendingRequest(NULL_VALUE, what, message.encode()), deadline_ns)
