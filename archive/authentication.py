"""Who may have a control session: the hook where authentication goes.

The default lets everybody in. An authenticator answers by calling `authenticate` or `reject` of
the session, at once or later (it is asked again until it has).
"""

from __future__ import annotations

from typing import Protocol


class AuthenticatedSession(Protocol):
    """What an authenticator may do with a control session."""

    session_id: int

    def authenticate(self, principal: bytes) -> None: ...
    def reject(self) -> None: ...


class Authenticator(Protocol):
    """Decides on control sessions. Called on the conductor's thread: must not wait."""

    def on_connect_request(self, session_id: int, credentials: bytes, now_ms: int) -> None:
        """Take note of what came with the connect request."""

    def on_connected_session(self, session: AuthenticatedSession, now_ms: int) -> None:
        """Decide, now that the client can be answered."""


class AllowAll:
    """Lets every client in, as the reference's default does."""

    def on_connect_request(self, session_id: int, credentials: bytes, now_ms: int) -> None:
        """Nothing to remember."""

    def on_connected_session(self, session: AuthenticatedSession, now_ms: int) -> None:
        """Let it in."""
        session.authenticate(b"")
