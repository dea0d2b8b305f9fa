"""The thread that reads and writes ledgers' metadata and segment files, for the conductor."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aerotape.archive.background_tasks import Task, outcome
from aerotape.archive.ledger.metadata import LedgerMetadata, unknown_ledger
from aerotape.archive.recording.file_worker import FileWorker
from aerotape.catalog.scopes.layout import imported_directory, imported_ids
from aerotape.errors import UnknownLedgerError
from aerotape.qualified_id import QualifiedId

if TYPE_CHECKING:
    from aerotape.archive.ledger.store import LedgerStore

T = TypeVar("T")


class LedgerWorker:
    """The thread and the database, which the first call starts and opens.

    Methods return tasks that wait for the thread; what the call raises, they raise.
    """

    def __init__(
        self, archive_dir: Path, wake: Callable[[], None], report: Callable[[str], None]
    ) -> None:
        """Begin without a thread.

        Args:
            wake: makes the caller's thread advance the tasks; called in the thread.
            report: called by a task with what the operator has to know of metadata that was lost.
        """
        self._archive_dir = archive_dir
        self._report = report
        self._reports: deque[str] = deque()
        self._files = FileWorker("archive-ledgers", wake)
        # Used in the thread only, until that has ended.
        self._store: LedgerStore | None = None

    def call(self, call: Callable[[], T]) -> Task[T]:
        """Call a function in the thread."""
        try:
            return (yield from outcome(self._files.submit(call)))
        finally:
            while self._reports:
                self._report(self._reports.popleft())

    def change(self, change: Callable[[LedgerStore], None]) -> Task[None]:
        """Change the database, which is created if there is none; on storage at the end.

        Raises:
            LedgerError: the change is refused.
            StorageError: the database cannot be written.
        """

        def make() -> None:
            store = self._open(create=True)
            assert store is not None
            change(store)

        yield from self.call(make)

    def get(self, ledger: QualifiedId) -> Task[LedgerMetadata]:
        """Return the metadata of a ledger.

        Raises:
            UnknownLedgerError: there is no such ledger.
            StorageError: the database cannot be read.
        """

        def read() -> LedgerMetadata:
            store = self._open(create=False)
            try:
                if store is None:
                    raise unknown_ledger(ledger)
                return store.get(ledger)
            except UnknownLedgerError:
                if not imported_directory(self._archive_dir, ledger).exists():
                    raise
            raise UnknownLedgerError(
                f"{ledger} is an imported recording, not a ledger: it can only be read", ledger
            )

        return (yield from self.call(read))

    def listed(self, scope_id: int, from_ledger_id: int, count: int) -> Task[list[LedgerMetadata]]:
        """Return up to `count` ledgers of a scope in the order of their ids (StorageError)."""

        def read() -> list[LedgerMetadata]:
            store = self._open(create=False)
            return [] if store is None else store.listed(scope_id, from_ledger_id, count)

        return (yield from self.call(read))

    def next_scope(self, after: int) -> Task[int]:
        """Return the lowest scope after one, unsigned, that has ledgers or imported recordings.

        Returns:
            The scope in two's complement; 0 if there is none.

        Raises:
            StorageError: the database or a directory cannot be read.
        """

        def read() -> int:
            store = self._open(create=False)
            found = [each for each in imported_ids(self._archive_dir) if each.scope_id > after][:1]
            if store is not None:
                found += store.after_scope(after)
            return min(found).signed[0] if found else 0

        return (yield from self.call(read))

    def _open(self, *, create: bool) -> LedgerStore | None:
        if self._store is None:
            # An archive without ledgers starts without SQLite.
            from aerotape.archive.ledger.rebuild import open_store

            self._store = open_store(self._archive_dir, create=create, report=self._reports.append)
        return self._store

    def close(self) -> None:
        """Wait for the call in progress, cancel the others and close the database."""
        self._files.close()
        if self._store is not None:
            self._store.close()
