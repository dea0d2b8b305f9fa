"""The built-in authenticator and authorisation service: users with secrets and roles, in a file.

A client sends one of two kinds of credentials in its connect request:

    alice:SECRET    the secret itself, which any client can send and any reader of the network sees
    alice           the name; the archive sends a challenge, and the client proves that it knows
                    the secret without sending it (`scram`)

Reading the file and hashing block for longer than the conductor may, so two threads do it and the
conductor finds the result in a later duty cycle. One thread hashes secrets, from a bounded queue:
while the queue is full, further secrets are refused as busy. The other thread serves proofs and
secrets whose outcome is known, which therefore never wait for hashing. A secret is queued only
once its client can receive the response.

A change of the file applies to the next connect, and within a second to the requests of connected
clients. If the file becomes unusable, that is logged as an error and the last valid users stay in
force.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from aerotape.archive.error_log import LOGGER, ErrorLog
from aerotape.archive.security.authentication import SessionProxy
from aerotape.archive.security.scram import DEFAULT_ITERATIONS, KEY_LENGTH, SALT_LENGTH, Verifier
from aerotape.archive.security.users_file import Users, read_users
from aerotape.errors import ConfigurationError

_T = TypeVar("_T")

MAX_CREDENTIALS_LENGTH = 2_048
# Secrets being hashed or queued. With the default iterations that is about 3 s, less than the
# default connect timeouts of archive and clients.
MAX_QUEUED_SECRETS = 32
# Bounds the memory for clients that connect and never wait for a response.
_MAX_UNDECIDED = 10_000
_MAX_WRONG = 1_000
_MAX_LIST_AGE_NS = 1_000_000_000
_NONCE_LENGTH = 24


@dataclass(slots=True)
class _Refused:
    """Refused; `is_busy` when the secret was not checked."""

    why: str
    is_busy: bool = False


@dataclass(slots=True)
class _Accepted:
    user: str


@dataclass(slots=True)
class _Challenged:
    user: str
    verifier: Verifier
    challenge: bytes


_Verdict = _Refused | _Accepted


@dataclass(slots=True)
class _Sent:
    """A plain secret from a client that cannot receive a response yet."""

    name: bytes
    secret: bytes


@dataclass(slots=True)
class _Hashing:
    check: Future[_Verdict]


_Outcome = _Verdict | _Challenged | _Hashing
# A user, and a digest of the secret.
_Secret = tuple[str, bytes]


class UsersFile:
    """The current users of a users file. Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            ConfigurationError: it cannot be used.
        """
        self.path = path
        self._lock = threading.Lock()
        # None: must be read again.
        self._version: tuple[int, ...] | None = self._file_version()
        self._users: Users = read_users(path)
        self._complaint = ""

    def _file_version(self) -> tuple[int, ...]:
        try:
            status = self.path.stat()
        except OSError:
            return ()
        return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size

    @property
    def users(self) -> Users:
        """The users, as last read."""
        return self._users

    def refresh(self) -> Users:
        """Read the file if it has changed; return the users. May wait for the disk."""
        with self._lock:
            version = self._file_version()
            if version != self._version:
                self._version = version
                try:
                    self._users = read_users(self.path)
                    self._complaint = ""
                    LOGGER.info("users file %s read again: %d users", self.path, len(self._users))
                except ConfigurationError as error:
                    # An edit in place must not lock all users out for that moment.
                    if str(error) != self._complaint:
                        self._complaint = str(error)
                        LOGGER.error("%s; the last valid users stay in force", error)
                    # The cause may be this process (no file descriptor left), and not the file.
                    self._version = None
            return self._users


class UsersGuard:
    """Authenticator and authorisation service in one. Called by the conductor; `close` ends it."""

    def __init__(self, path: Path) -> None:
        """Read the file and start no thread yet.

        Raises:
            ConfigurationError: the file cannot be used.
        """
        self._file = UsersFile(path)
        # Proofs are quick and must not queue with secrets, which are slow to hash.
        self._proving = ThreadPoolExecutor(1, thread_name_prefix="archive-users")
        self._hashing = ThreadPoolExecutor(1, thread_name_prefix="archive-users-hash")
        self._undecided: OrderedDict[int, Future[_Outcome] | _Sent] = OrderedDict()
        self._answers: OrderedDict[int, Future[_Outcome]] = OrderedDict()
        self._check_due_ns = 0
        self._refusals = ErrorLog()
        # Secrets that were right or wrong, and for which verifier, so that many clients with one
        # secret cost one hash. Stored as digests under a key that only this process has.
        self._digest_key = secrets.token_bytes(KEY_LENGTH)
        self._known: dict[str, tuple[Verifier, bytes]] = {}
        self._wrong: OrderedDict[_Secret, Verifier] = OrderedDict()
        # Secrets that are being hashed or queued for it.
        self._checking: dict[_Secret, tuple[Verifier, Future[_Verdict]]] = {}
        # A client with an unknown user name receives a challenge too, always with the same salt,
        # and waits as long for its refusal.
        self._decoy_key = _decoy_key(self._file.users)

    def close(self) -> None:
        """End the threads. Idempotent."""
        self._proving.shutdown(wait=True, cancel_futures=True)
        self._hashing.shutdown(wait=True, cancel_futures=True)

    # ---- authenticator ------------------------------------------------------------------------

    def on_connect_request(
        self, session_id: int, encoded_credentials: bytes, _now_ms: int, /
    ) -> None:
        """Begin to identify the client."""
        name, colon, secret = encoded_credentials.partition(b":")
        begun: Future[_Outcome] | _Sent
        if len(encoded_credentials) > MAX_CREDENTIALS_LENGTH or not name:
            begun = _decided(_Refused("credentials must be USER:SECRET or USER"))
        elif not colon:
            begun = self._proving.submit(self._begin_proof, name)
        else:
            begun = _Sent(name, secret)
        _store(self._undecided, session_id, begun)

    def on_challenge_response(
        self, session_id: int, encoded_credentials: bytes, _now_ms: int, /
    ) -> None:
        """Begin to check a proof; only the first response to a challenge counts."""
        begun = self._undecided.pop(session_id, None)
        outcome = begun.result() if isinstance(begun, Future) else None
        if isinstance(outcome, _Challenged):
            check = self._proving.submit(self._check_proof, outcome, encoded_credentials)
            _store(self._answers, session_id, check)

    def on_connected_session(self, session_proxy: SessionProxy, _now_ms: int, /) -> None:
        """Send the client the outcome of its credentials, when there is one."""
        session_id = session_proxy.session_id
        begun = self._undecided.get(session_id)
        if isinstance(begun, _Sent):
            begun = self._proving.submit(self._begin_check, begun)
            self._undecided[session_id] = begun
        if begun is not None and not begun.done():
            return
        outcome = _Refused("too many clients", True) if begun is None else begun.result()
        if isinstance(outcome, _Hashing):
            if not outcome.check.done():
                return
            outcome = outcome.check.result()
        if isinstance(outcome, _Challenged):
            session_proxy.challenge(outcome.challenge)
        elif self._decide(session_proxy, outcome):
            self._undecided.pop(session_id, None)

    def on_challenged_session(self, session_proxy: SessionProxy, _now_ms: int, /) -> None:
        """Send the client the outcome of its response to the challenge, when there is one."""
        session_id = session_proxy.session_id
        future = self._answers.get(session_id)
        if future is not None and future.done() and self._decide(session_proxy, future.result()):
            self._answers.pop(session_id, None)

    def _decide(self, session_proxy: SessionProxy, outcome: _Outcome) -> bool:
        """Send a client its outcome; False when this must be repeated later."""
        if isinstance(outcome, _Accepted):
            return session_proxy.authenticate(outcome.user.encode("ascii"))
        refused = (
            outcome if isinstance(outcome, _Refused) else _Refused("the challenge was not answered")
        )
        self._refusals.record(
            "client refused", f"control session {session_proxy.session_id}: {refused.why}"
        )
        session_proxy.reject(f"{refused.why}: try again" if refused.is_busy else "")
        return True

    # ---- authorisation service ----------------------------------------------------------------

    def is_authorised(
        self, protocol_id: int, action_id: int, _type: object, encoded_principal: bytes, /
    ) -> bool:
        """Return whether the user still exists and its role allows the action."""
        now_ns = time.monotonic_ns()
        if now_ns >= self._check_due_ns:
            # In this call (mostly a `stat`): if the file were read later, a removed user who was
            # idle could make one more request.
            self._file.refresh()
            self._check_due_ns = now_ns + _MAX_LIST_AGE_NS
        user = self._file.users.get(_name(encoded_principal))
        return user is not None and user.role.allows(action_id, protocol_id)

    # ---- on the threads -----------------------------------------------------------------------

    def _begin_check(self, sent: _Sent) -> _Outcome:
        """Return the outcome of a secret if it is known, else queue the secret for hashing."""
        name = _name(sent.name)
        verifier = self._verifier(name)
        digest = hashlib.blake2b(sent.secret, key=self._digest_key).digest()
        known = self._known.get(name)
        if known is not None and known[0] == verifier and hmac.compare_digest(known[1], digest):
            return _Accepted(name)
        key = (name, digest)
        if self._wrong.get(key) == verifier:
            return _refused_secret(name)
        begun = self._checking.get(key)
        if begun is not None and begun[0] == verifier:
            return _Hashing(begun[1])
        if len(self._checking) >= MAX_QUEUED_SECRETS:
            why = f"{len(self._checking)} other secrets are to be checked first"
            return _Refused(why, is_busy=True)
        check = self._hashing.submit(self._check_secret, key, verifier, sent.secret)
        self._checking[key] = (verifier, check)
        check.add_done_callback(lambda _: self._checking.pop(key, None))
        return _Hashing(check)

    def _check_secret(self, key: _Secret, verifier: Verifier, secret: bytes) -> _Verdict:
        name, digest = key
        if verifier.accepts_secret(secret):
            self._known[name] = (verifier, digest)
            return _Accepted(name)
        self._wrong[key] = verifier
        if len(self._wrong) > _MAX_WRONG:
            self._wrong.popitem(last=False)
        return _refused_secret(name)

    def _begin_proof(self, encoded_name: bytes) -> _Outcome:
        name = _name(encoded_name)
        verifier = self._verifier(name)
        nonce = secrets.token_bytes(_NONCE_LENGTH)
        return _Challenged(name, verifier, verifier.challenge(nonce))

    def _check_proof(self, begun: _Challenged, answer: bytes) -> _Outcome:
        if begun.verifier.accepts_answer(begun.user.encode("ascii"), begun.challenge, answer):
            return _Accepted(begun.user)
        return _refused_secret(begun.user)

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


def _refused_secret(name: str) -> _Refused:
    return _Refused(f"no user {name!r} with that secret")


def _decided(outcome: _Outcome) -> Future[_Outcome]:
    future: Future[_Outcome] = Future()
    future.set_result(outcome)
    return future


def _store(sessions: OrderedDict[int, _T], session_id: int, begun: _T) -> None:
    sessions[session_id] = begun
    if len(sessions) > _MAX_UNDECIDED:
        sessions.popitem(last=False)
