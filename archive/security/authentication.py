"""The interface of authenticators, which decide on control sessions, and safe calls to them.

An authenticator is any object with the four methods of `Authenticator`, the reference's calls under
Python names. It receives a connect request with its credentials, then polls with a `SessionProxy`
until it has authenticated or rejected the client, or the connect timeout has expired. It may first
send a challenge: the client's response arrives in `on_challenge_response`, and from then on the
session is polled with `on_challenged_session`.

All calls are made on the conductor's thread and must not block: begin slow work (a hash, a call to
a server) in `on_connect_request` or `on_challenge_response`, and use its outcome in a later call.
An authenticator that raises has rejected the client.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from aerotape.clock import epoch_ms

if TYPE_CHECKING:
    from aerotape.archive.error_log import ErrorLog

NULL_PRINCIPAL = b""


class SessionProxy(Protocol):
    """The operations of an authenticator on a session. To be used only during the call."""

    @property
    def session_id(self) -> int:
        """The control session id, as in `on_connect_request`."""

    @property
    def source_identity(self) -> str:
        """The source of the client's requests: ``address:port``, or ``aeron:ipc``.

        An addition of aerotape to the reference's session proxy.
        """

    def challenge(self, encoded_challenge: bytes) -> bool:
        """Send the client a challenge; False when that must be repeated in a later call."""

    def authenticate(self, encoded_principal: bytes) -> bool:
        """Accept the client; False when that must be repeated in a later call.

        Args:
            encoded_principal: the client's identity for the authorisation service.
        """

    def reject(self, why: str = "") -> None:
        """Refuse the client: send AUTHENTICATION_REJECTED with the reason."""


class Authenticator(Protocol):
    """Decides on control sessions. Called on the conductor's thread: must not wait."""

    def on_connect_request(
        self, session_id: int, encoded_credentials: bytes, now_ms: int, /
    ) -> None:
        """Receive the credentials of a connect request.

        Args:
            session_id: the id of the new control session.
            encoded_credentials: as sent; may be empty.
            now_ms: milliseconds since 1970, as in all calls.
        """

    def on_challenge_response(
        self, session_id: int, encoded_credentials: bytes, now_ms: int, /
    ) -> None:
        """Receive a client's response to a challenge."""

    def on_connected_session(self, session_proxy: SessionProxy, now_ms: int, /) -> None:
        """Decide or challenge, once the client can receive responses. Called until either."""

    def on_challenged_session(self, session_proxy: SessionProxy, now_ms: int, /) -> None:
        """Decide, or do nothing while there is no response yet. Called until decided."""


class AllowAll:
    """Accepts every client, as the reference's default does."""

    def on_connect_request(self, _session_id: int, _credentials: bytes, _now_ms: int, /) -> None:
        """Ignore the credentials."""

    def on_challenge_response(self, _session_id: int, _credentials: bytes, _now_ms: int, /) -> None:
        """Ignore the response: no client is challenged."""

    def on_connected_session(self, session_proxy: SessionProxy, _now_ms: int, /) -> None:
        """Accept it."""
        session_proxy.authenticate(NULL_PRINCIPAL)

    def on_challenged_session(self, session_proxy: SessionProxy, _now_ms: int, /) -> None:
        """Accept it."""
        session_proxy.authenticate(NULL_PRINCIPAL)


@dataclass(eq=False)
class GuardedAuthenticator:
    """Calls an authenticator; an exception that it raises refuses the client."""

    authenticator: Authenticator
    errors: ErrorLog

    def connect_request(self, session_id: int, encoded_credentials: bytes) -> bool:
        """Pass on a connect request; False when the authenticator raised."""
        call = self.authenticator.on_connect_request
        return self._call(call, session_id, session_id, encoded_credentials)

    def challenge_response(self, session_id: int, encoded_credentials: bytes) -> bool:
        """Pass on the response to a challenge; False when the authenticator raised."""
        call = self.authenticator.on_challenge_response
        return self._call(call, session_id, session_id, encoded_credentials)

    def connected(self, session: SessionProxy) -> None:
        """Poll the authenticator for a session whose client can receive responses."""
        self._poll(self.authenticator.on_connected_session, session)

    def challenged(self, session: SessionProxy) -> None:
        """Poll the authenticator for a session that has been challenged."""
        self._poll(self.authenticator.on_challenged_session, session)

    def _poll(self, call: Callable[[SessionProxy, int], None], session: SessionProxy) -> None:
        if not self._call(call, session.session_id, session):
            session.reject()

    def _call(self, call: Callable[..., None], session_id: int, *args: object) -> bool:
        try:
            call(*args, epoch_ms())
        # Not even SystemExit of an authenticator may end the archive.
        except BaseException as error:
            self.errors.record(
                "authenticator failed",
                f"control session {session_id} is refused: {type(error).__name__}: {error}",
                exception=error,
            )
            return False
        return True
