"""Creating and opening ledgers, as steps for either front end."""

from __future__ import annotations

import json
from collections.abc import Sequence

from aerotape.archive.client import arguments
from aerotape.archive.client.ledger import requests
from aerotape.archive.client.ledger.reading import LedgerReading
from aerotape.archive.client.ledger.requests import AnyLedger
from aerotape.archive.client.ledger.writing import LedgerWriting, attached
from aerotape.archive.client.requests.request import Call, Steps, nothing
from aerotape.codecs.entry import DigestType
from aerotape.codecs.generated import ledger_control as codecs
from aerotape.codecs.journal_type import JournalType
from aerotape.errors import ConfigurationError
from aerotape.qualified_id import QualifiedId


def declare_ledger(
    type: JournalType = "PD_JOURNAL",
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
    if type not in codecs.LedgerType.__members__:
        known = " or ".join(codecs.LedgerType.__members__)
        raise ConfigurationError(f"ledger type {type!r} is unknown: expected {known}", "type")
    if digest_type not in codecs.DigestType.__members__:
        known = ", ".join(codecs.DigestType.__members__)
        raise ConfigurationError(
            f"digest type {digest_type!r} is unknown: expected one of {known}", "digest_type"
        )
    request = codecs.CreateLedgerRequest(
        **requests.id_fields(ledger),
        ledger_type=codecs.LedgerType[type],
        digest_type=codecs.DigestType[digest_type],
        write_quorum=arguments.any_int32("write_quorum", write_quorum),
        ack_quorum=arguments.any_int32("ack_quorum", ack_quorum),
        password_token=requests.password_token(password) if password else b"",
        mirrors=json.dumps([arguments.channel("mirrors", each) for each in mirrors]),
    )
    yield Call(request, f"create ledger {ledger}", nothing)
    return ledger


def create_ledger(
    type: JournalType = "PD_JOURNAL",
    qualified_id: AnyLedger | None = None,
    *,
    digest_type: DigestType = "CRC32C",
    password: bytes = b"",
    channel: str | None = None,
    write_quorum: int = 1,
    ack_quorum: int = 1,
    mirrors: Sequence[str] = (),
) -> Steps[LedgerWriting]:
    """Create a ledger and return its writer.

    >>> with client.create_ledger("VD_JOURNAL") as ledger:
    ...     ledger.add(b"not on storage yet")
    ...     ledger.sync()

    Args:
        type: this and the following as in `declare_ledger`.
        channel: where to publish the entries. Default: over IPC if the archive is reached
            over IPC, else over UDP to the address of its control channel.

    Raises:
        LedgerExistsError: there is a ledger with this id.
        StorageSpaceError: the archive is low on storage space.
        ConfigurationError: an argument is invalid, or the quorums make no sense.
    """
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


def open_ledger_writer(
    ledger: AnyLedger, password: bytes = b"", *, channel: str | None = None
) -> Steps[LedgerWriting]:
    """Return a writer that continues an open ledger without a writer.

    Raises:
        UnknownLedgerError: there is no such ledger.
        LedgerInUseError: it has a writer.
        LedgerClosedError: it is closed.
        LedgerPasswordError: the password is wrong.
    """
    return (yield from attached(requests.qualified_id(ledger), password, channel))


def open_ledger(ledger: AnyLedger, password: bytes = b"") -> Steps[LedgerReading]:
    """Recover and close a ledger, and return a reader of all its entries.

    A writer of the ledger is stopped: its further adds fail. All entries that are recorded are
    confirmed then.

    Raises:
        UnknownLedgerError: there is no such ledger.
        LedgerPasswordError: the password is wrong.
    """
    found = requests.qualified_id(ledger)
    yield requests.recover_ledger(found, password)
    return LedgerReading((yield from requests.ledger_info(found)), password)


def open_ledger_read_only(ledger: AnyLedger, password: bytes = b"") -> Steps[LedgerReading]:
    """Return a reader of a ledger that may have a writer, which is not affected.

    Raises:
        UnknownLedgerError: there is no such ledger.
        LedgerPasswordError: the password is wrong.
    """
    token = requests.password_token(password)
    found = yield from requests.described(requests.qualified_id(ledger), token)
    return LedgerReading(requests.info_of(found), password)


def sync_ledger(ledger: AnyLedger) -> Steps[int]:
    """Force what is recorded of a ledger to storage; return its last add confirmed.

    Raises:
        UnknownLedgerError: there is no such ledger.
    """
    found = requests.qualified_id(ledger)
    yield requests.sync_ledger(found)
    last = (yield from requests.ledger_info(found)).last_add_confirmed
    return -1 if last is None else last
