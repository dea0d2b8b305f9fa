"""Entries of ledgers: worked bytes, both versions, distinct errors."""

from __future__ import annotations

import hashlib
import hmac
import random
import zlib
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aerotape.codecs.entry import DigestType, Entry, decode, encode, master_key, read_header
from aerotape.errors import (
    AerotapeError,
    EntryDigestError,
    EntryFormatError,
    EntryMismatchError,
    EntryTooShortError,
    QualifiedIdError,
)
from aerotape.qualified_id import QualifiedId

SCOPE = 0x0123456789ABCDEF
HEADER_1 = "0000000000000007 0000000000000029 0000000000000028 00000000000004d2"
EXAMPLE_1 = bytes.fromhex(f"{HEADER_1} 601b6ee9 68656c6c6f")
EXAMPLE_2 = bytes.fromhex(f"a300000000000000 0123456789abcdef {HEADER_1} 4016c9e2 68656c6c6f")
FIELDS: dict[str, Any] = {
    "ledger_id": 7,
    "entry_id": 41,
    "last_add_confirmed": 40,
    "length": 1234,
    "payload": b"hello",
    "digest_type": "CRC32C",
}
DIGEST_TYPES = get_args(DigestType)
DIGEST_LENGTHS = {"CRC32": 8, "CRC32C": 4, "HMAC": 20, "DUMMY": 0}
PASSWORD = b"secret"


def entry(**changes: Any) -> bytes:
    return encode(**{**FIELDS, **changes})


def test_version_1_has_the_worked_bytes() -> None:
    """In scope 0, which is the default."""
    assert entry() == EXAMPLE_1
    found = decode(EXAMPLE_1, digest_type="CRC32C")
    assert found == Entry(**FIELDS, scope_id=0)
    assert found.qualified_id == QualifiedId(0, 7)


def test_version_2_has_the_worked_bytes() -> None:
    """It names its digest type, so that decoding needs none."""
    assert entry(scope_id=SCOPE) == EXAMPLE_2
    assert decode(EXAMPLE_2) == Entry(**FIELDS, scope_id=SCOPE)
    assert decode(EXAMPLE_2, digest_type="CRC32C").qualified_id == QualifiedId(SCOPE, 7)


@pytest.mark.parametrize("digest_type", DIGEST_TYPES)
@pytest.mark.parametrize("scope_id", [0, SCOPE])
def test_digests_are_over_header_and_payload(scope_id: int, digest_type: DigestType) -> None:
    """As Python's libraries compute them; CRC-32 is extended to eight bytes with zeros."""
    data = entry(scope_id=scope_id, digest_type=digest_type, password=PASSWORD)
    at = 48 if scope_id else 32
    length = DIGEST_LENGTHS[digest_type]
    header, digest, payload = data[:at], data[at : at + length], data[at + length :]
    assert payload == b"hello"
    key = hashlib.sha1(b"mac" + PASSWORD).digest()
    expected = {
        "CRC32": zlib.crc32(header + payload).to_bytes(8, "big"),
        "HMAC": hmac.digest(key, header + payload, "sha1"),
        "DUMMY": b"",
    }
    assert digest == expected.get(digest_type, digest)


@given(
    scope_id=st.integers(0, 2**64 - 1),
    ledger_id=st.integers(0, 2**64 - 1),
    numbers=st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 3),
    payload=st.binary(max_size=300),
    digest_type=st.sampled_from(DIGEST_TYPES),
    password=st.binary(max_size=80),
)
def test_decoding_returns_what_was_encoded(
    scope_id: int,
    ledger_id: int,
    numbers: tuple[int, int, int],
    payload: bytes,
    digest_type: DigestType,
    password: bytes,
) -> None:
    """Ledger ids have 64 unsigned bits in scopes other than 0."""
    if scope_id == 0:
        ledger_id >>= 1
    written = Entry(ledger_id, *numbers, payload, digest_type, scope_id)
    data = encode(**written._asdict(), password=password)
    assert decode(data, digest_type=digest_type, password=password) == written
    assert decode(bytearray(data), digest_type=digest_type, password=password) == written
    if scope_id or digest_type != "DUMMY":
        assert decode(memoryview(data), password=password) == written


