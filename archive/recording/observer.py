"""Notifications about a recording or a replication to the part of the archive that started it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aerotape.codecs.generated.archive import RecordingSignal


class RecordingObserver(Protocol):
    """Is notified of the progress of a recording; all calls are in the conductor's thread.

    Attributes:
        session_id: control session of the request, stored with an extension; -1 without one.
        correlation_id: of the request, likewise.
    """

    @property
    def session_id(self) -> int: ...
    @property
    def correlation_id(self) -> int: ...

    def on_subscribed(self, subscription_id: int) -> None:
        """The channel is subscribed to."""

    def on_signal(
        self, recording_id: int, subscription_id: int, position: int, signal: RecordingSignal
    ) -> None:
        """A recording has begun, ended or, in a replication, reached another step."""

    def on_failed(self, error_code: int, message: str) -> None:
        """The recording cannot begin, or has ended by an error."""
