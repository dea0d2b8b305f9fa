"""The built-in authenticator and authorisation service: users with secrets and roles, in a file.

A client sends one of two kinds of credentials in its connect request:

    alice:SECRET    the secret itself, which any client can send and any reader of the network sees
    alice           the name; the archive sends a challenge, and the client proves that it knows
                    the secret without sending it (`scram`)

Hashing a secret blocks for longer than the conductor may, so a thread does it, from a bounded
queue: while the queue is full, further secrets are refused as busy. Proofs, and secrets whose
outcome is known, never wait for it. A secret is queued only once its client can receive the
response.

A change of the file applies to the next connect, and within a second to the requests of connected
clients. If the file becomes unusable or empty, that is logged as an error and the last valid users
stay in force.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from aerotape.archive.error_log import LOGGER, ErrorLog
from aerotape.archive.security.authentication import SessionProxy
from aerotape.archive.security.permissions import Permissions
from aerotape.archive.security.users_file import Role, Users, read_users
from aerotape.archive.threads import ThreadNaming, show_thread_name, thread_name
from aerotape.control_address import CONTROL_ADDRESSES, OwnAddresses
from aerotape.errors import ConfigurationError
from aerotape.scram import (
    DEFAULT_ITERATIONS,
    KEY_LENGTH,
    SALT_LENGTH,
    Answer,
    Verifier,
)

MAX_CREDENTIALS_LENGTH = 2_048
# Secrets being hashed or queued. With the default iterations that is about 3 s, less than the
# default connect timeouts of archive and clients.
MAX_QUEUED_SECRETS = 32
# Bounds the memory for clients that connect and never wait for a response.
_MAX_UNDECIDED = 10_000
_MAX_CHECKS = 1_000
_MAX_LIST_AGE_NS = 1_000_000_000
_NONCE_LENGTH = 24
_NO_CREDENTIALS = (
    "this archive has users: connect as one, with --user and --secret-file or"
    " credentials=aerotape.UserSecret(…)"
)
_UNBOUND = (
    "the proof names no address (c=ADDRESS): the client is older than this archive: update it, or"
    " send the secret in plain text"
)


@dataclass(frozen=True, slots=True)
class _Decision:
    """The outcome of credentials: the user, or why there is none and the text for the client."""

    user: str = ""
    why: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class _Challenge:
    user: str
    verifier: Verifier
    challenge: bytes


@dataclass(frozen=True, slots=True)
class _Answered:
    """A challenge with the client's response."""

    begun: _Challenge
    response: bytes


@dataclass(frozen=True, slots=True)
class _Check:
    """A plain secret that is or was hashed; of the secret a digest is stored."""

    user: str
    digest: bytes
    verifier: Verifier
    is_right: Future[bool]


def _some_users(path: Path) -> Users:
    """Read the file; without users it would lock everybody out (ConfigurationError)."""
    users = read_users(path)
    if not users:
        raise ConfigurationError(
            f"users file {path} has no users: add one with `aerotape users {path} add NAME`",
            str(path),
        )
    return users


_State = _Challenge | _Answered | _Check | _Decision


class UsersFile:
    """The current users of a users file. For the conductor's thread."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            ConfigurationError: it cannot be used.
        """
        self.path = path
        self._version = self._file_version()
        self.users = _some_users(path)
        self._complaint = ""

    def _file_version(self) -> tuple[int, ...]:
        try:
            status = self.path.stat()
        except OSError:
            return ()
        return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size

    def refresh(self) -> Users:
        """Read the file if it has changed; return the users. Mostly a `stat`."""
        version = self._file_version()
        if version != self._version:
            try:
                self.users = _some_users(self.path)
                self._version, self._complaint = version, ""
                LOGGER.info("users file %s read again: %d users", self.path, len(self.users))
            except ConfigurationError as error:
                # An edit in place must not lock all users out for that moment.
                if str(error) != self._complaint:
                    self._complaint = str(error)
                    LOGGER.error("%s; the last valid users stay in force", error)
        return self.users


