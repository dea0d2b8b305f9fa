"""Creating and opening ledgers, as steps for either front end."""

from __future__ import annotations

from collections.abc import Sequence

from aerotape.archive.client.ledger import requests
from aerotape.archive.client.ledger.requests import AnyLedger, LedgerInfo, LedgerTypeName
from aerotape.archive.client.ledger.writing import LedgerWriting, attached
from aerotape.archive.client.requests.request import Steps
from aerotape.codecs.entry import DigestType
from aerotape.errors import LedgerPasswordError
from aerotape.qualified_id import QualifiedId


def declare_ledger(
    type: LedgerTypeName = "PD_JOURNAL",
    qualified_id: AnyLedger | None = None,
    *,
    digest_type: DigestType = "CRC32C",
    password: bytes = b"",
    write_quorum: int = 1,
    ack_quorum: int = 1,
    mirrors: Sequence[str] = (),
) -> Steps[QualifiedId]:
    """Create a ledger without a writer, and return its id. It is on storage then.

    Args:
        type: when adds are acknowledged: once they are on storage (``PD_JOURNAL``), or once they
            are in the page cache (``VD_JOURNAL``).
        qualified_id: a QualifiedId, a qualified name, or a number in scope 0. Default: a new
            random one.
        digest_type: of the entries: ``CRC32C``, ``CRC32``, ``HMAC`` or ``DUMMY`` (none).
        password: required to write, recover and read the ledger; the key of ``HMAC``.
        write_quorum: how many archives record the ledger.
        ack_quorum: how many of them have to acknowledge an add.
        mirrors: the control channels of the other archives.

    Raises:
        LedgerExistsError: there is a ledger with this id.
        ConfigurationError: an argument is invalid, or the quorums make no sense.
    """
    ledger = QualifiedId.generate() if qualified_id is None else requests.qualified_id(qualified_id)
    yield requests.create_ledger(
        ledger, type, digest_type, password, write_quorum, ack_quorum, mirrors
    )
    return ledger


def created(
    type: LedgerTypeName,
    qualified_id: AnyLedger | None,
    digest_type: DigestType,
    password: bytes,
    channel: str | None,
    write_quorum: int,
    ack_quorum: int,
    mirrors: Sequence[str],
) -> Steps[LedgerWriting]:
    """Create a ledger and attach a writer. Raises as `declare_ledger` and `attached`."""
    ledger = yield from declare_ledger(
        type,
        qualified_id,
        digest_type=digest_type,
        password=password,
        write_quorum=write_quorum,
        ack_quorum=ack_quorum,
        mirrors=mirrors,
    )
    return (yield from attached(ledger, password, channel))


def opened_writer(ledger: AnyLedger, password: bytes, channel: str | None) -> Steps[LedgerWriting]:
    """Attach a writer to an open ledger. Raises as `attached`."""
    return (yield from attached(requests.qualified_id(ledger), password, channel))


def recovered(ledger: AnyLedger, password: bytes) -> Steps[LedgerInfo]:
    """Recover and close a ledger, and return its final state.

    Raises:
        UnknownLedgerError: there is no such ledger.
        LedgerPasswordError: it has another password.
    """
    found = requests.qualified_id(ledger)
    yield requests.recover_ledger(found, password)
    return requests.info_of((yield from requests.described(found)))


def opened_read_only(ledger: AnyLedger, password: bytes) -> Steps[LedgerInfo]:
    """Return the state of a ledger whose password is known. Raises as `recovered`."""
    found = yield from requests.described(requests.qualified_id(ledger))
    if found.password_hash and found.password_hash != requests.password_hash(password):
        info = requests.info_of(found)
        raise LedgerPasswordError(f"ledger {info.id} has another password", info.id)
    return requests.info_of(found)
