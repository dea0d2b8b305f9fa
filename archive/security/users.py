"""The authenticator that is ready for use: users with secrets and roles, in a file.

A client names itself in one of two ways, in the credentials of its connect request:

    alice:SECRET    the secret itself, which any client can send. Whoever reads the network has it.
    alice           the name; the archive sends a challenge, and the client proves that it knows
                    the secret without sending it (`scram`)

Reading the file and hashing take longer than the conductor may wait, so that threads of their own
do it and the conductor finds the result in a later round. Who proves the secret never waits for the
hashing of others, nor who sends one that was right before; other secrets take turns
(`secret_checks`), once their client is there to be answered. A change of the file counts for the
next connect, and within a second for the requests of clients that are connected: a request is never
decided by an older list. A file that cannot be used any more is an error in the log, and what it
said before stays in force.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from aerotape.archive.error_log import LOGGER, ErrorLog
from aerotape.archive.security import users_file
from aerotape.archive.security.authentication import SessionProxy
from aerotape.archive.security.scram import DEFAULT_ITERATIONS, KEY_LENGTH, SALT_LENGTH, Verifier
from aerotape.archive.security.secret_checks import BusyError, SecretChecks, host_of
from aerotape.archive.security.users_file import Users, read_users
from aerotape.codecs import archive as codecs
from aerotape.errors import ConfigurationError, StorageError
from aerotape.records import record

_T = TypeVar("_T")

MAX_CREDENTIALS_LENGTH = 2_048
# Clients that come and never wait for an answer must not fill the memory.
_MAX_UNDECIDED = 10_000
_MAX_WRONG = 1_000
_MAX_LIST_AGE_NS = 1_000_000_000
_NONCE_LENGTH = 24


@record(slots=True)
class _Refused:
    """Refused; `is_busy` when nobody has looked at the secret."""

    why: str
    is_busy: bool = False


@record(slots=True)
class _Accepted:
    user: str


@record(slots=True)
class _Challenged:
    user: str
    verifier: Verifier
    challenge: bytes


_Verdict = _Refused | _Accepted


@record(slots=True)
class _Sent:
    """A secret, plain, from a client that cannot be answered yet."""

    name: bytes
    secret: bytes


@record(slots=True)
class _Hashing:
    check: Future[_Verdict]


_Outcome = _Verdict | _Challenged | _Hashing
# A user, and a digest of the secret.
_Secret = tuple[str, bytes]


class UsersFile:
    """What a users file says at the moment. Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Read it.

        Raises:
            ConfigurationError: it cannot be used.
        """
        self.path = path
        self._lock = threading.Lock()
        # None: whatever it is, it must be read again.
        self._state: tuple[int, ...] | None = self._look()
        self._users: Users = read_users(path)
        self._complaint = ""

    def _look(self) -> tuple[int, ...]:
        try:
            status = self.path.stat()
        except OSError:
            return ()
        return (
            status.st_ino,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_size,
        )

    @property
    def users(self) -> Users:
        """The users, as last read."""
        return self._users

    def refresh(self) -> Users:
        """Read the file if it has changed; return the users. May wait for the disk."""
        with self._lock:
            state = self._look()
            if state != self._state:
                self._state = state
                try:
                    self._users = read_users(self.path)
                    self._complaint = ""
                    LOGGER.info("users file %s read again: %d users", self.path, len(self._users))
                except ConfigurationError as error:
                    # Whoever edits a file in place would lock everybody out for that moment.
                    if str(error) != self._complaint:
                        self._complaint = str(error)
                        LOGGER.error("%s; what it said before stays in force", error)
                    # It may have been this process (no descriptor left, say), and not the file.
                    self._state = None
            return self._users


class UsersGuard:
    """Authenticator and authorisation service in one. Called by the conductor; `close` ends it."""

    def __init__(self, path: Path) -> None:
        """Read the file and start no thread yet.

        Raises:
            ConfigurationError: the file cannot be used.
        """
        self._file = UsersFile(path)
        # Proofs take no time and must not queue behind secrets, whose hashing does.
        self._proving = ThreadPoolExecutor(1, thread_name_prefix="archive-users")
        self._hashing: SecretChecks[_Verdict] = SecretChecks()
        self._undecided: OrderedDict[int, Future[_Outcome] | _Sent] = OrderedDict()
        self._answers: OrderedDict[int, Future[_Outcome]] = OrderedDict()
        self._check_due_ns = 0
        self._refusals = ErrorLog()
        # Secrets that were right, so that a thousand clients of one user cost one hash, and so does
        # one with a wrong secret that tries for ever: digests under a key that only this process
        # has, and the verifier that they were right or wrong for. Those that are being checked.
        self._digest_key = secrets.token_bytes(KEY_LENGTH)
        self._known: dict[str, tuple[Verifier, bytes]] = {}
        self._wrong: OrderedDict[_Secret, Verifier] = OrderedDict()
        self._checking: dict[_Secret, tuple[Verifier, Future[_Verdict]]] = {}
        # Who asks for a user that is not there gets a challenge all the same, always the same salt,
        # and waits as long for a no.
        self._decoy_key = _decoy_key(path)

    def close(self) -> None:
        """End the threads. Idempotent."""
        self._proving.shutdown(wait=True, cancel_futures=True)
        self._hashing.close()

    # ---- authenticator ------------------------------------------------------------------------

    def on_connect_request(
        self, session_id: int, encoded_credentials: bytes, _now_ms: int, /
    ) -> None:
        """Begin to find out who it is."""
        name, colon, secret = encoded_credentials.partition(b":")
        begun: Future[_Outcome] | _Sent
        if len(encoded_credentials) > MAX_CREDENTIALS_LENGTH or not name:
            begun = _decided(_Refused("credentials must be USER:SECRET or USER"))
        elif not colon:
            begun = self._proving.submit(self._begin_proof, name)
        else:
            begun = _Sent(name, secret)
        _keep(self._undecided, session_id, begun)

    def on_challenge_response(
        self, session_id: int, encoded_credentials: bytes, _now_ms: int, /
    ) -> None:
        """Begin to check a proof; only the first answer to a challenge counts."""
        begun = self._undecided.pop(session_id, None)
        outcome = begun.result() if isinstance(begun, Future) else None
        if isinstance(outcome, _Challenged):
            check = self._proving.submit(self._check_proof, outcome, encoded_credentials)
            _keep(self._answers, session_id, check)

    def on_connected_session(self, session_proxy: SessionProxy, _now_ms: int, /) -> None:
        """Tell the client what was found out about its credentials."""
        session_id = session_proxy.session_id
        begun = self._undecided.get(session_id)
        if isinstance(begun, _Sent):
            host = host_of(session_proxy.source_identity)
            begun = self._proving.submit(self._begin_check, begun, host)
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
        """Tell the client what was found out about its answer."""
        session_id = session_proxy.session_id
        future = self._answers.get(session_id)
        if future is not None and future.done() and self._decide(session_proxy, future.result()):
            self._answers.pop(session_id, None)

    def _decide(self, session_proxy: SessionProxy, outcome: _Outcome) -> bool:
        """Tell a client; False when it is to be told again later."""
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
        """Return whether the user is still there and may do that in its role."""
        now_ns = time.monotonic_ns()
        if now_ns >= self._check_due_ns:
            # Here and now, a `stat` for most: by a list that is read later a removed user who was
            # idle could act once more.
            self._file.refresh()
            self._check_due_ns = now_ns + _MAX_LIST_AGE_NS
        user = self._file.users.get(_name(encoded_principal))
        return user is not None and protocol_id == codecs.SCHEMA_ID and user.role.allows(action_id)

    # ---- on the threads -----------------------------------------------------------------------

    def _begin_check(self, sent: _Sent, host: str) -> _Outcome:
        """Look whether the secret is one that was checked, or is being; else have it checked."""
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
        try:
            check = self._hashing.submit(
                host, verifier.iterations, lambda: self._check_secret(key, verifier, sent.secret)
            )
        except BusyError as busy:
            return _Refused(str(busy), is_busy=True)
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
        """What no secret fits, yet looks like the verifier of a user."""
        salt, stored_key = (
            hmac.digest(self._decoy_key, part + name.encode("ascii"), "sha256")
            for part in (b"salt ", b"key ")
        )
        others = (user.verifier.iterations for user in self._file.users.values())
        iterations = next(others, DEFAULT_ITERATIONS)
        return Verifier(iterations, salt[:SALT_LENGTH], stored_key)


def _decoy_key(path: Path) -> bytes:
    """Return the key stored beside the users file, else one that is lost with this process."""
    try:
        return users_file.decoy_key(path)
    except StorageError as error:
        LOGGER.warning(
            "%s: the salts sent for unknown users change at each start, which shows that they are"
            " unknown; `aerotape users %s add …` creates the file, and the archive's user"
            " (id %d) must be able to read it",
            error,
            path,
            os.geteuid(),
        )
        return secrets.token_bytes(KEY_LENGTH)


def _name(encoded: bytes) -> str:
    return encoded.decode("ascii", "backslashreplace")


def _refused_secret(name: str) -> _Refused:
    return _Refused(f"no user {name!r} with that secret")


def _decided(outcome: _Outcome) -> Future[_Outcome]:
    future: Future[_Outcome] = Future()
    future.set_result(outcome)
    return future


def _keep(kept: OrderedDict[int, _T], session_id: int, begun: _T) -> None:
    kept[session_id] = begun
    if len(kept) > _MAX_UNDECIDED:
        kept.popitem(last=False)
