"""Reading entries of a ledger, for either front end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aerotape.client import arguments, channels
from aerotape.client.ledger import requests
from aerotape.client.ledger.requests import LedgerInfo
from aerotape.client.queries import list_recording
from aerotape.client.replay.requests import ReplayTarget
from aerotape.client.replay.stream import ReplayStream, open_replay
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.exchange import exchange
from aerotape.codecs import entry as entries
from aerotape.codecs.entry import Entry
from aerotape.errors import (
    AerotapeError,
    ArchiveError,
    ConfigurationError,
    DamagedEntryError,
    EntryDigestError,
    EntryError,
    LedgerError,
    ReplayError,
    UnconfirmedEntryError,
)
from aerotape.message import Message
from aerotape.protocol import NULL_VALUE
from aerotape.waiting import Pause, Task

# Between two requests for the state of a ledger, where no counter shows that there is more to read.
_POLL_NS: Final = 50_000_000
_NO_LIMIT: Final = (1 << 63) - 1
NOT_READ: Final = (EntryError, ReplayError, LedgerError)
"""Errors of a replay in which an entry is damaged, or its frames are."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The entries that a caller wants.

    Attributes:
        first: the id of the first entry.
        last: the id of the last entry; None: the last one that may be read.
        max_entries: the number of entries; None: no limit.
        max_bytes: of their payloads, but at least one entry; None: no limit.
    """

    first: int = 0
    last: int | None = None
    max_entries: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        first, last = self.first, self.last
        if first < 0 or (last is not None and last < first - 1):
            end = "the end" if last is None else last
            raise ConfigurationError(
                f"entries {first} to {end}: expected ids from 0 in ascending order", "first"
            )
        for name in ("max_entries", "max_bytes"):
            if (value := getattr(self, name)) is not None:
                arguments.count(name, value)

    def last_of(self, limit: int) -> int:
        """Return the id of the last entry to read if no later one than `limit` may be read."""
        if self.last is not None:
            limit = min(limit, self.last)
        if self.max_entries is not None:
            limit = min(limit, self.first + self.max_entries - 1)
        return limit

    @property
    def byte_limit(self) -> int:
        """The maximum of bytes of payloads, or a number that is not reached."""
        return _NO_LIMIT if self.max_bytes is None else self.max_bytes


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A replay that has the entries to read.

    Attributes:
        ids: of the entries in the replay; it may end earlier if a counter bounds it.
        position: where the first one begins, bytes; None: where the recording does.
        length: of the replay, bytes; None: up to the counter.
        counter_id: of the confirmed position, if it bounds the replay.
    """

    ids: range
    position: int | None
    length: int | None
    counter_id: int | None = None


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

    def plan(self, wanted: Wanted, *, unconfirmed: bool) -> Task[ReadPlan]:
        """Return the range to replay for entries that are there.

        Args:
            wanted: the entries.
            unconfirmed: entries that are not confirmed may be read, too.

        Raises:
            UnconfirmedEntryError: the last one may not be read.
            ConfigurationError: the first one is more than one past the last that may be read.
        """
        info = yield from self.refresh()
        limit = info.last_add_pushed if unconfirmed else info.last_add_confirmed
        end = info.recorded_position if unconfirmed else info.confirmed_position
        limit = -1 if limit is None else limit
        if wanted.last is not None and wanted.last > limit:
            kind = "pushed" if unconfirmed else "confirmed"
            hint = ""
            if not (unconfirmed or info.is_closed):
                hint = "; sync the ledger, or read unconfirmed entries"
            raise UnconfirmedEntryError(
                f"entry {wanted.last} of ledger {info.id} cannot be read: last add {kind} is"
                f" {limit}{hint}",
                info.id,
            )
        self._check_first(wanted.first, limit, "pushed" if unconfirmed else "confirmed")
        return (yield from self._stored(wanted.first, wanted.last_of(limit), end))

    def _check_first(self, first: int, limit: int, kind: str) -> None:
        """Refuse a first entry that is not the next one, or a lower one (ConfigurationError)."""
        if first <= limit + 1:
            return
        info, hint = self.info, ""
        pushed = -1 if info.last_add_pushed is None else info.last_add_pushed
        if kind == "confirmed" and not info.is_closed and first <= pushed + 1:
            hint = "; or sync the ledger, or read unconfirmed entries"
        raise ConfigurationError(
            f"entries {first} to the end of ledger {info.id}: its last add {kind} is {limit}; begin"
            f" with {limit + 1} or a lower one{hint}",
            "first",
        )

    def follow(self, first: int, wanted: Wanted) -> Task[ReadPlan]:
        """Wait for confirmed entries of a ledger that may grow, and return what to replay.

        A plan without ids means that the ledger is closed, or that no more entries are wanted.

        Args:
            first: the id of the next entry.
            wanted: of these, from there.

        Raises:
            ConfigurationError: the ledger is closed, and `first` is more than one past its end.
        """
        end = wanted.last_of(_NO_LIMIT) + 1
        while True:
            info = yield from self.refresh()
            confirmed = -1 if info.last_add_confirmed is None else info.last_add_confirmed
            counter_id = _bounding_counter(info)
            if counter_id is not None and first < end:
                # A position in a replay is known only of entries that are confirmed.
                start, position = max(min(first, confirmed), 0), None
                if confirmed >= 0:
                    position = yield from self._locate(start)
                return ReadPlan(range(start, end), position, None, counter_id)
            if first <= confirmed or first >= end or info.is_closed:
                if info.is_closed and first < end:
                    self._check_first(first, confirmed, "confirmed")
                last = min(end - 1, confirmed)
                return (yield from self._stored(first, last, info.confirmed_position))
            yield Pause(_POLL_NS)

    def _stored(self, first: int, last: int, end: int) -> Task[ReadPlan]:
        """Return the range to replay for entries that may be read up to a position, bytes."""
        position = end
        if first <= last:
            position = yield from self._locate(first)
        return ReadPlan(range(first, last + 1), position, end - position)

    def _locate(self, entry_id: int) -> Task[int]:
        return exchange(self.session, requests.locate_entry(self.info.id, entry_id))

    def replay(self, plan: ReadPlan, channel: str) -> Task[ReplayStream]:
        """Replay what a plan says; nothing if the counter is no longer that of the ledger.

        Args:
            channel: where the archive replays to.
        """
        recording_id, counter_id = self.info.recording_id, plan.counter_id
        target = ReplayTarget(
            channel, channels.DEFAULT_REPLAY_STREAM_ID, limit_counter_id=counter_id
        )
        try:
            stream = yield from open_replay(
                self.session,
                recording_id,
                target,
                position=plan.position,
                length=plan.length,
                follow=counter_id is not None,
                timeout_ns=None,
            )
        except ArchiveError:
            if counter_id is None or (yield from self._is_bounding(counter_id)):
                raise
            recording = yield from list_recording(self.session, recording_id)
            if recording is None:
                raise
            end = plan.position or 0
            return ReplayStream(self.session, recording, end, end)
        try:
            # The archive would accept another counter that has its id now.
            if counter_id is not None and not (yield from self._is_bounding(counter_id)):
                yield from stream.stop()
        except BaseException:
            stream.abandon()
            raise
        return stream

    def _is_bounding(self, counter_id: int) -> Task[bool]:
        return _bounding_counter((yield from self.refresh())) == counter_id

    def repair(self, plan: ReadPlan, entry_id: int, failure: AerotapeError) -> Task[ReadPlan]:
        """Have a damaged entry of a plan repaired; return what to replay from there.

        Args:
            plan: of the replay that has failed.
            entry_id: which it did not return.
            failure: the reason, which is raised if nothing can be repaired.

        Raises:
            DamagedEntryError: the archive has no such frames any more.
        """
        if isinstance(failure, EntryDigestError) and not self.info.mirrors:
            raise failure
        try:
            # The archive fetches it from another one that stores the ledger.
            position = yield from self._locate(entry_id)
        except DamagedEntryError as damaged:
            raise damaged from failure
        except ArchiveError:
            raise failure from None
        if not self.info.mirrors or plan.position is None or plan.length is None:
            raise failure
        length = plan.position + plan.length - position
        return ReadPlan(range(entry_id, plan.ids.stop), position, length)

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


def _bounding_counter(info: LedgerInfo) -> int | None:
    """Return the counter of the confirmed position if it is that of this archive alone.

    With mirrors the confirmed position is a quorum's, which no counter has.
    """
    counter_id = info.confirmed_counter_id
    return counter_id if info.write_quorum == 1 and counter_id != NULL_VALUE else None