def test_the_digest_type_of_version_1_is_detected() -> None:
    """Except DUMMY, which any damaged entry would have."""
    for digest_type in ("CRC32", "CRC32C", "HMAC"):
        data = entry(digest_type=digest_type, password=PASSWORD)
        assert decode(data, password=PASSWORD).digest_type == digest_type
    with pytest.raises(EntryDigestError, match="none of the digests CRC32C, CRC32 and HMAC"):
        decode(entry(digest_type="HMAC", password=PASSWORD), password=b"other")
    dummy = entry(digest_type="DUMMY")
    with pytest.raises(EntryDigestError, match="the digest type of one with DUMMY"):
        decode(dummy)
    assert decode(dummy, digest_type="DUMMY").payload == b"hello"


def test_a_ledgers_digest_type_must_be_that_of_the_entry() -> None:
    """An entry of version 2 cannot name a weaker type than its ledger has."""
    with pytest.raises(EntryDigestError, match="has digest type DUMMY, expected HMAC"):
        decode(entry(scope_id=1, digest_type="DUMMY"), digest_type="HMAC", password=PASSWORD)
    with pytest.raises(EntryDigestError):
        decode(entry(digest_type="CRC32"), digest_type="CRC32C")


@pytest.mark.parametrize("digest_type", ["CRC32", "CRC32C", "HMAC"])
@pytest.mark.parametrize("scope_id", [0, SCOPE])
def test_changed_bits_are_found(scope_id: int, digest_type: DigestType) -> None:
    """Any of them, with and without a digest type."""
    data = entry(scope_id=scope_id, digest_type=digest_type, password=PASSWORD)
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        for expected in (digest_type, None):
            with pytest.raises((EntryDigestError, EntryFormatError, EntryTooShortError)) as error:
                decode(changed, digest_type=expected, password=PASSWORD)
            if 64 * (scope_id > 0) <= bit and bit >= 8:
                assert error.type is EntryDigestError


@pytest.mark.parametrize("digest_type", DIGEST_TYPES)
@pytest.mark.parametrize("scope_id", [0, SCOPE])
def test_an_entry_without_its_whole_digest_is_too_short(
    scope_id: int, digest_type: DigestType
) -> None:
    """One without any payload is not."""
    data = entry(scope_id=scope_id, digest_type=digest_type, payload=b"")
    assert decode(data, digest_type=digest_type).payload == b""
    for length in range(len(data)):
        with pytest.raises(EntryTooShortError, match=rf"entry of {length} bytes is too short"):
            decode(data[:length], digest_type=digest_type)
    for length in range(48 if scope_id else 36):
        with pytest.raises(EntryTooShortError):
            decode(data[:length])


@pytest.mark.parametrize("first", [*range(0x80, 0xA0), *range(0xA5, 0x100), 0xA0])
def test_other_versions_and_types_are_unsupported(first: int) -> None:
    """The first byte of an entry with its top bit set has version and digest type."""
    with pytest.raises(EntryFormatError, match=f"first byte {first:#04x}"):
        decode(bytes([first]) + EXAMPLE_2[1:])


def test_reserved_flags_are_refused() -> None:
    """Bytes 1 to 7 of version 2 are zero."""
    for at in range(1, 8):
        with pytest.raises(EntryFormatError, match="bytes 1 to 7"):
            decode(EXAMPLE_2[:at] + b"\x01" + EXAMPLE_2[at + 1 :])


def test_versions_differ_in_the_top_bit() -> None:
    """0x7f begins an entry of version 1 with a large id, 0x80 one of another version."""
    largest = entry(ledger_id=2**63 - 1)
    assert largest[0] == 0x7F
    assert decode(largest, digest_type="CRC32C").ledger_id == 2**63 - 1
    with pytest.raises(EntryFormatError):
        decode(b"\x80" + largest[1:], digest_type="CRC32C")


