"""The authenticator that is ready for use: users with secrets and roles, in a file.

A client names itself in one of two ways, in the credentials of its connect request:

    alice:SECRET    the secret itself, which any client can send. Whoever reads the network has it.
    alice           the name; the archive sends a challenge, and the client proves that it knows
                    the secret without sending it (`scram`)

Reading the file and hashing take longer than the conductor may wait, so that threads of their own
do it and the conductor finds the result in a later round. A change of the file counts for the next
connect, and within a second or so for the requests of clients that are connected. A file that
cannot be used any more is an error in the log, and what it said before stays in force.
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

from aerotape.archive.error_log import LOGGER, ErrorLog
from aerotape.archive.security.authentication import SessionProxy
from aerotape.archive.security.scram import DEFAULT_ITERATIONS, KEY_LENGTH, SALT_LENGTH, Verifier
from aerotape.archive.security.users_file import Users, read_users
from aerotape.codecs import archive as codecs
from aerotape.errors import ConfigurationError

MAX_CREDENTIALS_LENGTH = 2_048
# Clients that come and never wait for an answer must not fill the memory.
_MAX_UNDECIDED = 10_000
_MAX_HASHING = 1_000
_CHECK_INTERVAL_NS = 1_000_000_000
_NONCE_LENGTH = 24


@dataclass(slots=True)
class _Refused:
    why: str


@dataclass(slots=True)
class _Accepted:
    user: str


@dataclass(slots=True)
class _Challenged:
    user: str
    verifier: Verifier
    challenge: bytes


_Outcome = _Refused | _Accepted | _Challenged


class UsersFile:
    """What a users file says at the moment. Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Read it.

        Raises:
            ConfigurationError: it cannot be used.
        """
        self.path = path
        self._lock = threading.Lock()
        self._state = self._look()
        self._users: Users = read_users(path)
        self._complaint = ""

    def _look(self) -> tuple[int, ...] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
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
                try:
                    self._users = read_users(self.path)
                    self._complaint = ""
                    LOGGER.info("users file %s read again: %d users", self.path, len(self._users))
                except ConfigurationError as error:
                    # Whoever edits a file in place would lock everybody out for that moment.
                    if str(error) != self._complaint:
                        self._complaint = str(error)
                        LOGGER.error("%s; what it said before stays in force", error)
                self._state = state
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
        self._hashing = ThreadPoolExecutor(1, thread_name_prefix="archive-users-hash")
        self._hashing_count = 0
        self._count_lock = threading.Lock()
        self._undecided: OrderedDict[int, Future[_Outcome]] = OrderedDict()
        self._answers: OrderedDict[int, Future[_Outcome]] = OrderedDict()
        self._check_due_ns = 0
        self._refusals = ErrorLog()
        # Secrets that were right, so that a thousand clients of one user cost one hash: digests
        # under a key that only this process has, and the verifier that they were right for.
        self._digest_key = secrets.token_bytes(KEY_LENGTH)
        self._known: dict[str, tuple[Verifier, bytes]] = {}
        # Who asks for a user that is not there gets a challenge all the same, always the same salt,
        # and waits as long for a no.
        self._decoy_key = secrets.token_bytes(KEY_LENGTH)

    def close(self) -> None:
        """End the threads. Idempotent."""
        for pool in (self._proving, self._hashing):
            pool.shutdown(wait=True, cancel_futures=True)

    # ---- authenticator ------------------------------------------------------------------------

    def on_connect_request(
        self, session_id: int, encoded_credentials: bytes, _now_ms: int, /
    ) -> None:
        """Begin to find out who it is."""
        name, colon, secret = encoded_credentials.partition(b":")
        if len(encoded_credentials) > MAX_CREDENTIALS_LENGTH or not name:
            outcome = _decided(_Refused("credentials must be USER:SECRET or USER"))
        elif not colon:
            outcome = self._proving.submit(self._begin_proof, name)
        elif self._enter_hashing():
            outcome = self._hashing.submit(self._check_secret, name, secret)
        else:
            outcome = _decided(_Refused(f"{_MAX_HASHING} other secrets are being checked"))
        _keep(self._undecided, session_id, outcome)

    def on_challenge_response(
        self, session_id: int, encoded_credentials: bytes, _now_ms: int, /
    ) -> None:
        """Begin to check a proof; only the first answer to a challenge counts."""
        begun = self._undecided.pop(session_id, None)
        outcome = None if begun is None else begun.result()
        if isinstance(outcome, _Challenged):
            check = self._proving.submit(self._check_proof, outcome, encoded_credentials)
            _keep(self._answers, session_id, check)

    def on_connected_session(self, session_proxy: SessionProxy, _now_ms: int, /) -> None:
        """Tell the client what was found out about its credentials."""
        session_id = session_proxy.session_id
        future = self._undecided.get(session_id)
        if future is not None and not future.done():
            return
        outcome = _Refused("too many clients") if future is None else future.result()
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
        why = outcome.why if isinstance(outcome, _Refused) else "the challenge was not answered"
        self._refusals.record(
            "client refused", f"control session {session_proxy.session_id}: {why}"
        )
        session_proxy.reject()
        return True

    # ---- authorisation service ----------------------------------------------------------------

    def is_authorised(
        self, protocol_id: int, action_id: int, _type: object, encoded_principal: bytes, /
    ) -> bool:
        """Return whether the user is still there and may do that in its role."""
        now_ns = time.monotonic_ns()
        if now_ns >= self._check_due_ns:
            self._check_due_ns = now_ns + _CHECK_INTERVAL_NS
            self._proving.submit(self._file.refresh)
        user = self._file.users.get(_name(encoded_principal))
        return user is not None and protocol_id == codecs.SCHEMA_ID and user.role.allows(action_id)

    # ---- on the threads -----------------------------------------------------------------------

    def _enter_hashing(self) -> bool:
        with self._count_lock:
            if self._hashing_count >= _MAX_HASHING:
                return False
            self._hashing_count += 1
            return True

    def _check_secret(self, encoded_name: bytes, secret: bytes) -> _Outcome:
        try:
            name = _name(encoded_name)
            verifier = self._verifier(name)
            digest = hashlib.blake2b(secret, key=self._digest_key).digest()
            known = self._known.get(name)
            is_known = (
                known is not None and known[0] == verifier and hmac.compare_digest(known[1], digest)
            )
            if not is_known and not verifier.accepts_secret(secret):
                return _Refused(f"no user {name!r} with that secret")
            self._known[name] = (verifier, digest)
            return _Accepted(name)
        finally:
            with self._count_lock:
                self._hashing_count -= 1

    def _begin_proof(self, encoded_name: bytes) -> _Outcome:
        name = _name(encoded_name)
        verifier = self._verifier(name)
        nonce = secrets.token_bytes(_NONCE_LENGTH)
        return _Challenged(name, verifier, verifier.challenge(nonce))

    def _check_proof(self, begun: _Challenged, answer: bytes) -> _Outcome:
        if begun.verifier.accepts_answer(begun.user.encode("ascii"), begun.challenge, answer):
            return _Accepted(begun.user)
        return _Refused(f"no user {begun.user!r} with that secret")

    def _verifier(self, name: str) -> Verifier:
        user = self._file.refresh().get(name)
        return self._decoy(name) if user is None else user.verifier

    def _decoy(self, name: str) -> Verifier:
        """What no secret fits, yet looks like the verifier of a user."""
        salt = hmac.digest(self._decoy_key, name.encode("ascii"), "sha256")[:SALT_LENGTH]
        others = (user.verifier.iterations for user in self._file.users.values())
        iterations = next(others, DEFAULT_ITERATIONS)
        return Verifier(iterations, salt, secrets.token_bytes(KEY_LENGTH))


def _name(encoded: bytes) -> str:
    return encoded.decode("ascii", "backslashreplace")


def _decided(outcome: _Outcome) -> Future[_Outcome]:
    future: Future[_Outcome] = Future()
    future.set_result(outcome)
    return future


def _keep(
    futures: OrderedDict[int, Future[_Outcome]], session_id: int, future: Future[_Outcome]
) -> None:
    futures[session_id] = future
    if len(futures) > _MAX_UNDECIDED:
        futures.popitem(last=False)
