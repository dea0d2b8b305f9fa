"""Who may have a control session: the hook for authenticators, and what keeps it safe.

An authenticator is any object with the four methods of `Authenticator`, the reference's calls under
Python names. It is told of a connect request with the credentials that came with it, then asked
about the session again and again, with a `SessionProxy`, until it has let the client in, refused
it, or the connect timeout is up. It may ask the client for more first: `challenge` sends a
question, the client's answer arrives with `on_challenge_response`, and from then on the session is
asked about with `on_challenged_session`.

All calls come on the conductor's thread and must not wait: what takes long (a hash, a server to be
asked) is begun in `on_connect_request` or `on_challenge_response`, and found done in a later call.
An authenticator that raises has refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from aerotape.clock import epoch_ms

if TYPE_CHECKING:
    from aerotape.archive.error_log import ErrorLog

NULL_PRINCIPAL = b""


class UndecidedSession(Protocol):
    """A control session that waits for its authenticator."""

    @property
    def session_id(self) -> int: ...
    @property
    def source_identity(self) -> str: ...
    def challenge(self, encoded_challenge: bytes) -> bool: ...
    def authenticate(self, encoded_principal: bytes) -> bool: ...
    def reject(self, why: str = "") -> None: ...


class SessionProxy:
    """What an authenticator may do with a session. Of use only during the call it was given to."""

    def __init__(self, session: UndecidedSession) -> None:
        self._session: UndecidedSession | None = session

    @property
    def session_id(self) -> int:
        """The control session id, as in `on_connect_request`."""
        return self._valid().session_id

    @property
    def source_identity(self) -> str:
        """Where the client's requests come from: ``address:port``, or ``aeron:ipc``.

        Of aerotape alone; the reference's session proxy has nothing like it.
        """
        return self._valid().source_identity

    def challenge(self, encoded_challenge: bytes) -> bool:
        """Send the client a challenge; False when it cannot be sent now: asked again later."""
        return self._valid().challenge(_bytes("encoded_challenge", encoded_challenge))

    def authenticate(self, encoded_principal: bytes) -> bool:
        """Let the client in; False when it cannot be told now: asked again later.

        Args:
            encoded_principal: who it is, for the authorisation service.
        """
        return self._valid().authenticate(_bytes("encoded_principal", encoded_principal))

    def reject(self, why: str = "") -> None:
        """Refuse the client; it is told AUTHENTICATION_REJECTED, and why if that is said."""
        self._valid().reject(why)

    def expire(self) -> None:
        """Make an end of it: the call that it was for is over."""
        self._session = None

    def _valid(self) -> UndecidedSession:
        if self._session is None:
            raise RuntimeError("a session proxy is of use only during the call it was given to")
        return self._session


def _bytes(name: str, value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"{name} must be bytes, not {type(value).__name__}")
    return value


class Authenticator(Protocol):
    """Decides on control sessions. Called on the conductor's thread: must not wait."""

    def on_connect_request(
        self, session_id: int, encoded_credentials: bytes, now_ms: int, /
    ) -> None:
        """Take note of what came with the connect request.

        Args:
            session_id: the control session that is to be.
            encoded_credentials: as sent; may be empty.
            now_ms: milliseconds since 1970, as in all calls.
        """

    def on_challenge_response(
        self, session_id: int, encoded_credentials: bytes, now_ms: int, /
    ) -> None:
        """Take note of a client's answer to a challenge."""

    def on_connected_session(self, session_proxy: SessionProxy, now_ms: int, /) -> None:
        """Decide or challenge, now that the client can be answered. Called until either is done."""

    def on_challenged_session(self, session_proxy: SessionProxy, now_ms: int, /) -> None:
        """Decide, or do nothing while there is no answer yet. Called until it is decided."""


class AllowAll:
    """Lets every client in, as the reference's default does."""

    def on_connect_request(self, _session_id: int, _credentials: bytes, _now_ms: int, /) -> None:
        """Nothing to remember."""

    def on_challenge_response(self, _session_id: int, _credentials: bytes, _now_ms: int, /) -> None:
        """Nobody is challenged."""

    def on_connected_session(self, session_proxy: SessionProxy, _now_ms: int, /) -> None:
        """Let it in."""
        session_proxy.authenticate(NULL_PRINCIPAL)

    def on_challenged_session(self, session_proxy: SessionProxy, _now_ms: int, /) -> None:
        """Let it in."""
        session_proxy.authenticate(NULL_PRINCIPAL)


class GuardedAuthenticator:
    """Calls an authenticator so that nothing it does harms the archive: what it raises refuses."""

    def __init__(self, authenticator: Authenticator, errors: ErrorLog) -> None:
        self._authenticator = authenticator
        self._errors = errors

    def connect_request(self, session_id: int, encoded_credentials: bytes) -> bool:
        """Pass on what came with a connect request; False when the client is refused over it."""
        call = self._authenticator.on_connect_request
        return self._call(call, session_id, session_id, encoded_credentials)

    def challenge_response(self, session_id: int, encoded_credentials: bytes) -> bool:
        """Pass on the answer to a challenge; False when the client is refused over it."""
        call = self._authenticator.on_challenge_response
        return self._call(call, session_id, session_id, encoded_credentials)

    def connected(self, session: UndecidedSession) -> None:
        """Have a session decided on whose client can be answered."""
        self._ask(self._authenticator.on_connected_session, session)

    def challenged(self, session: UndecidedSession) -> None:
        """Have a session decided on that has been challenged."""
        self._ask(self._authenticator.on_challenged_session, session)

    def _ask(self, call: Callable[[SessionProxy, int], None], session: UndecidedSession) -> None:
        proxy = SessionProxy(session)
        try:
            if not self._call(call, session.session_id, proxy):
                session.reject()
        finally:
            proxy.expire()

    def _call(self, call: Callable[..., None], session_id: int, *args: object) -> bool:
        try:
            call(*args, epoch_ms())
        # Even what is meant to end a process must not end the archive from in there.
        except BaseException as error:
            self._errors.record(
                "authenticator failed",
                f"control session {session_id} is refused: {type(error).__name__}: {error}",
                exception=error,
            )
            return False
        return True