def version_2_of_scope_0(ledger_id: int) -> bytes:
    header = bytes.fromhex("a100000000000000") + bytes(8) + ledger_id.to_bytes(8, "big")
    header += EXAMPLE_1[8:32]
    return header + zlib.crc32(header + b"hello").to_bytes(8, "big") + b"hello"


def test_version_2_can_have_scope_0() -> None:
    """Other writers may use it; ids there are those of scope 0."""
    found = decode(version_2_of_scope_0(7))
    assert found == Entry(**{**FIELDS, "digest_type": "CRC32"}, scope_id=0)
    with pytest.raises(EntryFormatError, match="unsupported ledger id 9223372036854775808"):
        decode(version_2_of_scope_0(2**63))


def test_a_header_is_read_without_its_digest() -> None:
    """For searches; an entry of version 1 does not name its digest type."""
    numbers = (7, 41, 40, 1234)
    assert read_header(EXAMPLE_1[:-1]) == (*numbers, None, 0, 32)
    assert read_header(EXAMPLE_2[:-1]) == (*numbers, "CRC32C", SCOPE, 48)
    for data in (EXAMPLE_1[:31], EXAMPLE_2[:51], b""):
        with pytest.raises(EntryTooShortError):
            read_header(data)
    with pytest.raises(EntryFormatError):
        read_header(b"\xb3" + EXAMPLE_2[1:])


@pytest.mark.parametrize("wanted", [{"scope_id": 1}, {"ledger_id": 8}, {"entry_id": 40}])
@pytest.mark.parametrize("scope_id", [0, SCOPE])
def test_other_entries_than_the_expected_are_a_mismatch(
    scope_id: int, wanted: dict[str, Any]
) -> None:
    """A wrong digest comes first: the ids of such an entry mean nothing."""
    data = entry(scope_id=scope_id)
    assert decode(data, scope_id=scope_id, ledger_id=7, entry_id=41).entry_id == 41
    with pytest.raises(EntryMismatchError, match=r"found entry 41 of ledger .*, expected entry "):
        decode(data, **wanted)
    with pytest.raises(EntryDigestError):
        decode(data[:-1], **wanted)


def test_the_same_number_in_two_scopes_is_two_ledgers() -> None:
    """(0, 7) and (1, 7) never mix."""
    for wanted, other in ((0, 1), (1, 0)):
        data = entry(scope_id=other)
        with pytest.raises(EntryMismatchError):
            decode(data, scope_id=wanted, ledger_id=7)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"ledger_id": -1}, QualifiedIdError),
        ({"ledger_id": 2**63}, QualifiedIdError),
        ({"ledger_id": 2**64, "scope_id": 1}, QualifiedIdError),
        ({"scope_id": -1}, QualifiedIdError),
        ({"entry_id": 2**63}, EntryFormatError),
        ({"last_add_confirmed": -(2**63) - 1}, EntryFormatError),
        ({"length": 2**63}, EntryFormatError),
        ({"digest_type": "MD5"}, EntryFormatError),
    ],
)
def test_fields_that_do_not_fit_are_refused(
    changes: dict[str, Any], error: type[AerotapeError]
) -> None:
    """A value out of range is refused, and the error has the value."""
    with pytest.raises(error, match=str(next(iter(changes.values())))):
        entry(**changes)


def test_random_bytes_raise_typed_errors() -> None:
    """Never another exception, and nothing is taken for an entry."""
    random_bytes = random.Random(3)
    for _ in range(20_000):
        data = random_bytes.randbytes(random_bytes.randrange(90))
        expected: DigestType | None = random_bytes.choice([None, "CRC32", "CRC32C", "HMAC"])
        if data[:1] == b"\xa4":
            continue
        with pytest.raises((EntryDigestError, EntryFormatError, EntryTooShortError)):
            decode(data, digest_type=expected)


def test_the_master_key_is_a_hash_of_the_password() -> None:
    assert master_key(PASSWORD) == hashlib.sha1(b"ledgersecret").digest()
