"""The client that has requested a replay, as far as replays respond to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aerotape._native import ExclusivePublication
    from aerotape.protocol import ErrorCode


class ReplayRequester(Protocol):
    """A control session; all calls are in the conductor's thread."""

    def send_ok(self, correlation_id: int, relevant_id: int = 0) -> None:
        """Respond OK to a request, with the replay's id."""

    def deferred_ok(
        self, correlation_id: int, relevant_id: int
    ) -> tuple[ExclusivePublication, bytes] | None:
        """Return an OK for another thread to send, and where; None while responses are queued."""

    def send_error(self, correlation_id: int, error_code: ErrorCode | int, message: str) -> None:
        """Respond to a request with an error code and a message."""
