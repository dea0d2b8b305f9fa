"""A control session that stores the responses."""

from __future__ import annotations

from typing import Any

from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.protocol import ErrorCode


class Client:
    """A control session without a client."""

    session_id = 1

    def __init__(self) -> None:
        self.received: list[tuple[Any, ...]] = []

    @property
    def kinds(self) -> list[str]:
        """OK, ERROR or the name of the signal, for each."""
        return [each[0].upper() for each in self.received]

    def send_ok(self, correlation_id: int, relevant_id: int = 0) -> None:
        self.received.append(("ok", correlation_id, relevant_id))

    def send_error(self, correlation_id: int, error_code: ErrorCode | int, message: str) -> None:
        self.received.append(("error", correlation_id, error_code, message))

    def send_signal(
        self,
        correlation_id: int,
        recording_id: int,
        subscription_id: int,
        position: int,
        signal: RecordingSignal,
    ) -> None:
        self.received.append((signal.name, correlation_id, recording_id, subscription_id, position))
