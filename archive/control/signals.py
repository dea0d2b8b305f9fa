"""Recording signals for the control sessions that did not ask for what has happened.

As in the reference, an archive tells a session what happens to recordings by its own requests. With
`aerotape.recording.signals=all` the others hear of it too: every session whose client has made a
request (before that it may not know its session id yet), and may list recordings, for a signal says
no more than a list does. Each is told with its own control session id and otherwise the same.

A session that does not take what it is sent keeps it waiting and is ended in the end, as for any
other message (`response_sender`); nobody else waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from aerotape.archive.control import responses
from aerotape.archive.security.authorisation import GuardedAuthorisation
from aerotape.codecs.generated import archive as codecs

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession


class SignalAudience:
    """All sessions of an archive, as listeners. For the conductor's thread."""

    def __init__(
        self, sessions: Iterable[ControlSession], authorisation: GuardedAuthorisation
    ) -> None:
        """Listen for nobody yet.

        Args:
            sessions: iterates over the sessions in progress, each time it is used.
        """
        self._sessions = sessions
        self._authorisation = authorisation

    def pass_on(self, asked_by: int, signal: bytes) -> None:
        """Send an encoded RecordingSignalEvent to every session but the one that has it already.

        Args:
            asked_by: the control session whose request is behind it; it may have ended.
        """
        for session in self._sessions:
            if session.session_id == asked_by or not session.is_active:
                continue
            try:
                if self._may_hear(session):
                    session.pass_on(responses.readdressed(signal, session.session_id))
            except Exception as error:
                # What is wrong with one listener is no matter of who made the request.
                session.abort(f"failed with exception: {error}")

    def _may_hear(self, session: ControlSession) -> bool:
        return self._authorisation.is_authorised(
            codecs.SCHEMA_ID, codecs.ListRecordingsRequest.TEMPLATE_ID, session.principal
        )
