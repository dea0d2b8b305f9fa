"""Ledgers for the blocking client: a writer and a reader."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from aerotape.archive.client.ledger.reading import LedgerReading, ReadPlan
from aerotape.archive.client.ledger.requests import LedgerInfo
from aerotape.archive.client.ledger.writing import LedgerWriting
from aerotape.codecs.entry import Data, Entry
from aerotape.context import Closing
from aerotape.formatting import shown
from aerotape.qualified_id import QualifiedId

if TYPE_CHECKING:
    from aerotape.archive.client.client import ArchiveClient

_WAIT_NS: Final = 20_000_000

OnSynced = Callable[["BaseException | None", int], None]
"""Receives the error or None, and the last entry that is on storage."""


class LedgerProperties:
    """Properties of a ledger, for either front end."""

    _info: LedgerInfo

    @property
    def qualified_id(self) -> QualifiedId:
        """The id of the ledger."""
        return self._info.id

    @property
    def scope_id(self) -> int:
        """The high half of the id, unsigned."""
        return self._info.id.scope_id

    @property
    def id(self) -> int:
        """The low half of the id, unsigned."""
        return self._info.id.ledger_id

    @property
    def type(self) -> str:
        """``PD_JOURNAL`` or ``VD_JOURNAL``."""
        return self._info.type

    @property
    def digest_type(self) -> str:
        """The digest of its entries."""
        return self._info.digest_type

    def __repr__(self) -> str:
        return shown(self, "qualified_id", "type")


class WriterProperties(LedgerProperties):
    """Properties of a writer, for either front end."""

    def __init__(self, writing: LedgerWriting) -> None:
        self._writing = writing
        self._info = writing.info

    @property
    def last_add_pushed(self) -> int:
        """The last entry that was added, acknowledged or not; -1 for none."""
        return self._writing.native.last_add_pushed

    @property
    def last_add_confirmed(self) -> int:
        """The last entry that is known to be on storage, -1 for none. Never decreases.

        A writer on another media driver than the archive's learns it from its own requests.
        """
        return self._writing.last_add_confirmed

    @property
    def length(self) -> int:
        """Payload bytes up to `last_add_pushed`."""
        return self._writing.native.length


class ReaderProperties(LedgerProperties):
    """Properties of a reader, for either front end."""

    def __init__(self, reading: LedgerReading) -> None:
        self._reading = reading
        self._info = reading.info

    @property
    def is_closed(self) -> bool:
        """Whether the ledger is closed: then nothing is added any more."""
        return self._reading.info.is_closed

    @property
    def last_add_confirmed(self) -> int:
        """The last entry on storage when the archive was last asked, -1 for none."""
        last = self._reading.info.last_add_confirmed
        return -1 if last is None else last


class LedgerWriter(WriterProperties, Closing):
    """The writer of a ledger. Thread-safe; leaving the `with` block closes the ledger.

    An add is acknowledged when its entry is on storage (PD_JOURNAL), or in the page cache of the
    archive (VD_JOURNAL; `sync` forces entries to storage). Entries up to `last_add_confirmed` are
    on storage.

    Methods raise `LedgerClosedError` when another client has closed or recovered the ledger,
    `LedgerError` when the archive no longer records it, and `AeronTimeoutError` when there was no
    progress for the timeout of the client. After the first two nothing can be added; entries that
    were acknowledged stay.
    """

    def __init__(self, client: ArchiveClient, writing: LedgerWriting) -> None:
        """Write to a ledger. Created by `ArchiveClient.create_ledger`."""
        super().__init__(writing)
        self._client = client
        self._adding = threading.Lock()

    def add(self, payload: Data) -> int:
        """Add an entry, wait until it is acknowledged and return its id."""
        with self._adding:
            entry_id = self._push((payload,))
            position = self._writing.native.position
        self._client._run(self._writing.acknowledged(position))
        return entry_id

    def add_many(self, payloads: Sequence[Data]) -> int:
        """Add entries in order, wait until all are acknowledged, return the id of the last one."""
        last = self.add_async(*payloads)
        self.flush()
        return last

    def add_async(self, *payloads: Data) -> int:
        """Add entries without waiting; return the id of the last one. `flush` waits for them."""
        with self._adding:
            return self._push(payloads)

    def _push(self, payloads: Sequence[Data]) -> int:
        writing = self._writing
        if len(payloads) == 1 and writing.failure is None:
            entry_id, result = writing.native.add(payloads[0])
            if result >= 0:
                return entry_id
        if not payloads:
            return writing.native.last_add_pushed
        return self._client._run(writing.push(payloads, _WAIT_NS))

    def flush(self) -> int:
        """Wait until all adds are acknowledged; return the id of the last entry."""
        return self._client._run(self._writing.flush())

    def sync(self) -> int:
        """Force entries to storage; return the last one that is, -1 for none.

        Entries that are added meanwhile may or may not be among them.
        """
        return self._client._run(self._writing.sync())

    def sync_async(self, on_synced: OnSynced | None = None) -> Future[int]:
        """As `sync`, in another thread.

        Args:
            on_synced: called there at the end.
        """
        future: Future[int] = Future()

        def run() -> None:
            try:
                last = self.sync()
            except BaseException as error:
                if on_synced is not None:
                    on_synced(error, -1)
                future.set_exception(error)
            else:
                if on_synced is not None:
                    on_synced(None, last)
                future.set_result(last)

        threading.Thread(target=run, name="aerotape-ledger-sync", daemon=True).start()
        return future

    def detach(self) -> None:
        """Wait for acknowledgements and leave the ledger open, for another writer. Idempotent."""
        self._client._run(self._writing.detach())

    def close(self) -> None:
        """Wait for acknowledgements, sync, and close the ledger permanently. Idempotent.

        After an error that was raised before, the ledger stays as it is: recover it by opening it.
        """
        self._client._run(self._writing.close())


class LedgerReader(ReaderProperties, Closing):
    """Reads the entries of a ledger. Thread-safe."""

    def __init__(self, client: ArchiveClient, reading: LedgerReading) -> None:
        """Read a ledger. Created by `ArchiveClient.open_ledger`."""
        super().__init__(reading)
        self._client = client

    def refresh(self) -> LedgerInfo:
        """Request the state of the ledger, and return it."""
        return self._client._run(self._reading.refresh())

    def read(self, first: int = 0, last: int | None = None) -> Iterator[Entry]:
        """Iterate over entries that are on storage.

        Args:
            first: the id of the first entry.
            last: the id of the last entry. None: the last one that is confirmed now.

        Raises:
            UnconfirmedEntryError: `last` is not confirmed.
            EntryError: an entry is damaged.
        """
        return self._entries(self._client._run(self._reading.plan(first, last, unconfirmed=False)))

    def read_unconfirmed(self, first: int = 0, last: int | None = None) -> Iterator[Entry]:
        """As `read`, also of entries that are recorded and may be lost with the archive.

        A mirror that returns may drop such entries meanwhile: then this raises `ArchiveError`.
        """
        return self._entries(self._client._run(self._reading.plan(first, last, unconfirmed=True)))

    def _entries(self, found: ReadPlan) -> Iterator[Entry]:
        if not found.ids:
            return
        with self._client.replay(
            self._reading.info.recording_id, found.position, found.length, follow=False
        ) as messages:
            for entry_id in found.ids:
                yield self._reading.entry(entry_id, next(messages, None))

    def close(self) -> None:
        """Do nothing: a reader holds nothing open."""
