"""Entries of ledgers: checksummed messages with the ids of their ledger and a number.

    data = encode(ledger_id=7, entry_id=0, last_add_confirmed=-1, length=5, payload=b"hello",
                  digest_type="CRC32C")
    decode(data, digest_type="CRC32C").payload

Entries of scope 0 are those of Apache BookKeeper (version 1), those of other scopes have the scope
in front (version 2). The layout is described in `native/src/ledger/entry.rs`.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from aerotape import _native
from aerotape.errors import EntryFormatError
from aerotape.qualified_id import QualifiedId

DigestType = Literal["CRC32", "CRC32C", "HMAC", "DUMMY"]
Data = bytes | bytearray | memoryview

DIGEST_LENGTHS: Final[dict[DigestType, int]] = {"CRC32": 8, "CRC32C": 4, "HMAC": 20, "DUMMY": 0}
"""Bytes of a digest in an entry."""
NO_ENTRY: Final = -1
"""The last add confirmed of a ledger without confirmed entries."""

_INT64 = 1 << 63


class Entry(NamedTuple):
    """A decoded entry, whose digest was right.

    Attributes:
        ledger_id: unsigned.
        entry_id: the entry's number in its ledger.
        last_add_confirmed: the entry up to which the ledger was safe when this one was added.
        length: payload bytes of the ledger up to and including this entry.
        payload: the user's bytes.
        digest_type: the digest it has.
        scope_id: unsigned; 0 in an entry of version 1.
    """

    ledger_id: int
    entry_id: int
    last_add_confirmed: int
    length: int
    payload: bytes
    digest_type: DigestType
    scope_id: int

    @property
    def qualified_id(self) -> QualifiedId:
        """The qualified id of its ledger."""
        return QualifiedId(self.scope_id, self.ledger_id)


class EntryHeader(NamedTuple):
    """The header of an entry: the fields before its digest.

    Attributes:
        ledger_id: unsigned.
        entry_id: the entry's number in its ledger.
        last_add_confirmed: see `Entry`.
        length: see `Entry`.
        digest_type: None in an entry of version 1, which does not name it.
        scope_id: unsigned; 0 in an entry of version 1.
        digest_offset: where the digest begins, bytes.
    """

    ledger_id: int
    entry_id: int
    last_add_confirmed: int
    length: int
    digest_type: DigestType | None
    scope_id: int
    digest_offset: int


def encode(
    *,
    ledger_id: int,
    entry_id: int,
    last_add_confirmed: int,
    length: int,
    payload: Data,
    digest_type: DigestType,
    password: bytes = b"",
    scope_id: int = 0,
) -> bytes:
    """Encode an entry: of version 1 in scope 0, of version 2 in other scopes.

    Args:
        ledger_id: unsigned, in scope 0 at most 2^63-1.
        entry_id: int64.
        last_add_confirmed: int64; `NO_ENTRY` for none.
        length: payload bytes of the ledger up to and including this entry.
        payload: the user's bytes.
        digest_type: ``CRC32``, ``CRC32C``, ``HMAC`` (SHA-1) or ``DUMMY`` (none).
        password: the ledger's, for ``HMAC``.
        scope_id: unsigned.

    Raises:
        EntryFormatError: a number does not fit its field, or the digest type is unknown.
        QualifiedIdError: scope and ledger id are not a qualified id.
    """
    QualifiedId(scope_id, ledger_id)
    numbers = {"entry id": entry_id, "last add confirmed": last_add_confirmed, "length": length}
    for name, number in numbers.items():
        if not -_INT64 <= number < _INT64:
            raise EntryFormatError(f"{name} {number} is not a signed 64-bit number")
    header = scope_id, ledger_id, entry_id, last_add_confirmed, length
    return _native.encode_entry(header, payload, digest_type, password)


def decode(
    data: Data,
    *,
    digest_type: DigestType | None = None,
    password: bytes = b"",
    scope_id: int | None = None,
    ledger_id: int | None = None,
    entry_id: int | None = None,
) -> Entry:
    """Decode an entry and check its digest.

    Args:
        data: the whole entry.
        digest_type: the ledger's. Default: for an entry of version 2 the one that it names, for
            one of version 1 the first of ``CRC32C``, ``CRC32`` and ``HMAC`` that is right;
            ``DUMMY``, which fits any bytes, must be given.
        password: the ledger's, for ``HMAC``.
        scope_id: the scope that is expected. Default: any.
        ledger_id: the ledger that is expected. Default: any.
        entry_id: the entry that is expected. Default: any.

    Raises:
        EntryTooShortError: shorter than header and digest.
        EntryFormatError: unsupported version, digest type or flags.
        EntryDigestError: the digest is not right, or not of that type.
        EntryMismatchError: right, but not the expected entry.
    """
    return Entry._make(
        _native.decode_entry(data, digest_type, password, scope_id, ledger_id, entry_id)
    )


def read_header(data: Data) -> EntryHeader:
    """Read the header of an entry without checking its digest.

    Raises:
        EntryTooShortError: shorter than a header.
        EntryFormatError: unsupported version, digest type or flags.
    """
    return EntryHeader._make(_native.decode_entry_header(data))


def master_key(password: bytes) -> bytes:
    """Return the 20 bytes by which a ledger's password can be compared without storing it."""
    import hashlib

    return hashlib.sha1(b"ledger" + password).digest()
