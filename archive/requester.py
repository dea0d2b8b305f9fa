"""The sender of a request, as the parts of the archive that respond to it see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aerotape.codecs.generated.archive import RecordingSignal
    from aerotape.protocol import ErrorCode


class Requester(Protocol):
    """A control session, or a part of the archive that sends requests like one."""

    @property
    def session_id(self) -> int: ...
    def send_ok(self, correlation_id: int, relevant_id: int = 0) -> None: ...
    def send_error(
        self, correlation_id: int, error_code: ErrorCode | int, message: str
    ) -> None: ...
    def send_signal(
        self,
        correlation_id: int,
        recording_id: int,
        subscription_id: int,
        position: int,
        signal: RecordingSignal,
    ) -> None: ...
