"""Entries of version 1 compared with those of BookKeeper's own library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest
from support.jvm.bookkeeper import BookKeeperEntries, BookKeeperError

from aerotape.codecs.entry import DigestType, Entry, decode, encode, master_key
from aerotape.errors import EntryDigestError

pytestmark = pytest.mark.jvm

DIGEST_TYPES = get_args(DigestType)
PASSWORDS = (b"", b"secret", bytes(range(100)))
PAYLOAD_LENGTHS = (0, 1, 5, 31, 32, 255, 256, 1_000, 1_500, 70_000)
NUMBERS = ((7, 41, 40, 1234), (0, 0, -1, 0), (2**63 - 1, 2**63 - 1, 2**63 - 2, 2**62))


@pytest.fixture(scope="module")
def bookkeeper() -> Iterator[BookKeeperEntries]:
    with BookKeeperEntries() as entries:
        yield entries


def payload_of(length: int) -> bytes:
    return bytes((n * 31 + length) % 251 for n in range(length))


@pytest.mark.parametrize("digest_type", DIGEST_TYPES)
def test_both_write_the_same_bytes_and_read_the_others(
    bookkeeper: BookKeeperEntries, digest_type: DigestType
) -> None:
    """Each digest type with several ids, passwords and lengths of the payload."""
    cases = [(NUMBERS[0], b"secret", length) for length in PAYLOAD_LENGTHS]
    cases += [(numbers, password, 256) for numbers in NUMBERS for password in PASSWORDS]
    for (ledger_id, entry_id, last_add_confirmed, length), password, payload_length in cases:
        payload = payload_of(payload_length)
        theirs = bookkeeper.encode(
            ledger_id,
            digest_type,
            password,
            entry_id=entry_id,
            last_add_confirmed=last_add_confirmed,
            length=length,
            payload=payload,
        )
        expected = Entry(
            ledger_id, entry_id, last_add_confirmed, length, payload, digest_type, scope_id=0
        )
        ours = encode(**expected._asdict(), password=password)
        assert ours == theirs
        assert decode(theirs, digest_type=digest_type, password=password) == expected
        assert bookkeeper.check(ledger_id, digest_type, password, entry_id, ours) == payload
        confirmed = bookkeeper.confirmed(ledger_id, digest_type, password, ours)
        assert confirmed == (last_add_confirmed, length)


def test_both_refuse_a_changed_entry(bookkeeper: BookKeeperEntries) -> None:
    """A changed byte in header, digest and payload; HMAC also with another password."""
    for digest_type in ("CRC32", "CRC32C", "HMAC"):
        data = encode(
            ledger_id=7,
            entry_id=1,
            last_add_confirmed=0,
            length=20,
            payload=b"x" * 10,
            digest_type=digest_type,
            password=b"secret",
        )
        for at in (8, 20, 33, len(data) - 1):
            changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            with pytest.raises(EntryDigestError):
                decode(changed, digest_type=digest_type, password=b"secret")
            with pytest.raises(BookKeeperError, match="Digest"):
                bookkeeper.check(7, digest_type, b"secret", 1, changed)
    with pytest.raises(EntryDigestError, match="is the password right"):
        decode(data, digest_type="HMAC", password=b"other")
    with pytest.raises(BookKeeperError, match="Digest"):
        bookkeeper.check(7, "HMAC", b"other", 1, data)


def test_master_keys_are_equal(bookkeeper: BookKeeperEntries) -> None:
    """So a ledger's password can be compared with that of one in BookKeeper."""
    for password in PASSWORDS:
        assert master_key(password) == bookkeeper.master_key(password)
