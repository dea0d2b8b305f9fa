"""Credentials of a client for the connect request and the archive's challenge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.scram import answer_challenge


class Credentials(Protocol):
    """Supplies credentials; CredentialsSupplier of the reference."""

    def encoded_credentials(self) -> bytes:
        """Return the credentials of the connect request."""
        ...

    def on_challenge(self, encoded_challenge: bytes, /) -> bytes:
        """Return the credentials that respond to a challenge."""
        ...


class UserSecret:
    """A user and its secret, for an archive with a users file.

    The name is sent, then a proof of the secret; the secret itself is not sent. With `plain` it is
    sent, as ``user:secret``, which authenticators for other clients expect.
    """

    def __init__(self, user: str, secret: str | bytes, *, plain: bool = False) -> None:
        """Store both; the secret in UTF-8 if it is text.

        Raises:
            ConfigurationError: the name is invalid, or the secret is neither text nor bytes.
        """
        if not isinstance(user, str) or not user or ":" in user:
            raise ConfigurationError(
                f"invalid user name {user!r}: expected text without a colon", "user"
            )
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

    @property
    def is_plain(self) -> bool:
        """Whether the secret is sent instead of a proof."""
        return self._is_plain

    def prove(self, encoded_challenge: bytes, address: str) -> bytes:
        """Return the proof for the archive at an address; takes tens of milliseconds, on purpose.

        Raises:
            AerotapeError: the challenge is not safe to respond to.
        """
        return answer_challenge(self.user.encode(), self._secret, encoded_challenge, address)

    def __repr__(self) -> str:
        return f"UserSecret(user={self.user!r})"


def user_of_file(path: Path) -> UserSecret:
    """Return the user whose ``name:secret`` is the first line of a file (ConfigurationError)."""
    try:
        line = path.read_text().partition("\n")[0]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read {path}: {error}", str(path)) from error
    name, colon, secret = line.strip().partition(":")
    if not (name and colon and secret):
        raise ConfigurationError(f"{path}: expected name:secret in its first line", str(path))
    return UserSecret(name, secret)


@dataclass(frozen=True, slots=True)
class Login:
    """The credentials for an archive, as functions of what the archive sends.

    Attributes:
        credentials: of the connect request.
        on_challenge: returns the response to a challenge; None: a challenge is an error.
        prove: returns it from the challenge and the address of the archive's control channel;
            used instead of `on_challenge`.
    """

    credentials: bytes
    on_challenge: Callable[[bytes], bytes] | None = None
    prove: Callable[[bytes, str], bytes] | None = None

    @classmethod
    def of(
        cls,
        credentials: bytes | Credentials | UserSecret,
        on_challenge: Callable[[bytes], bytes] | None = None,
    ) -> Login:
        """Check the arguments of `connect` (ConfigurationError)."""
        if isinstance(credentials, bytes):
            return cls(credentials, on_challenge)
        if isinstance(credentials, UserSecret):
            is_proving = on_challenge is None and not credentials.is_plain
            prove = credentials.prove if is_proving else None
            return cls(credentials.encoded_credentials(), on_challenge or _refuse, prove)
        if not hasattr(credentials, "encoded_credentials"):
            raise ConfigurationError(
                "credentials must be bytes or have encoded_credentials and on_challenge, or be an"
                f" aerotape.UserSecret(user, secret), not {type(credentials).__name__}",
                "credentials",
            )
        return cls(credentials.encoded_credentials(), on_challenge or credentials.on_challenge)


def _refuse(_: bytes) -> bytes:
    raise AerotapeError("the archive sent a challenge although the plain secret was sent")
