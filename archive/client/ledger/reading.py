"""Reading entries of a ledger, for either front end."""

from __future__ import annotations

from dataclasses import dataclass

from aerotape.archive.client.ledger import requests
from aerotape.archive.client.ledger.requests import LedgerInfo
from aerotape.archive.client.session.client_session import ClientSession
from aerotape.archive.client.session.exchange import exchange
from aerotape.archive.waiting import Task
from aerotape.codecs import entry as entries
from aerotape.codecs.entry import Entry
from aerotape.errors import ConfigurationError, LedgerError, UnconfirmedEntryError
from aerotape.message import Message


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A replay that has the entries to read.

    Attributes:
        ids: of the entries.
        position: where the first one begins, bytes.
        length: of the replay, bytes.
    """

    ids: range
    position: int
    length: int


@dataclass
class LedgerReading:
    """A ledger that is read, as it was when it was last requested, and its password."""

    session: ClientSession
    info: LedgerInfo
    password: bytes

    def refresh(self) -> Task[LedgerInfo]:
        """Request the state of the ledger unless it is closed, and return it."""
        if not self.info.is_closed:
            self.info = yield from requests.ledger_info(self.session, self.info.id)
        return self.info

    def plan(self, first: int, last: int | None, *, unconfirmed: bool) -> Task[ReadPlan]:
        """Return what to replay for some entries.

        Args:
            first: the id of the first entry.
            last: that of the last one; None: the last one that may be read.
            unconfirmed: entries that are not confirmed may be read, too.

        Raises:
            UnconfirmedEntryError: `last` may not be read.
            ConfigurationError: `first` is negative, or more than one past `last`.
        """
        info = yield from self.refresh()
        limit = info.last_add_pushed if unconfirmed else info.last_add_confirmed
        end = info.recorded_position if unconfirmed else info.confirmed_position
        limit = -1 if limit is None else limit
        if first < 0 or (last is not None and last < first - 1):
            end_text = "the end" if last is None else last
            raise ConfigurationError(
                f"entries {first} to {end_text}: expected ids from 0 in ascending order", "first"
            )
        if last is None:
            last = limit
        elif last > limit:
            kind = "pushed" if unconfirmed else "confirmed"
            hint = ""
            if not (unconfirmed or info.is_closed):
                hint = "; sync the ledger, or read unconfirmed entries"
            raise UnconfirmedEntryError(
                f"entry {last} of ledger {info.id} cannot be read: last add {kind} is"
                f" {limit}{hint}",
                info.id,
            )
        position = end
        if first <= last:
            located = requests.locate_entry(info.id, first)
            position = yield from exchange(self.session, located)
        return ReadPlan(range(first, last + 1), position, end - position)

    def entry(self, entry_id: int, message: Message | None) -> Entry:
        """Return an entry from its message of the replay.

        Raises:
            EntryError: the entry is damaged.
            LedgerError: the replay has ended without it (None).
        """
        ledger = self.info.id
        if message is None:
            raise LedgerError(f"entry {entry_id} of ledger {ledger} is missing", ledger)
        return entries.decode(
            message.payload,
            digest_type=self.info.digest_type,
            password=self.password,
            scope_id=ledger.scope_id,
            ledger_id=ledger.ledger_id,
            entry_id=entry_id,
        )
