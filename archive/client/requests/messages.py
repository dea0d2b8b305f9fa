"""Asynchronous messages of the archive, and keep-alives."""

from __future__ import annotations

from aerotape.archive.client.session.client_session import ClientSession
from aerotape.archive.client.session.exchange import send_keep_alive
from aerotape.archive.client.session.signals import RecordingSignalEvent
from aerotape.archive.waiting import Responses, Task
from aerotape.errors import ArchiveError


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
