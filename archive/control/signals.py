"""Recording signals for control sessions other than the one whose request caused them.

With `aerotape.recording.signals=all` they go to every session whose client has sent a request
(before that it may not know its session id), and may list recordings, because a signal contains no
more than a listing. The messages differ only in the control session id.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aerotape.archive.control import responses
from aerotape.archive.security.authorisation import GuardedAuthorisation
from aerotape.codecs.generated import archive as codecs

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession


@dataclass(eq=False)
class SignalAudience:
    """All sessions of an archive, as receivers of signals. For the conductor's thread.

    Attributes:
        sessions: iterates over the sessions in progress, each time it is used.
    """

    sessions: Iterable[ControlSession]
    authorisation: GuardedAuthorisation

    def broadcast(self, origin_id: int, signal: bytes) -> None:
        """Send an encoded RecordingSignalEvent to every session but its origin.

        Args:
            origin_id: the control session whose request caused it; it may have ended.
        """
        for session in self.sessions:
            if (
                session.session_id != origin_id
                and session.is_active
                and self.authorisation.is_authorised(
                    codecs.SCHEMA_ID, codecs.ListRecordingsRequest.TEMPLATE_ID, session.principal
                )
            ):
                session.send(responses.readdressed(signal, session.session_id))
