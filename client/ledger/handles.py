"""Properties of the writers and readers of ledgers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from aerotape.client.ledger.reading import LedgerReading
from aerotape.client.ledger.requests import LedgerInfo
from aerotape.client.ledger.writing import LedgerWriting
from aerotape.context import AsyncClosing, Closing
from aerotape.formatting import shown
from aerotape.qualified_id import QualifiedId

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

        A writer on another media driver than the archive's learns it from its own requests, and so
        does one of a ledger with mirrors.
        """
        return self._writing.last_add_confirmed

    @property
    def max_payload_length(self) -> int:
        """The longest payload of an entry, bytes. Longer terms of the channel allow longer ones."""
        return self._writing.native.max_payload_length

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


class WriterBase(WriterProperties, Closing):
    """Methods of the blocking writer: `sync_async` runs a sync in a thread."""

    def sync(self) -> int:
        """Force entries to storage; return the last one that is, -1 for none."""
        raise NotImplementedError

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


class AsyncWriterBase(WriterProperties, AsyncClosing):
    """The base of the asyncio client's writer."""
