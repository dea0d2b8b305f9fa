"""Deterministic messages: the same seed produces the same payloads here and in Messages.java.

Message `index` of `seed` draws from a SplitMix64 generator started at
`mix(mix(seed * GOLDEN) + index)`. The first number is the length in [min_length, max_length]; the
next thirteen, little-endian, are a block of 104 bytes that is repeated to that length. 104
divides no usual fragment length, so fragments in the wrong order are detected. A digest is the
SHA-256 of each message's length (4 bytes, little-endian) and payload.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
_BLOCK = struct.Struct("<13Q")


def _mix(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def message(seed: int, index: int, min_length: int = 32, max_length: int = 2048) -> bytes:
    """Return message `index` (from 0) of the stream of `seed`; lengths in bytes."""
    state = (_mix((seed * _GOLDEN) & _MASK) + index) & _MASK
    state = _mix(state)
    length = min_length + _mix((state + _GOLDEN) & _MASK) % (max_length - min_length + 1)
    block = _BLOCK.pack(*(_mix((state + draw * _GOLDEN) & _MASK) for draw in range(2, 15)))
    return (block * (length // len(block) + 1))[:length]


def messages(
    seed: int, count: int, min_length: int = 32, max_length: int = 2048, first_index: int = 0
) -> Iterator[bytes]:
    """Yield `count` messages from `first_index` on."""
    for index in range(first_index, first_index + count):
        yield message(seed, index, min_length, max_length)


def digest(payloads: Iterable[bytes]) -> str:
    """Return the hex digest of a sequence of messages, as the Java side computes it."""
    sha = hashlib.sha256()
    for payload in payloads:
        sha.update(len(payload).to_bytes(4, "little"))
        sha.update(payload)
    return sha.hexdigest()
