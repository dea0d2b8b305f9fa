"""Proofs of knowledge of a secret, with the keys of SCRAM-SHA-256 (RFC 5802, RFC 7677).

    SaltedPassword = PBKDF2-HMAC-SHA-256(secret, salt, iterations)
    ClientKey      = HMAC(SaltedPassword, "Client Key")
    StoredKey      = SHA-256(ClientKey)
    proof          = ClientKey XOR HMAC(StoredKey, message)

The archive stores salt, iterations and StoredKey. With these it can check a secret or a proof, but
not create one: a stolen file gives no access until secrets are guessed, which the iterations slow
down. A proof is valid for one message, which contains a nonce.

A challenge reads ``scram-sha-256 r=NONCE,s=SALT,i=ITERATIONS`` and its answer ``p=PROOF``, with
base64 for bytes; the message is the user's name, a zero byte and the challenge.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass

from aerotape.errors import AerotapeError

DEFAULT_ITERATIONS = 200_000
# Fewer make guessing too easy; with more, a challenge could occupy a client for seconds.
MIN_ITERATIONS = 4_096
MAX_ITERATIONS = 2_000_000
SALT_LENGTH = 16
KEY_LENGTH = 32

_HASH = "sha256"
_CHALLENGE = re.compile(rb"scram-sha-256 r=[^,]+,s=([^,]+),i=([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Verifier:
    """The data to check a secret with, which do not reveal it.

    Attributes:
        iterations: of PBKDF2.
        salt: random bytes, for this secret alone.
        stored_key: 32 bytes.
    """

    iterations: int
    salt: bytes
    stored_key: bytes

    @classmethod
    def of(cls, secret: bytes, salt: bytes, iterations: int) -> Verifier:
        """Compute the verifier of a secret; slow, as it hashes."""
        return cls(iterations, salt, _hash(_client_key(secret, salt, iterations)))

    def accepts_secret(self, secret: bytes) -> bool:
        """Return whether it is this secret; slow, as it hashes."""
        found = _hash(_client_key(secret, self.salt, self.iterations))
        return hmac.compare_digest(found, self.stored_key)

    def accepts_answer(self, user: bytes, challenge: bytes, answer: bytes) -> bool:
        """Return whether `answer` proves for this challenge that `user` knows the secret."""
        try:
            proof = base64.b64decode(answer.removeprefix(b"p="), validate=True)
        except binascii.Error:
            return False
        if not answer.startswith(b"p=") or len(proof) != KEY_LENGTH:
            return False
        client_key = _xor(proof, self._signature(user, challenge))
        return hmac.compare_digest(_hash(client_key), self.stored_key)

    def _signature(self, user: bytes, challenge: bytes) -> bytes:
        return hmac.digest(self.stored_key, user + b"\0" + challenge, _HASH)

    def challenge(self, nonce: bytes) -> bytes:
        """Return the challenge for a client that claims to know the secret."""
        return b"scram-sha-256 r=%b,s=%b,i=%d" % (
            base64.b64encode(nonce),
            base64.b64encode(self.salt),
            self.iterations,
        )


def answer_challenge(user: bytes, secret: bytes, challenge: bytes) -> bytes:
    """Return the response that proves knowledge of the secret; slow, as it hashes.

    Raises:
        AerotapeError: the challenge is of another kind, or requests unsafe iterations.
    """
    matched = _CHALLENGE.fullmatch(challenge)
    if matched is None:
        raise AerotapeError(
            f"the archive's challenge is not one for a user's secret: {challenge[:80]!r}"
        )
    iterations = int(matched[2])
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise AerotapeError(
            f"the archive asks for {iterations} iterations: from {MIN_ITERATIONS} to"
            f" {MAX_ITERATIONS} are safe to answer"
        )
    try:
        salt = base64.b64decode(matched[1], validate=True)
    except binascii.Error:
        raise AerotapeError(f"the archive's challenge is damaged: {challenge[:80]!r}") from None
    client_key = _client_key(secret, salt, iterations)
    signature = hmac.digest(_hash(client_key), user + b"\0" + challenge, _HASH)
    return b"p=" + base64.b64encode(_xor(client_key, signature))


def _client_key(secret: bytes, salt: bytes, iterations: int) -> bytes:
    salted = hashlib.pbkdf2_hmac(_HASH, secret, salt, iterations)
    return hmac.digest(salted, b"Client Key", _HASH)


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
