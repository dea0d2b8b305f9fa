"""Requests for ledgers, and what an archive reports of a ledger."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, cast

from aerotape.client import arguments
from aerotape.client.queries import Pages
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.exchange import list_items
from aerotape.client.session.request import Call, Listing, relevant_id
from aerotape.codecs import entry as entries
from aerotape.codecs.generated import ledger_control as codecs
from aerotape.codecs.journal_type import JournalType
from aerotape.errors import CodecError
from aerotape.protocol import NULL_VALUE
from aerotape.qualified_id import MAX_UNSIGNED, QualifiedId, signed
from aerotape.waiting import Task

_T = TypeVar("_T")

LedgerStateName = Literal["OPEN", "CLOSED"]

AnyLedger = QualifiedId | str | int
"""An id, a qualified name, or the number of a ledger in scope 0."""

_MAX_WAIT_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class LedgerMirror:
    """A mirror of a ledger, as the archive that leads the ledger sees it.

    Attributes:
        channel: its control channel.
        is_connected: whether it follows, and counts.
        recorded_position: up to where it has recorded, bytes; -1: not known.
        confirmed_position: up to where that is on its storage, likewise.
        error: why it is not connected; "": no error yet.
    """

    channel: str
    is_connected: bool
    recorded_position: int
    confirmed_position: int
    error: str


@dataclass(frozen=True, slots=True)
class LedgerInfo:
    """A ledger, as its archive reported it.

    Attributes:
        id: the qualified id.
        type: when adds are acknowledged: once they are on storage (``PD_JOURNAL``), or once they
            are in the page cache (``VD_JOURNAL``).
        digest_type: of its entries.
        state: ``OPEN`` or ``CLOSED``.
        created_ms: epoch milliseconds.
        recording_id: its recording, -1 before the first writer.
        recorded_position: the end of what is recorded, bytes.
        confirmed_position: the end of what is on storage, bytes.
        last_add_pushed: the last entry that is recorded, -1 for none; None: not looked up.
        last_add_confirmed: the last entry that is on storage, likewise.
        length: payload bytes up to `last_add_pushed`, likewise.
        recording_counter_id: the counter of `recorded_position` in the archive's media driver, -1
            without a writer.
        confirmed_counter_id: the counter of `confirmed_position`, likewise.
        write_quorum: how many archives record it.
        ack_quorum: how many of them have to acknowledge.
        has_password: whether it is written, recovered and opened only with its password.
        mirrors: the control channels of the others.
        members: how far these are, while the archive leads the ledger and is connected to them.
        damaged_entries: damaged entries that readers have met since the archive was started, and
            that no other archive had; of a ledger with mirrors.
        repaired_entries: those that were fetched from another archive.
    """

    id: QualifiedId
    type: JournalType
    digest_type: entries.DigestType
    state: LedgerStateName
    created_ms: int
    recording_id: int
    recorded_position: int
    confirmed_position: int
    last_add_pushed: int | None
    last_add_confirmed: int | None
    length: int | None
    recording_counter_id: int
    confirmed_counter_id: int
    write_quorum: int
    ack_quorum: int
    has_password: bool
    mirrors: tuple[str, ...]
    members: tuple[LedgerMirror, ...] = ()
    damaged_entries: int = 0
    repaired_entries: int = 0

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be added."""
        return self.state == "CLOSED"

    @property
    def has_writer(self) -> bool:
        """Whether the archive records a writer of it."""
        return self.recording_counter_id != NULL_VALUE


def qualified_id(ledger: AnyLedger) -> QualifiedId:
    """Return the id of a ledger (QualifiedIdError)."""
    if isinstance(ledger, QualifiedId):
        return ledger
    return QualifiedId.parse(ledger) if isinstance(ledger, str) else QualifiedId(0, ledger)


def password_token(password: bytes) -> bytes:
    """Return the token of a password, which the archive checks."""
    return hashlib.sha256(entries.master_key(password)).digest()


def id_fields(ledger: QualifiedId) -> dict[str, int]:
    """Return the two fields with the id in every request for a ledger."""
    return {"scope_id": ledger.signed[0], "ledger_id": ledger.signed[1]}


def ledger_info(session: ClientSession, ledger: AnyLedger) -> Task[LedgerInfo]:
    """Return the archive's description of a ledger."""
    return info_of((yield from describe(session, qualified_id(ledger))))


def describe(
    session: ClientSession, ledger: QualifiedId, token: bytes = b""
) -> Task[codecs.LedgerDescriptor]:
    """Return the descriptor of a ledger. Raises as `ledger_info`.

    Args:
        token: of a password that the archive has to check (LedgerPasswordError); empty: none.
    """
    request = codecs.LedgerInfoRequest(**id_fields(ledger), password_token=token)
    listing = Listing(request, f"get the state of ledger {ledger}", 1)
    return (yield from describe_by(session, listing))


