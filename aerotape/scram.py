"""Proofs of knowledge of a secret, with the keys of SCRAM-SHA-256 (RFC 5802, RFC 7677).

    SaltedPassword = PBKDF2-HMAC-SHA-256(secret, salt, iterations)
    ClientKey      = HMAC(SaltedPassword, "Client Key")
    StoredKey      = SHA-256(ClientKey)
    proof          = ClientKey XOR HMAC(StoredKey, message)

The archive stores salt, iterations and StoredKey. With these it can check a secret or a proof, but
not create one: a stolen file gives no access until secrets are guessed, which the iterations slow
down.

A challenge reads ``scram-sha-256 r=NONCE,s=SALT,i=ITERATIONS`` and its answer
``c=ADDRESS,p=PROOF``, with base64 for bytes. ADDRESS is where the client sends its requests
(`control_address`). The message is

    user's name, zero byte, challenge, zero byte, ADDRESS

so a proof is valid for one challenge, which contains a nonce, and at one address.
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
_ANSWER = re.compile(rb"(?:c=(?P<address>[!-+\--~]{1,80}),)?p=(?P<proof>[A-Za-z0-9+/=]+)")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a challenge.

    Attributes:
        address: that the client signed; empty in answers of clients that signed none.
        proof: 32 bytes.
    """

    address: str
    proof: bytes

    @classmethod
    def parse(cls, data: bytes) -> Answer | None:
        """Decode an answer; None if it is malformed."""
        matched = _ANSWER.fullmatch(data)
        if matched is None:
            return None
        try:
            proof = base64.b64decode(matched["proof"], validate=True)
        except binascii.Error:
            return None
        address = matched["address"] or b""
        return cls(address.decode("ascii"), proof) if len(proof) == KEY_LENGTH else None

    def encode(self) -> bytes:
        """Return its bytes."""
        return b"c=%b,p=%b" % (self.address.encode("ascii"), base64.b64encode(self.proof))


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

    def accepts(self, user: bytes, challenge: bytes, answer: Answer) -> bool:
        """Return whether `answer` proves for this challenge that `user` knows the secret."""
        signature = _signature(self.stored_key, user, challenge, answer.address)
        return hmac.compare_digest(_hash(_xor(answer.proof, signature)), self.stored_key)

    def challenge(self, nonce: bytes) -> bytes:
        """Return the challenge for a client that claims to know the secret."""
        return b"scram-sha-256 r=%b,s=%b,i=%d" % (
            base64.b64encode(nonce),
            base64.b64encode(self.salt),
            self.iterations,
        )


def answer_challenge(user: bytes, secret: bytes, challenge: bytes, address: str) -> bytes:
    """Return the response that proves knowledge of the secret; slow, as it hashes.

    Args:
        address: where the client sends its requests.

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
    signature = _signature(_hash(client_key), user, challenge, address)
    return Answer(address, _xor(client_key, signature)).encode()


def _signature(stored_key: bytes, user: bytes, challenge: bytes, address: str) -> bytes:
    return hmac.digest(stored_key, b"\0".join((user, challenge, address.encode("ascii"))), _HASH)


def _client_key(secret: bytes, salt: bytes, iterations: int) -> bytes:
    salted = hashlib.pbkdf2_hmac(_HASH, secret, salt, iterations)
    return hmac.digest(salted, b"Client Key", _HASH)


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
