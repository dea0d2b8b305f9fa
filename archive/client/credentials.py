"""What a client shows an archive to be let in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from aerotape.archive.security.scram import answer_challenge
from aerotape.errors import AerotapeError, ConfigurationError


class Credentials(Protocol):
    """Gives credentials when they are asked for; the reference's CredentialsSupplier."""

    def encoded_credentials(self) -> bytes:
        """Return what goes with the connect request."""
        ...

    def on_challenge(self, encoded_challenge: bytes, /) -> bytes:
        """Return the answer to a challenge of the archive."""
        ...


class UserSecret:
    """A user and its secret, for an archive with a users file.

    The name is sent, then a proof that the secret is known; the secret itself stays here. With
    `plain` it is sent instead, as ``user:secret``, which authenticators for other clients expect.
    """

    def __init__(self, user: str, secret: str | bytes, *, plain: bool = False) -> None:
        """Remember both; the secret in UTF-8 when it is text.

        Raises:
            ConfigurationError: no user is named so, or the secret is neither text nor bytes.
        """
        if not isinstance(user, str) or not user or ":" in user:
            raise ConfigurationError(f"user {user!r}: a name is text without a colon", "user")
        if not isinstance(secret, str | bytes):
            kind = type(secret).__name__
            raise ConfigurationError(f"secret must be text or bytes, not {kind}", "secret")
        self.user = user
        self._secret = secret.encode() if isinstance(secret, str) else secret
        self._is_plain = plain

    def encoded_credentials(self) -> bytes:
        """Return the name, or ``user:secret``."""
        user = self.user.encode()
        return user + b":" + self._secret if self._is_plain else user

    def on_challenge(self, encoded_challenge: bytes, /) -> bytes:
        """Return the proof; takes some hundredths of a second, on purpose.

        Raises:
            AerotapeError: the challenge is none that is safe to answer.
        """
        if self._is_plain:
            raise AerotapeError("the archive asks for more than the user's secret, sent already")
        return answer_challenge(self.user.encode(), self._secret, encoded_challenge)

    def __repr__(self) -> str:
        return f"UserSecret(user={self.user!r})"


def credentials_of(
    credentials: bytes | Credentials, on_challenge: Callable[[bytes], bytes] | None
) -> tuple[bytes, Callable[[bytes], bytes] | None]:
    """Return what goes with the connect request, and what answers a challenge.

    Raises:
        ConfigurationError: they are no credentials.
    """
    if isinstance(credentials, bytes):
        return credentials, on_challenge
    if not hasattr(credentials, "encoded_credentials"):
        raise ConfigurationError(
            "credentials must be bytes or have encoded_credentials and on_challenge, as"
            f" aerotape.UserSecret(user, secret) has, not {type(credentials).__name__}",
            "credentials",
        )
    return credentials.encoded_credentials(), on_challenge or credentials.on_challenge