class UsersGuard:
    """Authenticator and authorisation service in one. Called by the conductor; `close` ends it."""

    def __init__(
        self,
        path: Path,
        addresses: OwnAddresses,
        permissions: Permissions,
        naming: ThreadNaming = "classic",
    ) -> None:
        """Read the file and start no thread yet.

        Args:
            addresses: of this archive, to which proofs have to be bound.
            permissions: of the roles.
            naming: of the thread.

        Raises:
            ConfigurationError: the file cannot be used.
        """
        self._file = UsersFile(path)
        self._addresses = addresses
        self._permissions = permissions
        name = thread_name("users", naming)
        self._hashing = ThreadPoolExecutor(1, name, show_thread_name, (name,))
        # By control session: the credentials until the client can receive a response, then a state.
        self._undecided: OrderedDict[int, bytes | _State] = OrderedDict()
        self._check_due_ns = 0
        self._refusals = ErrorLog()
        # Many clients with one secret cost one hash. Wrong secrets displace no right ones. The key
        # of the digests has only this process.
        self._digest_key = secrets.token_bytes(KEY_LENGTH)
        self._right: dict[str, _Check] = {}
        self._checks: OrderedDict[tuple[str, bytes], _Check] = OrderedDict()
        # A client with an unknown user name receives a challenge too, always with the same salt,
        # and waits as long for its refusal.
        self._decoy_key = _decoy_key(self._file.users)

    def close(self) -> None:
        """End the thread. Idempotent."""
        self._hashing.shutdown(wait=True, cancel_futures=True)

    # ---- authenticator ------------------------------------------------------------------------

    def on_connect_request(
        self, session_id: int, encoded_credentials: bytes, _now_ms: int, /
    ) -> None:
        """Store the credentials until the client can receive a response."""
        self._undecided[session_id] = encoded_credentials[: MAX_CREDENTIALS_LENGTH + 1]
        if len(self._undecided) > _MAX_UNDECIDED:
            self._undecided.popitem(last=False)

    def on_challenge_response(
        self, session_id: int, encoded_credentials: bytes, _now_ms: int, /
    ) -> None:
        """Store a proof; only the first response to a challenge counts."""
        begun = self._undecided.get(session_id)
        if isinstance(begun, _Challenge):
            self._undecided[session_id] = _Answered(begun, encoded_credentials)

    def on_connected_session(self, session_proxy: SessionProxy, _now_ms: int, /) -> None:
        """Send the client the outcome of its credentials, when there is one."""
        session_id = session_proxy.session_id
        begun = self._undecided.get(session_id, _TOO_MANY)
        if isinstance(begun, bytes):
            begun = self._undecided[session_id] = self._begin(begun)
        if isinstance(begun, _Challenge):
            session_proxy.challenge(begun.challenge)
            return
        if isinstance(begun, _Answered):
            begun = self._checked(begun, session_proxy.source_identity)
            self._undecided[session_id] = begun
        if isinstance(begun, _Check):
            if not begun.is_right.done():
                return
            if begun.is_right.result():
                self._right[begun.user] = begun
            begun = _decision(begun.user, begun.is_right.result())
        if self._decide(session_proxy, begun):
            self._undecided.pop(session_id, None)

    def on_challenged_session(self, session_proxy: SessionProxy, now_ms: int, /) -> None:
        """Send the client the outcome of its response to the challenge, when there is one."""
        if not isinstance(self._undecided.get(session_proxy.session_id), _Challenge):
            self.on_connected_session(session_proxy, now_ms)

    def _decide(self, session_proxy: SessionProxy, decision: _Decision) -> bool:
        """Send a client its outcome; False when this must be repeated later."""
        if not decision.why:
            return session_proxy.authenticate(decision.user.encode("ascii"))
        self._refusals.record(
            "client refused", f"control session {session_proxy.session_id}: {decision.why}"
        )
        session_proxy.reject(decision.advice)
        return True

    # ---- authorisation service ----------------------------------------------------------------

    def is_authorised(
        self, protocol_id: int, action_id: int, _type: object, encoded_principal: bytes, /
    ) -> bool:
        """Return whether the user still exists and its role allows the action."""
        now_ns = time.monotonic_ns()
        if now_ns >= self._check_due_ns:
            self._file.refresh()
            self._check_due_ns = now_ns + _MAX_LIST_AGE_NS
        user = self._file.users.get(_name(encoded_principal))
        return user is not None and self._permissions.allow(user.role, action_id, protocol_id)

    def why_refused(self, protocol_id: int, action_id: int, encoded_principal: bytes, /) -> str:
        """Return the user, its role and the least role that allows the action."""
        name = _name(encoded_principal)
        user = self._file.users.get(name)
        if user is None:
            return f"user {name!r} is no longer in the users file"
        allow = self._permissions.allow
        needed = [role.value for role in Role if allow(role, action_id, protocol_id)]
        need = f", and it needs role {needed[0]}" if needed else ""
        return f"user {name!r} has role {user.role.value}{need}"

    # ---- within -------------------------------------------------------------------------------

    def _begin(self, credentials: bytes) -> _State:
        """Begin to identify a client that can receive responses."""
        encoded_name, colon, secret = credentials.partition(b":")
        if not credentials:
            return _Decision(why="no credentials", advice=_NO_CREDENTIALS)
        if len(credentials) > MAX_CREDENTIALS_LENGTH or not encoded_name:
            return _Decision(why="credentials must be USER:SECRET or USER")
        user = _name(encoded_name)
        verifier = self._verifier(user)
        if colon:
            return self._check(user, verifier, secret)
        return _Challenge(user, verifier, verifier.challenge(secrets.token_bytes(_NONCE_LENGTH)))

    def _check(self, user: str, verifier: Verifier, secret: bytes) -> _Check | _Decision:
        """Return the check of a secret, begun if it is a new one and there is room."""
        digest = hashlib.blake2b(secret, key=self._digest_key).digest()
        for check in (self._right.get(user), self._checks.get((user, digest))):
            if check is not None and (check.digest, check.verifier) == (digest, verifier):
                return check
        queued = sum(not check.is_right.done() for check in self._checks.values())
        if queued >= MAX_QUEUED_SECRETS:
            return _busy(f"{queued} other secrets are to be checked first")
        check = _Check(
            user, digest, verifier, self._hashing.submit(verifier.accepts_secret, secret)
        )
        self._checks[user, digest] = check
        if len(self._checks) > _MAX_CHECKS:
            self._checks.popitem(last=False)
        return check

    def _checked(self, answered: _Answered, source_identity: str) -> _Decision:
        """Check a proof of a client with this source identity."""
        begun, answer = answered.begun, Answer.parse(answered.response)
        if answer is not None and not answer.address:
            return _Decision(why=_UNBOUND, advice=_UNBOUND)
        if answer is None or not begun.verifier.accepts(
            begun.user.encode("ascii"), begun.challenge, answer
        ):
            return _decision(begun.user, is_right=False)
        if not self._addresses.include(answer.address, source_identity):
            return _Decision(
                why=f"user {begun.user!r} at {source_identity} proved its secret to an archive at"
                f" {answer.address}, which is no address of this one: if clients reach this archive"
                f" there, add it to {CONTROL_ADDRESSES}; else another program has passed on the"
                " proof"
            )
        return _decision(begun.user, is_right=True)

    def _verifier(self, name: str) -> Verifier:
        user = self._file.refresh().get(name)
        return self._decoy(name) if user is None else user.verifier

    def _decoy(self, name: str) -> Verifier:
        """Return a verifier that accepts no secret and looks like that of a user."""
        salt, stored_key = (
            hmac.digest(self._decoy_key, part + name.encode("ascii"), "sha256")
            for part in (b"salt ", b"key ")
        )
        others = (user.verifier.iterations for user in self._file.users.values())
        iterations = next(others, DEFAULT_ITERATIONS)
        return Verifier(iterations, salt[:SALT_LENGTH], stored_key)


def _decoy_key(users: Users) -> bytes:
    """Return a key that no client knows, the same after a restart with the same users."""
    return hashlib.sha256(b"".join(user.verifier.stored_key for user in users.values())).digest()


def _name(encoded: bytes) -> str:
    return encoded.decode("ascii", "backslashreplace")


def _decision(user: str, is_right: bool) -> _Decision:
    return _Decision(user, "" if is_right else f"no user {user!r} with that secret")


def _busy(why: str) -> _Decision:
    return _Decision(why=why, advice=f"{why}: try again")


_TOO_MANY = _busy("too many clients")