def list_ledgers(
    session: ClientSession, scope_id: int, from_ledger_id: int, count: int | None
) -> Pages[LedgerInfo]:
    """List the ledgers of a scope in the order of their ids, page by page."""
    for name, value in (("scope_id", scope_id), ("from_ledger_id", from_ledger_id)):
        arguments.integer(name, value, 0, MAX_UNSIGNED)

    def ask(from_id: int, length: int) -> Listing:
        request = codecs.ListLedgersRequest(
            scope_id=signed(scope_id), from_ledger_id=signed(from_id), count=length
        )
        return Listing(request, f"list the ledgers of scope {scope_id}", length)

    return Pages(
        session,
        ask,
        lambda item: info_of(cast(codecs.LedgerDescriptor, item)),
        lambda _, last, __: min(last.id.ledger_id + 1, MAX_UNSIGNED),
        from_ledger_id,
        count,
    )


def sync_ledger(ledger: QualifiedId) -> Call[int]:
    """Force what is recorded to storage; return the confirmed position, bytes."""
    request = codecs.SyncLedgerRequest(**id_fields(ledger))
    return Call(request, f"sync ledger {ledger}", relevant_id)


def await_ledger(
    ledger: QualifiedId,
    position: int,
    reach: codecs.Reach,
    timeout_ns: int,
    attach_id: int | None = None,
) -> Call[int]:
    """Wait for a position; return the one that is reached, which may be lower, bytes.

    Args:
        attach_id: correlation id of the request that attached the client's writer; it fails with
            LedgerFencedError once that has ended. None: of no writer.
    """
    request = codecs.AwaitLedgerRequest(
        **id_fields(ledger),
        position=position,
        reach=reach,
        timeout_ns=min(timeout_ns, _MAX_WAIT_NS),
        attach_id=attach_id,
    )
    return Call(request, f"wait for an entry of ledger {ledger}", relevant_id)


def close_ledger(ledger: QualifiedId) -> Call[int]:
    """Sync and close a ledger; return its last entry id, -1 without entries."""
    request = codecs.CloseLedgerRequest(**id_fields(ledger))
    return Call(request, f"close ledger {ledger}", relevant_id)


def recover_ledger(ledger: QualifiedId, password: bytes) -> Call[int]:
    """Stop the writer of a ledger, sync and close it; return its last entry id."""
    request = codecs.RecoverLedgerRequest(
        **id_fields(ledger),
        password_token=password_token(password),
    )
    return Call(request, f"recover ledger {ledger}", relevant_id)


def locate_entry(ledger: QualifiedId, entry_id: int) -> Call[int]:
    """Return the position of the first frame of an entry, bytes."""
    request = codecs.LocateEntryRequest(**id_fields(ledger), entry_id=entry_id)
    return Call(request, f"find entry {entry_id} of ledger {ledger}", relevant_id)


def info_of(found: codecs.LedgerDescriptor) -> LedgerInfo:
    """Return the contents of a descriptor."""
    return LedgerInfo(
        id=QualifiedId.from_signed(found.scope_id, found.ledger_id),
        type=cast(JournalType, found.ledger_type.name),
        digest_type=cast(entries.DigestType, found.digest_type.name),
        state=cast(LedgerStateName, found.state.name),
        created_ms=found.created_ms,
        recording_id=found.recording_id,
        recorded_position=found.recorded_position,
        confirmed_position=found.confirmed_position,
        last_add_pushed=found.last_pushed,
        last_add_confirmed=found.last_confirmed,
        length=found.length,
        recording_counter_id=found.recording_counter_id,
        confirmed_counter_id=found.confirmed_counter_id,
        write_quorum=found.write_quorum,
        ack_quorum=found.ack_quorum,
        has_password=bool(found.has_password),
        mirrors=_from_json(found.mirrors, str),
        members=_from_json(found.members or "[]", lambda each: LedgerMirror(**each)),
        damaged_entries=found.damaged_entries or 0,
        repaired_entries=found.repaired_entries or 0,
    )


def _from_json(text: str, make: Callable[[Any], _T]) -> tuple[_T, ...]:
    """Return the items of an array of JSON that an archive has sent (CodecError)."""
    try:
        return tuple(map(make, json.loads(text)))
    except (ValueError, TypeError, RecursionError) as error:
        raise CodecError(
            f"the archive has sent a ledger whose mirrors are not valid: {error}"
        ) from error


def describe_by(session: ClientSession, listing: Listing) -> Task[codecs.LedgerDescriptor]:
    """Return the one descriptor that a request returns."""
    found = yield from list_items(session, listing)
    return cast(codecs.LedgerDescriptor, found[0])
