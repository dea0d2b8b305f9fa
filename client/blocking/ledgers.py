# Generated from asynchronous/ledgers.py: do not edit.
# Regenerate: python -m aerotape.client.generate
"""Ledgers of the blocking client: creating, writing, reading and deleting them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial

from aerotape.client import arguments
from aerotape.client.blocking.replays import Replay, ReplayMethods
from aerotape.client.ledger import opening, requests
from aerotape.client.ledger.handles import ReaderProperties, WriterBase
from aerotape.client.ledger.reading import NOT_READ, LedgerReading, ReadPlan, Wanted
from aerotape.client.ledger.requests import AnyLedger, LedgerInfo
from aerotape.client.ledger.writing import LedgerWriting
from aerotape.client.queries import list_scopes
from aerotape.client.session.request import Call, nothing
from aerotape.codecs.entry import Data, DigestType, Entry
from aerotape.codecs.generated import ledger_control as codecs
from aerotape.codecs.journal_type import JournalType
from aerotape.context import Closing
from aerotape.errors import AerotapeError
from aerotape.qualified_id import QualifiedId


class LedgerWriter(WriterBase):
    """The writer of a ledger. Any number of adds may be in progress at the same time.

    An add is acknowledged when its entry is on storage (PD_JOURNAL), or in the page cache of the
    archive (VD_JOURNAL; `sync` forces entries to storage). Entries up to `last_add_confirmed` are
    on storage. Adds are acknowledged together. Leaving the `with` block closes the ledger.

    Methods raise `LedgerClosedError` when another client has closed or recovered the ledger,
    `LedgerError` when the archive no longer records it, and `AeronTimeoutError` when there was no
    progress for the timeout of the client. After the first two nothing can be added; entries that
    were acknowledged stay.
    """

    def __init__(self, client: ReplayMethods, writing: LedgerWriting) -> None:
        """Write to a ledger. Created by `ArchiveClient.create_ledger`."""
        super().__init__(writing)
        self._client = client
        self._adding = threading.Lock()

    def add(self, payload: Data) -> int:
        """Add an entry, wait until it is acknowledged and return its id."""
        with self._adding:
            entry_id = self._writing.try_push((payload,))
            if entry_id is None:
                entry_id = self._client._run(self._writing.push((payload,)))
            position = self._writing.native.position
        self._client._run(self._writing.acknowledged(position))
        return entry_id

    def add_many(self, payloads: Sequence[Data]) -> range:
        """Add entries in order, wait until all are acknowledged, and return their ids."""
        end = self.add_async(*payloads) + 1
        self.flush()
        return range(end - len(payloads), end)

    def add_async(self, *payloads: Data) -> int:
        """Add entries, waiting only for room; return the id of the last one.

        `flush` waits for their acknowledgement.
        """
        with self._adding:
            entry_id = self._writing.try_push(payloads)
            if entry_id is None:
                entry_id = self._client._run(self._writing.push(payloads))
            return entry_id

    def flush(self) -> int:
        """Wait until all adds are acknowledged; return the id of the last entry."""
        return self._client._run(self._writing.flush())

    def sync(self) -> int:
        """Force entries to storage; return the last one that is, -1 for none.

        Entries that are added meanwhile may or may not be among them.
        """
        return self._client._run(self._writing.sync())

    def detach(self) -> None:
        """Wait for acknowledgements and leave the ledger open, for another writer. Idempotent."""
        self._client._run(self._writing.detach())

    def close(self) -> None:
        """Wait for acknowledgements, sync, and close the ledger permanently. Idempotent.

        After an error that was raised before, the ledger stays as it is: recover it by opening it.
        """
        self._client._run(self._writing.close())


class LedgerReader(ReaderProperties, Closing):
    """Reads the entries of a ledger. Any number of reads may be in progress at the same time."""

    def __init__(self, client: ReplayMethods, reading: LedgerReading) -> None:
        """Read a ledger. Created by `ArchiveClient.open_ledger`."""
        super().__init__(reading)
        self._client = client

    def refresh(self) -> LedgerInfo:
        """Request the state of the ledger, and return it."""
        return self._client._run(self._reading.refresh())

    def read(
        self,
        first: int = 0,
        last: int | None = None,
        *,
        follow: bool = False,
        max_entries: int | None = None,
        max_bytes: int | None = None,
    ) -> Iterator[Entry]:
        """Iterate over entries that are on storage.

        Args:
            first: the id of the first entry.
            last: the id of the last entry. None: the last one that is confirmed now.
            follow: continue with entries as they are confirmed, also those of later writers, until
                the ledger is closed and all is read.
            max_entries: end after this number of entries.
            max_bytes: end before the payloads exceed this; at least one entry is read.

        Raises:
            UnconfirmedEntryError: `last` is not confirmed. Not with `follow`.
            EntryError: an entry is damaged.
            ConfigurationError: `first` is negative, or more than one past `last`; with `follow`,
                past the end of a ledger that is closed.
        """
        wanted = Wanted(first, last, max_entries, max_bytes)
        if follow:
            return self._entries(wanted, None)
        plan = self._reading.plan(wanted, unconfirmed=False)
        return self._client._iterate(plan, partial(self._entries, wanted))

    def read_unconfirmed(
        self,
        first: int = 0,
        last: int | None = None,
        *,
        max_entries: int | None = None,
        max_bytes: int | None = None,
    ) -> Iterator[Entry]:
        """As `read`, also of entries that are recorded and may be lost with the archive.

        A mirror that returns may drop such entries meanwhile: then this raises `ArchiveError`.
        """
        wanted = Wanted(first, last, max_entries, max_bytes)
        plan = self._reading.plan(wanted, unconfirmed=True)
        return self._client._iterate(plan, partial(self._entries, wanted))

    def _entries(self, wanted: Wanted, given: ReadPlan | None) -> Iterator[Entry]:
        """Iterate over the entries of a plan. None: follow the ledger, plan by plan."""
        reading, next_id, bytes_left = self._reading, wanted.first, wanted.byte_limit
        plan, repaired = given, -1
        while True:
            if plan is None:
                plan = self._client._run(reading.follow(next_id, wanted))
            if not plan.ids:
                return
            failure: AerotapeError | None = None
            with self._replay(plan) as messages:
                for entry_id in plan.ids:
                    try:
                        message = next(messages, None)
                        if message is None and plan.counter_id is not None:
                            break
                        if entry_id < next_id:
                            continue
                        entry = reading.entry(entry_id, message)
                    except NOT_READ as error:
                        if entry_id == repaired:
                            raise
                        repaired, failure = entry_id, error
                        break
                    bytes_left -= len(entry.payload)
                    if bytes_left < 0 and entry_id > wanted.first:
                        return
                    next_id = entry_id + 1
                    yield entry
            if failure is not None:
                plan = self._client._run(reading.repair(plan, repaired, failure))
            elif given is not None:
                return
            else:
                plan = None

    def _replay(self, plan: ReadPlan) -> Replay:
        begin = partial(self._reading.replay, plan, self._client._replay_channel)
        return self._client._open(begin, partial(Replay, requests=self._client))

    def close(self) -> None:
        """Do nothing: a reader holds nothing open."""


class LedgerMethods(ReplayMethods):
    """Creates, opens, lists and deletes ledgers, which only archives of this package have.

    Another archive is not sent these requests (IllegalOperationError).
    """

    def declare_ledger(
        self,
        type: JournalType = "PD_JOURNAL",
        qualified_id: AnyLedger | None = None,
        *,
        digest_type: DigestType = "CRC32C",
        password: bytes = b"",
        write_quorum: int = 1,
        ack_quorum: int = 1,
        mirrors: Sequence[str] = (),
    ) -> QualifiedId:
        """Create a ledger without a writer, and return its id. It is on storage then.

        Args:
            type: when adds are acknowledged: once they are on storage (``PD_JOURNAL``), or once
                they are in the page cache (``VD_JOURNAL``).
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
        return self._run(
            opening.declare_ledger(
                self._session,
                type,
                qualified_id,
                digest_type=digest_type,
                password=password,
                write_quorum=write_quorum,
                ack_quorum=ack_quorum,
                mirrors=mirrors,
            )
        )

    def create_ledger(
        self,
        type: JournalType = "PD_JOURNAL",
        qualified_id: AnyLedger | None = None,
        *,
        digest_type: DigestType = "CRC32C",
        password: bytes = b"",
        channel: str | None = None,
        write_quorum: int = 1,
        ack_quorum: int = 1,
        mirrors: Sequence[str] = (),
    ) -> LedgerWriter:
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
        begin = partial(
            opening.create_ledger,
            self._session,
            type,
            qualified_id,
            digest_type=digest_type,
            password=password,
            channel=channel,
            write_quorum=write_quorum,
            ack_quorum=ack_quorum,
            mirrors=mirrors,
        )
        return self._open(begin, partial(LedgerWriter, self))

    def open_ledger_writer(
        self,
        ledger: AnyLedger,
        password: bytes = b"",
        *,
        channel: str | None = None,
        take_over: bool = False,
    ) -> LedgerWriter:
        """Return a writer that continues an open ledger.

        This archive leads the ledger afterwards, also if another one has done so before: it first
        copies what it lacks from the other archives that store the ledger.

        Args:
            ledger: the ledger.
            password: of the ledger.
            channel: where to publish; None: to the address of the control channel.
            take_over: whether to end another writer, also one that is alive or that another archive
                records: its further adds raise LedgerClosedError.

        Raises:
            UnknownLedgerError: there is no such ledger.
            LedgerInUseError: it has a writer.
            LedgerClosedError: it is closed.
            LedgerPasswordError: the password is wrong.
            LedgerError: too few of the archives that store the ledger respond.
        """
        begin = partial(
            opening.open_ledger_writer, self._session, ledger, password, channel, take_over
        )
        return self._open(begin, partial(LedgerWriter, self))

    def open_ledger(self, ledger: AnyLedger, password: bytes = b"") -> LedgerReader:
        """Recover and close a ledger, and return a reader of all its entries.

        A writer of the ledger is stopped: its further adds fail. All entries that are recorded are
        confirmed then.

        Raises:
            UnknownLedgerError: there is no such ledger.
            LedgerPasswordError: the password is wrong.
        """
        begin = partial(opening.open_ledger, self._session, ledger, password)
        return self._open(begin, partial(LedgerReader, self))

    def open_ledger_read_only(self, ledger: AnyLedger, password: bytes = b"") -> LedgerReader:
        """Return a reader of a ledger that may have a writer, which is not affected.

        Raises:
            UnknownLedgerError: there is no such ledger.
            LedgerPasswordError: the password is wrong.
        """
        begin = partial(opening.open_ledger_read_only, self._session, ledger, password)
        return self._open(begin, partial(LedgerReader, self))

    def sync_ledger(self, ledger: AnyLedger) -> int:
        """Force what is recorded of a ledger to storage; return its last add confirmed.

        Raises:
            UnknownLedgerError: there is no such ledger.
        """
        return self._run(opening.sync_ledger(self._session, ledger))

    def ledger_info(self, ledger: AnyLedger) -> LedgerInfo:
        """Return the archive's description of a ledger.

        Raises:
            UnknownLedgerError: there is no such ledger.
        """
        return self._run(requests.ledger_info(self._session, ledger))

    def list_ledgers(
        self, scope_id: int | None = 0, from_ledger_id: int = 0, count: int | None = None
    ) -> Iterator[LedgerInfo]:
        """Iterate over the ledgers of a scope, or of all, in the order of their ids, page by page.

        Entry ids of ledgers that are open are not looked up: `ledger_info` returns them.

        Args:
            scope_id: unsigned; None: all scopes. Ledgers with a generated id are not in scope 0.
            from_ledger_id: the first id to be listed of each scope, unsigned.
            count: the maximum number; None: no limit.
        """
        if scope_id is None:
            return self._list_all(from_ledger_id, count)
        return self._each(requests.list_ledgers(self._session, scope_id, from_ledger_id, count))

    def _list_all(self, from_ledger_id: int, count: int | None) -> Iterator[LedgerInfo]:
        session = self._session
        scopes = self._run(list_scopes(session))
        for scope_id in sorted({0, *scopes}):
            pages = requests.list_ledgers(session, scope_id, from_ledger_id, count)
            for info in self._each(pages):
                if count is not None:
                    count -= 1
                yield info

    def delete_ledger(self, ledger: AnyLedger) -> None:
        """Delete a ledger with its recording.

        Raises:
            UnknownLedgerError: there is no such ledger.
            LedgerInUseError: it has a writer.
            ArchiveError: it is being read.
        """
        found = requests.qualified_id(ledger)
        request = codecs.DeleteLedgerRequest(**requests.id_fields(found))
        return self._run(Call(request, f"delete ledger {found}", nothing))

    def replace_mirror(
        self, ledger: AnyLedger, mirror: str, replacement: str, *, is_lost: bool = False
    ) -> None:
        """Mirror a PD_JOURNAL ledger on another archive instead of one that has failed.

        The other archive replicates all of the ledger. What the first one has stays there, and it
        counts as before until the other one has all of the ledger; `members` of `ledger_info` has
        it until then. In an archive with users this needs the role `admin`.

        Args:
            ledger: an open ledger.
            mirror: control channel of the one that is replaced.
            replacement: control channel of the other one.
            is_lost: whether the first one has lost the ledger, or will never return; then it no
                longer counts at once.

        Raises:
            UnknownLedgerError: there is no such ledger.
            LedgerClosedError: it is closed.
            ArchiveError: it is a VD_JOURNAL ledger, whose mirrors never change, or does not have
                this mirror.
        """
        found = requests.qualified_id(ledger)
        request = codecs.ReplaceMirrorRequest(
            **requests.id_fields(found),
            is_lost=int(is_lost),
            mirror=arguments.channel("mirror", mirror),
            replacement=arguments.channel("replacement", replacement),
        )
        return self._run(Call(request, f"replace a mirror of ledger {found}", nothing))
