"""The methods of the blocking client for ledgers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from aerotape.archive.client.executors.blocking import (
    BlockingRequests,
    blocking,
    blocking_pages,
)
from aerotape.archive.client.ledger import opening, requests
from aerotape.archive.client.ledger.handles import LedgerReader, LedgerWriter
from aerotape.archive.client.ledger.requests import AnyLedger, LedgerTypeName
from aerotape.codecs.entry import DigestType

if TYPE_CHECKING:
    from aerotape.archive.client.client import ArchiveClient


class LedgerMethods(BlockingRequests):
    """Creates, opens, lists and deletes ledgers, which only archives of this package have.

    Another archive is not sent these requests (IllegalOperationError).
    """

    declare_ledger = blocking(opening.declare_ledger)
    ledger_info = blocking(requests.ledger_info)
    list_ledgers = blocking_pages(requests.list_ledgers)
    delete_ledger = blocking(requests.delete_ledger)
    replace_mirror = blocking(requests.replace_mirror)

    def create_ledger(
        self,
        type: LedgerTypeName = "PD_JOURNAL",
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
        steps = opening.created(
            type, qualified_id, digest_type, password, channel, write_quorum, ack_quorum, mirrors
        )
        return LedgerWriter(self._as_client(), self._run(steps))

    def open_ledger_writer(
        self, ledger: AnyLedger, password: bytes = b"", *, channel: str | None = None
    ) -> LedgerWriter:
        """Return a writer that continues an open ledger without a writer.

        Raises:
            UnknownLedgerError: there is no such ledger.
            LedgerInUseError: it has a writer.
            LedgerClosedError: it is closed.
            LedgerPasswordError: it has another password.
        """
        steps = opening.opened_writer(ledger, password, channel)
        return LedgerWriter(self._as_client(), self._run(steps))

    def open_ledger(self, ledger: AnyLedger, password: bytes = b"") -> LedgerReader:
        """Recover and close a ledger, and return a reader of all its entries.

        A writer of the ledger is stopped: its further adds fail. All entries that are recorded are
        confirmed then.

        Raises:
            UnknownLedgerError: there is no such ledger.
            LedgerPasswordError: it has another password.
        """
        info = self._run(opening.recovered(ledger, password))
        return LedgerReader(self._as_client(), info, password)

    def open_ledger_read_only(self, ledger: AnyLedger, password: bytes = b"") -> LedgerReader:
        """Return a reader of a ledger that may have a writer, which is not affected.

        Raises:
            UnknownLedgerError: there is no such ledger.
            LedgerPasswordError: it has another password.
        """
        info = self._run(opening.opened_read_only(ledger, password))
        return LedgerReader(self._as_client(), info, password)

    def sync_ledger(self, ledger: AnyLedger) -> int:
        """Force what is recorded of a ledger to storage; return its last add confirmed.

        Raises:
            UnknownLedgerError: there is no such ledger.
        """
        found = requests.qualified_id(ledger)
        self._perform(requests.sync_ledger(found))
        last = self.ledger_info(found).last_add_confirmed
        return -1 if last is None else last

    def _as_client(self) -> ArchiveClient:
        return cast("ArchiveClient", self)
