"""Checks that the handlers of control requests share, and the observer for clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aerotape.archive.recording import removal
from aerotape.errors import ArchiveError
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services
    from aerotape.codecs.generated.archive import RecordingSignal


@dataclass(frozen=True, slots=True)
class ClientObserver:
    """Sends a client the progress of the recording or replication that it has requested."""

    session: ControlSession
    correlation_id: int

    @property
    def session_id(self) -> int:
        """The control session's id."""
        return self.session.session_id

    def on_subscribed(self, subscription_id: int) -> None:
        """Respond OK to the request."""
        self.session.send_ok(self.correlation_id, subscription_id)

    def on_signal(
        self, recording_id: int, subscription_id: int, position: int, signal: RecordingSignal
    ) -> None:
        """Pass a signal on."""
        self.session.send_signal(
            self.correlation_id, recording_id, subscription_id, position, signal
        )

    def on_failed(self, error_code: int, message: str) -> None:
        """Send an error."""
        self.session.send_error(self.correlation_id, error_code, message)


def check_known(services: Services, recording_id: int) -> None:
    """Raise ArchiveError if a recording does not exist."""
    removal.check_known(services.catalog, recording_id)


def check_unprotected(services: Services, recording_id: int) -> None:
    """Raise ArchiveError if a recording does not exist, or an extension protects it."""
    check_known(services, recording_id)
    services.extensions.check_recording(recording_id)


def check_no_listing(session: ControlSession) -> None:
    """Raise ArchiveError while a listing is in progress."""
    if session.is_listing:
        raise ArchiveError(
            "active listing already in progress: read it to its end first",
            ErrorCode.ACTIVE_LISTING,
        )
