"""The thread that reads and writes ledgers' metadata and segment files, for the conductor.

It also has what the conductor needs without a wait: which recordings are those of ledgers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from aerotape.archive.features.ledger.entry_lookup import LedgerRecording
from aerotape.archive.features.ledger.metadata import (
    FILE_NAME,
    LedgerMetadata,
    exists_already,
    unknown_ledger,
)
from aerotape.archive.recording.file_worker import FileWorker
from aerotape.catalog.forcing import force_catalog
from aerotape.catalog.scope_layout import imported_directory, imported_ids
from aerotape.errors import AerotapeError, LedgerExistsError, UnknownLedgerError
from aerotape.qualified_id import QualifiedId
from aerotape.waiting import Pause, Task, Until

if TYPE_CHECKING:
    from concurrent.futures import Future

    from aerotape.archive.features.ledger.entry_lookup import EntryMark
    from aerotape.archive.features.ledger.metadata_store import Forced, MetadataStore
    from aerotape.archive.features.ledger.protocol.member_record import Epoch, MemberRecord
    from aerotape.archive.threads import ThreadNaming
    from aerotape.catalog.descriptor import RecordingDescriptor

T = TypeVar("T")
# Between two notes of how far recordings that grow are on storage.
_NOTE_INTERVAL_NS: Final = 1_000_000_000


class ThreadCall(Until[bool]):
    """A call in the thread, which begins when its wait does."""

    def __init__(self, submit: Callable[[], Future[Any]]) -> None:
        """Create it; `submit` puts it in the queue of the thread."""
        super().__init__(self._has_ended)
        self._submit = submit
        self._future: Future[Any] | None = None

    def begin(self) -> Future[Any]:
        """Put the call in the queue. Idempotent."""
        if self._future is None:
            self._future = self._submit()
        return self._future

    def cancel(self) -> None:
        """Remove it from the queue, unless the thread is executing it."""
        if self._future is not None:
            self._future.cancel()

    def _has_ended(self) -> bool:
        return self.begin().done()


class Turn:
    """The right of the tasks of one session to have a call in the queue, one at a time."""

    def __init__(self) -> None:
        self._is_taken = False

    def run(self, task: Task[T]) -> Task[T]:
        """Run a task, whose calls in the thread wait for those of the other tasks."""
        try:
            wait = next(task)
            while True:
                call = wait if isinstance(wait, ThreadCall) else None
                if call is not None:
                    while self._is_taken:
                        yield Pause()
                    self._is_taken = True
                    call.begin()
                try:
                    yield wait
                except Exception as error:
                    wait = task.throw(error)
                else:
                    wait = next(task)
                finally:
                    if call is not None:
                        self._is_taken = False
        except StopIteration as end:
            return cast(T, end.value)
        finally:
            task.close()


class LedgerWorker:
    """The thread and the database, which the first call starts and opens.

    Methods return tasks that wait for the thread; what the call raises, they raise.

    Attributes:
        recordings: the ledgers by their recordings; None until the database has been opened.
        is_note_due: whether to note now how far recordings that grow are on storage.
    """

    def __init__(
        self,
        archive_dir: Path,
        wake: Callable[[], None],
        report: Callable[[str], None],
        *,
        is_restored: bool = False,
        naming: ThreadNaming = "classic",
    ) -> None:
        """Create the worker, without a thread.

        Args:
            is_restored: whether the directory may lack what this archive has acknowledged.
            naming: of the thread.
            wake: makes the caller's thread advance the tasks; called in the thread.
            report: called in the conductor's thread with what the operator has to know of metadata
                that was lost or cannot be read.
        """
        self.recordings: dict[int, QualifiedId] | None = None
        self.is_note_due = False
        self._archive_dir = archive_dir
        self._is_restored = is_restored
        self._report = report
        self._reports: deque[str] = deque()
        # What recordings have on storage, to be stored, with the descriptors of those that have
        # stopped.
        self._forced: dict[QualifiedId, tuple[int, RecordingDescriptor | None]] = {}
        self._next_note_ns = 0
        self._files = FileWorker("ledger", wake, naming)
        # Used in the thread only, until that has ended.
        self._store: MetadataStore | None = None

    def begin(self) -> None:
        """Open the database, if there is one, so that it is known which recordings are ledgers'."""
        if (self._archive_dir / FILE_NAME).exists():
            self._files.submit(self._load)

    def _load(self) -> None:
        try:
            self._open(create=False)
        except AerotapeError as error:
            self._reports.append(f"{error}; recordings are protected by their aliases meanwhile")

    def do_work(self) -> None:
        """Report what the thread has found, and have it store what has been noted."""
        self._report_found()
        if self._forced:
            forced, self._forced = self._forced, {}
            self._files.submit(partial(self._store_forced, forced))
        now_ns = time.monotonic_ns()
        self.is_note_due = now_ns >= self._next_note_ns
        if self.is_note_due:
            self._next_note_ns = now_ns + _NOTE_INTERVAL_NS

    def _report_found(self) -> None:
        while self._reports:
            self._report(self._reports.popleft())

    def call(self, call: Callable[[], T]) -> Task[T]:
        """Call a function in the thread."""
        waiting = ThreadCall(lambda: self._files.submit(call))
        try:
            yield waiting
        finally:
            waiting.cancel()
            self._report_found()
        return cast(T, waiting.begin().result())

    def create(self) -> Task[None]:
        """Create the database if there is none, before the recording of a new ledger exists.

        Later it would be built again from that recording (StorageError: it cannot be written).
        """
        yield from self.change(lambda store: None)

    def change(self, change: Callable[[MetadataStore], None]) -> Task[None]:
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

    def add(self, metadata: LedgerMetadata) -> Task[None]:
        """Add a ledger; it is on storage at the end.

        Raises:
            LedgerExistsError: its id is that of a ledger or of an imported recording.
            StorageError: the database cannot be written.
        """
        ledger = metadata.ledger

        def add() -> None:
            if imported_directory(self._archive_dir, ledger).exists():
                raise LedgerExistsError(f"{ledger} is the id of an imported recording", ledger)
            store = self._open(create=True)
            assert store is not None
            store.add(metadata)

        yield from self.call(add)

    def check_new(self, ledger: QualifiedId) -> Task[None]:
        """Refuse the id of a ledger, or of an imported recording (LedgerExistsError)."""

        def check() -> None:
            if imported_directory(self._archive_dir, ledger).exists():
                raise LedgerExistsError(f"{ledger} is the id of an imported recording", ledger)
            store = self._open(create=False)
            if store is not None and store.has(ledger):
                raise exists_already(ledger)

        yield from self.call(check)

    def promise(self, ledger: QualifiedId, epoch: Epoch, own: str) -> Task[MemberRecord]:
        """Promise an epoch of a ledger, as `MetadataStore.promise`; it is on storage at the end."""

        def make() -> MemberRecord:
            store = self._open(create=False)
            if store is None:
                raise unknown_ledger(ledger)
            return store.promise(ledger, epoch, own)

        return (yield from self.call(make))

    def set_recording(
        self, metadata: LedgerMetadata, recording_id: int, *, is_new: bool = False
    ) -> Task[None]:
        """Set the recording of a ledger, which is added with it if it is new (StorageError)."""

        def change(store: MetadataStore) -> None:
            if is_new:
                store.add(replace(metadata, recording_id=recording_id))
            else:
                store.set_recording(metadata.ledger, recording_id)
            store.cut(metadata.ledger, 0)

        yield from self.change(change)
        assert self.recordings is not None, "the database is open"
        self.recordings[recording_id] = metadata.ledger

    def remove(self, metadata: LedgerMetadata) -> Task[None]:
        """Remove a ledger whose recording is purged.

        The purge is forced to storage before: a ledger that is still listed after a crash can be
        completed by its purged recording, the reverse could not.

        Raises:
            StorageError: the catalog or the database cannot be written.
        """

        def change(store: MetadataStore) -> None:
            force_catalog(self._archive_dir)
            store.remove(metadata.ledger)

        yield from self.change(change)
        if self.recordings is not None:
            self.recordings.pop(metadata.recording_id, None)

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

    def list_scope(
        self, scope_id: int, from_ledger_id: int, count: int
    ) -> Task[list[LedgerMetadata]]:
        """Return up to `count` ledgers of a scope in the order of their ids (StorageError)."""

        def read() -> list[LedgerMetadata]:
            store = self._open(create=False)
            return [] if store is None else store.list_scope(scope_id, from_ledger_id, count)

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
                found += store.first_after_scope(after)
            return min(found).signed[0] if found else 0

        return (yield from self.call(read))

    def note_forced(
        self, ledger: QualifiedId, position: int, stopped: RecordingDescriptor | None = None
    ) -> None:
        """Note that a recording is on storage up to a position, bytes; that is stored soon.

        Args:
            stopped: the recording, if it has stopped there.
        """
        self._forced[ledger] = position, stopped

    def last_entry(
        self,
        ledger: QualifiedId,
        recording: LedgerRecording,
        limit: int,
        known: EntryMark | None = None,
    ) -> Task[EntryMark]:
        """Return the last entry before a position; arguments and errors as of the recording's."""
        return (yield from self.call(lambda: self._last(ledger, recording, limit, known)))

    def sync(self, ledger: QualifiedId, recording: LedgerRecording, position: int) -> Task[None]:
        """Store that a recording that grows is on storage up to a position, bytes (StorageError).

        With its last entry there, if that is found.
        """

        def change(store: MetadataStore) -> None:
            last = None
            with suppress(AerotapeError):
                last = self._last(ledger, recording, position)
            store.set_forced(ledger, position, last)

        yield from self.change(change)

    def position_of(
        self, ledger: QualifiedId, recording: LedgerRecording, entry_id: int, limit: int
    ) -> Task[int]:
        """Return the position of an entry; arguments and errors as of the recording's."""

        def last_id() -> int:
            return self._last(ledger, recording, limit).entry_id

        return (yield from self.call(lambda: recording.position_of(entry_id, limit, last_id)))

    def _last(
        self,
        ledger: QualifiedId,
        recording: LedgerRecording,
        limit: int,
        known: EntryMark | None = None,
    ) -> EntryMark:
        """Return the last entry before a position; one that was noted may be damaged by now."""
        store = self._open(create=False)
        noted = None if store is None else store.last_entry(ledger, limit)
        if noted is None:
            return recording.last_entry(limit, known)
        if noted.position == limit:
            return noted.entry
        is_later = known is None or known.position < noted.entry.position
        return recording.last_entry(limit, noted.entry if is_later else known)

    def forced(self, ledger: QualifiedId) -> Task[Forced | None]:
        """Return the part of a ledger that is on storage; None: not known (StorageError)."""

        def read() -> Forced | None:
            store = self._open(create=False)
            return None if store is None else store.forced(ledger)

        return (yield from self.call(read))

    def _store_forced(
        self, forced: dict[QualifiedId, tuple[int, RecordingDescriptor | None]]
    ) -> None:
        try:
            store = self._open(create=False)
            if store is not None:
                store.set_all_forced(
                    {
                        ledger: (position, self._last_of(store, ledger, stopped))
                        for ledger, (position, stopped) in forced.items()
                    }
                )
        except AerotapeError as error:
            # After a power cut more of a ledger is taken for what may be torn.
            self._reports.append(f"not stored what is on storage of ledgers: {error}")

    def _last_of(
        self, store: MetadataStore, ledger: QualifiedId, stopped: RecordingDescriptor | None
    ) -> EntryMark | None:
        """Return the last entry of a recording that has stopped; None: it is not found now."""
        with suppress(AerotapeError):
            if stopped is not None:
                digest_type = store.get(ledger).digest_type
                recording = LedgerRecording.of(self._archive_dir, stopped, digest_type)
                return self._last(ledger, recording, stopped.stop_position)
        return None

    def _open(self, *, create: bool) -> MetadataStore | None:
        if self._store is None:
            # An archive without ledgers starts without SQLite.
            from aerotape.archive.features.ledger.metadata_rebuild import open_store

            self._store = open_store(
                self._archive_dir,
                create=create,
                is_restored=self._is_restored,
                report=self._reports.append,
            )
            if self._store is not None:
                self.recordings = self._store.recordings()
        return self._store

    def close(self) -> None:
        """Wait for the call in progress, cancel the others and close the database."""
        self._files.close()
        if self._forced:
            self._store_forced(self._forced)
        if self._store is not None:
            self._store.close()
