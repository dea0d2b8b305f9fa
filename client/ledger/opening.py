"""Creating and opening ledgers, for either front end."""

from __future__ import annotations

import json
from collections.abc import Sequence

from aerotape.client import arguments
from aerotape.client.ledger import requests
from aerotape.client.ledger.reading import LedgerReading
from aerotape.client.ledger.requests import AnyLedger
from aerotape.client.ledger.writing import LedgerWriting, attach
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.exchange import exchange
from aerotape.client.session.request import Call, nothing
from aerotape.codecs.entry import DigestType
from aerotape.codecs.generated import ledger_control as codecs
from aerotape.codecs.journal_type import JournalType
from aerotape.errors import ConfigurationError
from aerotape.qualified_id import QualifiedId
from aerotape.waiting import Task


def declare_ledger(
    session: ClientSession,
    type: JournalType,
    qualified_id: AnyLedger | None,
    *,
    digest_type: DigestType,
    password: bytes,
    write_quorum: int,
    ack_quorum: int,
    mirrors: Sequence[str],
) -> Task[QualifiedId]:
    """Create a ledger without a writer, and return its id."""
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
    yield from exchange(session, Call(request, f"create ledger {ledger}", nothing))
    return ledger


def create_ledger(
    session: ClientSession,
    type: JournalType,
    qualified_id: AnyLedger | None,
    *,
    digest_type: DigestType,
    password: bytes,
    channel: str | None,
    write_quorum: int,
    ack_quorum: int,
    mirrors: Sequence[str],
) -> Task[LedgerWriting]:
    """Create a ledger and attach its writer."""
    ledger = yield from declare_ledger(
        session,
        type,
        qualified_id,
        digest_type=digest_type,
        password=password,
        write_quorum=write_quorum,
        ack_quorum=ack_quorum,
        mirrors=mirrors,
    )
    return (yield from attach(session, ledger, password, channel))


def open_ledger_writer(
    session: ClientSession,
    ledger: AnyLedger,
    password: bytes,
    channel: str | None,
    take_over: bool,
) -> Task[LedgerWriting]:
    """Attach a writer that continues an open ledger."""
    found = requests.qualified_id(ledger)
    return attach(session, found, password, channel, take_over=bool(take_over))


def open_ledger(session: ClientSession, ledger: AnyLedger, password: bytes) -> Task[LedgerReading]:
    """Recover and close a ledger, to read all its entries."""
    found = requests.qualified_id(ledger)
    yield from exchange(session, requests.recover_ledger(found, password))
    return LedgerReading(session, (yield from requests.ledger_info(session, found)), password)


def open_ledger_read_only(
    session: ClientSession, ledger: AnyLedger, password: bytes
) -> Task[LedgerReading]:
    """Read a ledger that may have a writer, which is not affected."""
    token = requests.password_token(password)
    found = yield from requests.describe(session, requests.qualified_id(ledger), token)
    return LedgerReading(session, requests.info_of(found), password)


def sync_ledger(session: ClientSession, ledger: AnyLedger) -> Task[int]:
    """Force what is recorded of a ledger to storage; return its last add confirmed."""
    found = requests.qualified_id(ledger)
    yield from exchange(session, requests.sync_ledger(found))
    last = (yield from requests.ledger_info(session, found)).last_add_confirmed
    return -1 if last is None else last
