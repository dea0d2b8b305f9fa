"""Reading entries of a ledger: what to replay, and the entries in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from aerotape.archive.client.ledger import requests
from aerotape.archive.client.ledger.requests import LedgerInfo
from aerotape.archive.client.requests.request import Steps
from aerotape.codecs import entry as entries
from aerotape.codecs.entry import Entry
from aerotape.errors import ConfigurationError, LedgerError, UnconfirmedEntryError
from aerotape.message import Message


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A replay that has the entries to read.

    Attributes:
        info: the ledger, as it was for this plan.
        first: the first entry.
        count: how many entries.
        position: where the first one begins, bytes.
        length: of the replay, bytes.
    """

    info: LedgerInfo
    first: int
    count: int
    position: int
    length: int

    def entry(self, index: int, payload: bytes, password: bytes) -> Entry:
        """Return an entry of the plan from its message (EntryError)."""
        ledger = self.info.id
        return entries.decode(
            payload,
            digest_type=self.info.digest_type,
            password=password,
            scope_id=ledger.scope_id,
            ledger_id=ledger.ledger_id,
            entry_id=self.first + index,
        )

    def decoded(self, messages: Iterable[Message], password: bytes) -> Iterator[Entry]:
        """Iterate over the entries in the messages of the replay.

        Raises:
            EntryError: an entry is damaged.
            LedgerError: the replay has fewer.
        """
        index = 0
        for message in messages:
            yield self.entry(index, message.payload, password)
            index += 1
            if index == self.count:
                return
        raise self.missing(index)

    def missing(self, index: int) -> LedgerError:
        """Return the error for a replay that has only `index` entries."""
        ledger = self.info.id
        return LedgerError(f"entry {self.first + index} of ledger {ledger} is missing", ledger)


def plan(info: LedgerInfo, first: int, last: int | None, *, unconfirmed: bool) -> Steps[ReadPlan]:
    """Return what to replay for some entries.

    Args:
        info: the ledger, as known before.
        first: the id of the first entry.
        last: that of the last one; None: the last one that may be read.
        unconfirmed: entries that are not confirmed may be read, too.

    Raises:
        UnconfirmedEntryError: `last` may not be read.
        ConfigurationError: `first` is negative, or more than one past `last`.
    """
    if not info.is_closed:
        info = requests.info_of((yield from requests.described(info.id)))
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
        hint = (
            ""
            if unconfirmed or info.is_closed
            else "; sync the ledger, or read unconfirmed entries"
        )
        raise UnconfirmedEntryError(
            f"entry {last} of ledger {info.id} cannot be read: last add {kind} is {limit}{hint}",
            info.id,
        )
    if last < first:
        return ReadPlan(info, first, 0, 0, 0)
    position: int = yield requests.locate_entry(info.id, first)
    return ReadPlan(info, first, last - first + 1, position, end - position)
