"""The ledgers of a running archive: their metadata, their writers and the requests for them.

A request is a background task of the conductor. What blocks, the database and the segment files,
is done by a dedicated thread, which the first request for a ledger starts: an archive without
ledgers has neither thread nor database. Requests that change one ledger follow each other.

Positions of a ledger, bytes of its recording:

    written     recorded so far: the recording position counter. Its last entry is LAP.
    confirmed   on storage: a counter beside it. Its last entry is LAC.

The recorder moves both while a ledger has a writer. A recording that has stopped is forced to
storage before its end counts as confirmed: once for each run of the archive.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from aerotape.archive.agent import SOON_NS
from aerotape.archive.background_tasks import Task, outcome
from aerotape.archive.ledger import durable
from aerotape.archive.ledger.alias import ledger_of_channel, mark_closed
from aerotape.archive.ledger.attachment import Attachment, Client
from aerotape.archive.ledger.client_requests import ClientRequests
from aerotape.archive.ledger.entry_lookup import EntryMark, LedgerRecording
from aerotape.archive.ledger.ledger_worker import LedgerWorker
from aerotape.archive.ledger.metadata import LedgerMetadata, check_password, in_use
from aerotape.archive.ledger.status import LedgerStatus, descriptor_message
from aerotape.archive.recording.recording_session import RecordingSession, State
from aerotape.codecs.generated.archive import SourceLocation
from aerotape.codecs.generated.ledger_control import DigestType, LedgerType, Reach
from aerotape.errors import (
    ArchiveError,
    LedgerClosedError,
    LedgerError,
    UnconfirmedEntryError,
)
from aerotape.protocol import NULL_VALUE

if TYPE_CHECKING:
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.recording.recordings import Recordings
    from aerotape.archive.recording.segments.deletion import Deletion
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.codecs import entry as entries
    from aerotape.qualified_id import QualifiedId


class Ledgers:
    """All ledgers. For the conductor's thread."""

    def __init__(
        self,
        *,
        archive_dir: Path,
        catalog: Catalog,
        recordings: Recordings,
        purge: Callable[[int], Deletion],
        connect_timeout_ns: int,
        errors: ErrorLog,
        wake: Callable[[], None],
    ) -> None:
        """Begin without a database, which the first request opens.

        Args:
            purge: deletes a recording.
            connect_timeout_ns: how long a writer's stream may take to arrive.
            wake: makes the conductor call `do_work` soon; called from other threads.
        """
        self._archive_dir = archive_dir
        self._catalog = catalog
        self._recordings = recordings
        self._purge = purge
        self._connect_timeout_ns = connect_timeout_ns
        self._errors = errors
        self._worker = LedgerWorker(
            archive_dir, wake, lambda text: errors.record("metadata of ledgers", text)
        )
        self._worker.begin()
        self._requests = ClientRequests(self._worker, errors)
        self._writers: dict[QualifiedId, Attachment] = {}
        self._forced: set[int] = set()  # recordings whose stop position is on storage
        # The last confirmed entry that was looked up, by recording.
        self._marks: dict[int, EntryMark] = {}

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: requests wait for positions, or for the driver."""
        return SOON_NS if self._requests else None

    def do_work(self) -> None:
        """Advance each request by one step."""
        for ledger, writer in list(self._writers.items()):
            if writer.stop_position is not None:
                # The recorder has forced it to storage up to there.
                self._forced.add(writer.recording_id)
                del self._writers[ledger]
        self._worker.do_work()
        self._requests.do_work()

    def close(self) -> None:
        """Cancel requests and close the database."""
        self._requests.close()
        self._worker.close()

    def ledger_of(self, recording_id: int) -> QualifiedId | None:
        """Return the ledger whose recording this is, None if it is a plain one.

        The metadata decides. Before it was read the alias does: the metadata may be unreadable, or
        have to be built again from the aliases.
        """
        for ledger, writer in self._writers.items():
            if writer.recording_id == recording_id:
                return ledger
        known = self._worker.recordings
        if known is not None:
            return known.get(recording_id)
        found = ledger_of_channel(self._catalog.entry(recording_id).descriptor.original_channel)
        return None if found is None else found.id

    # ---- requests -----------------------------------------------------------------------------

    def create(self, client: Client, correlation_id: int, metadata: LedgerMetadata) -> None:
        """Add a ledger; OK once it is on storage."""

        def task() -> Task[None]:
            yield from self._worker.change(lambda store: store.add(metadata))
            client.send_ok(correlation_id)

        self._requests.begin(client, correlation_id, task())

    def info(
        self, client: Client, correlation_id: int, ledger: QualifiedId, password_token: bytes
    ) -> None:
        """Send the descriptor of a ledger, with its entry ids; check the token if there is one."""

        def task() -> Task[None]:
            metadata = yield from self._metadata(ledger)
            if password_token:
                check_password(metadata, password_token)
            status = yield from self._status(metadata)
            client.pass_on(descriptor_message(client.session_id, correlation_id, metadata, status))

        self._requests.begin(client, correlation_id, task())

    def list(
        self, client: Client, correlation_id: int, scope_id: int, from_ledger_id: int, count: int
    ) -> None:
        """Send descriptors without looking up entries; RECORDING_UNKNOWN if fewer than `count`."""

        def task() -> Task[None]:
            found = yield from self._worker.listed(scope_id, from_ledger_id, count)
            for metadata in found:
                message = descriptor_message(
                    client.session_id, correlation_id, metadata, self._positions(metadata)
                )
                client.pass_on(message)
            if len(found) < count:
                client.send_recording_unknown(correlation_id, NULL_VALUE)

        self._requests.begin(client, correlation_id, task())

    def next_scope(self, client: Client, correlation_id: int, after: int) -> None:
        """OK with the lowest scope after one that has ledgers or imported recordings, or 0."""

        def task() -> Task[None]:
            client.send_ok(correlation_id, (yield from self._worker.next_scope(after)))

        self._requests.begin(client, correlation_id, task())

    def attach(
        self,
        client: Client,
        correlation_id: int,
        ledger: QualifiedId,
        *,
        stream_id: int,
        source_location: SourceLocation,
        channel: Callable[[LedgerMetadata], str],
        password_token: bytes,
    ) -> None:
        """Record a writer's stream; send the descriptor once that has begun and is on storage.

        Args:
            channel: returns what to record of a ledger.
        """

        def task() -> Task[None]:
            metadata = yield from self._metadata(ledger)
            check_password(metadata, password_token)
            if metadata.is_closed:
                raise LedgerClosedError(f"ledger {ledger} is closed: create another one", ledger)
            if self._session(metadata) is None and metadata.recording_id != NULL_VALUE:
                yield from self._settled(metadata)  # waits for the end of the last writer
            self._check_no_writer(metadata)
            status = yield from self._status(metadata)
            writer = self._writers[ledger] = Attachment(metadata, client, correlation_id)
            try:
                yield from self._started(writer, metadata, stream_id, source_location, channel)
            finally:
                if not writer.is_active:
                    self._writers.pop(ledger, None)
            begun = self._catalog.descriptor(writer.recording_id)
            if metadata.recording_id == NULL_VALUE:
                yield from self._worker.set_recording(metadata, writer.recording_id)
            session = self._recordings.session(writer.recording_id)
            if session is None:
                raise LedgerError(
                    f"the writer of ledger {ledger} is gone: {writer.failure or 'it has stopped'}",
                    ledger,
                )
            if metadata.recording_id == NULL_VALUE:
                mark = EntryMark(begun.start_position)
                status = LedgerStatus(NULL_VALUE, mark.position, mark.position)
                status = status.with_entries(mark, mark)
            status = self._shown(writer.metadata, status.with_writer(session))
            client.pass_on(descriptor_message(client.session_id, correlation_id, metadata, status))

        self._requests.begin(client, correlation_id, task(), changes=ledger)

    def sync(self, client: Client, correlation_id: int, ledger: QualifiedId) -> None:
        """Force what is recorded to storage; OK with the confirmed position."""

        def task() -> Task[None]:
            metadata = yield from self._metadata(ledger)
            session = self._session(metadata)
            if session is None:
                status = yield from self._status(metadata, with_entries=False)
                client.send_ok(correlation_id, status.confirmed_position)
                return
            done: list[tuple[int, str | None]] = []
            is_requested = self._recordings.request_sync(
                session.recording_id, lambda position, failure: done.append((position, failure))
            )
            assert is_requested, "a session that records a ledger has a durability"
            while not done:
                yield
            position, failure = done[0]
            if failure is not None:
                raise LedgerError(f"ledger {ledger} has failed: {failure}", ledger)
            client.send_ok(correlation_id, (yield from self._synced(metadata, position)))

        self._requests.begin(client, correlation_id, task())

    def await_position(
        self,
        client: Client,
        correlation_id: int,
        ledger: QualifiedId,
        position: int,
        reach: Reach,
        timeout_ns: int,
    ) -> None:
        """OK with the position reached, once it is at least `position` or the time is over."""
        deadline_ns = time.monotonic_ns() + timeout_ns

        def task() -> Task[None]:
            metadata = yield from self._metadata(ledger)
            is_confirmed = reach is Reach.CONFIRMED or metadata.type is LedgerType.PD_JOURNAL
            writer = self._writers.get(ledger)
            while (session := self._session(metadata, writer)) is not None:
                reached = self._reached(metadata, session, is_confirmed)
                if reached >= position or time.monotonic_ns() >= deadline_ns:
                    client.send_ok(correlation_id, reached)
                    return
                yield
            if writer is not None and writer.stop_position is not None and not metadata.mirrors:
                client.send_ok(correlation_id, writer.stop_position)
                return
            metadata = yield from self._metadata(ledger)
            status = yield from self._status(metadata, with_entries=False)
            client.send_ok(correlation_id, status.confirmed_position)

        self._requests.begin(client, correlation_id, task())

    def close_ledger(self, client: Client, correlation_id: int, ledger: QualifiedId) -> None:
        """Sync and close a ledger that this client writes, or that has no writer."""
        task = self._closed(client, correlation_id, ledger)
        self._requests.begin(client, correlation_id, task, changes=ledger)

    def recover(
        self, client: Client, correlation_id: int, ledger: QualifiedId, password_token: bytes
    ) -> None:
        """Stop the writer of a ledger, also another client's, then sync and close the ledger."""

        def task() -> Task[None]:
            check_password((yield from self._metadata(ledger)), password_token)
            yield from self._closed(client, correlation_id, ledger, fences=True)

        self._requests.begin(client, correlation_id, task(), changes=ledger)

    def delete(self, client: Client, correlation_id: int, ledger: QualifiedId) -> None:
        """Purge the recording of a ledger without a writer, then remove its metadata.

        A ledger whose recording is purged is removed at the next start, or deleted again.
        """

        def task() -> Task[None]:
            metadata = yield from self._metadata(ledger)
            self._check_no_writer(metadata)
            if self._catalog.has_recording(metadata.recording_id):
                try:
                    yield from outcome(self._purge(metadata.recording_id).counted)
                except ArchiveError as error:
                    raise ArchiveError(
                        f"ledger {ledger} is not deleted: {error}", error.error_code
                    ) from error
            yield from self._worker.remove(metadata)
            client.send_ok(correlation_id)

        self._requests.begin(client, correlation_id, task(), changes=ledger)

    def locate(
        self, client: Client, correlation_id: int, ledger: QualifiedId, entry_id: int
    ) -> None:
        """OK with the position of an entry that is recorded."""

        def task() -> Task[None]:
            metadata = yield from self._metadata(ledger)
            status = yield from self._status(metadata, with_entries=False)
            if entry_id < 0 or metadata.recording_id == NULL_VALUE:
                raise UnconfirmedEntryError(f"ledger {ledger} has no entry {entry_id}", ledger)
            recording = self._recording(metadata)
            limit = status.recorded_position
            client.send_ok(
                correlation_id,
                (yield from self._worker.call(lambda: recording.position_of(entry_id, limit))),
            )

        self._requests.begin(client, correlation_id, task())

    # ---- steps of requests --------------------------------------------------------------------

    def _metadata(self, ledger: QualifiedId) -> Task[LedgerMetadata]:
        writer = self._writers.get(ledger)
        if writer is not None and writer.is_active:
            return writer.metadata
        return (yield from self._worker.get(ledger))

    def _started(
        self,
        writer: Attachment,
        metadata: LedgerMetadata,
        stream_id: int,
        source_location: SourceLocation,
        channel: Callable[[LedgerMetadata], str],
    ) -> Task[None]:
        """Wait until the writer's stream is recorded."""
        timeout_ns = self._connect_timeout_ns
        recorded_as = channel(metadata)
        yield from writer.record(
            self._recordings, stream_id, recorded_as, source_location, timeout_ns
        )
        self._forced.discard(writer.recording_id)

    def _closed(
        self, client: Client, correlation_id: int, ledger: QualifiedId, *, fences: bool = False
    ) -> Task[None]:
        metadata = yield from self._metadata(ledger)
        if not metadata.is_closed:
            writer = self._writers.get(ledger)
            if writer is not None:
                if not fences and writer.client is not client:
                    raise in_use(metadata)
                self._recordings.stop_identity(writer.recording_id)
                while writer.is_active:
                    yield
            end = EntryMark(0)
            if metadata.recording_id != NULL_VALUE:
                recording = yield from self._settled(metadata)
                limit = recording.descriptor.stop_position
                yield from self._closing(metadata, limit)
                end = yield from self._worker.call(lambda: recording.last_entry(limit))
            yield from self._worker.change(
                lambda store: store.set_closed(ledger, end.entry_id, end.length, end.position)
            )
            mark_closed(self._catalog, metadata.recording_id, self._errors)
            metadata = yield from self._metadata(ledger)
        client.send_ok(correlation_id, metadata.last_entry_id)

    def _reached(
        self, metadata: LedgerMetadata, session: RecordingSession, is_confirmed: bool
    ) -> int:
        return session.confirmed_position if is_confirmed else session.position

    def _synced(self, metadata: LedgerMetadata, position: int) -> Task[int]:
        """Return what is confirmed once this archive has synced up to a position."""
        yield from ()
        return position

    def _closing(self, metadata: LedgerMetadata, position: int) -> Task[None]:
        """Wait until a ledger that ends at a position can be closed."""
        yield from ()

    def _settled(self, metadata: LedgerMetadata) -> Task[LedgerRecording]:
        """Return a stopped recording, once all of it is on storage.

        What a power cut has left of its last entries is cut off.
        """
        recording_id = metadata.recording_id
        while self._recordings.session(recording_id) is not None:
            yield
        if recording_id not in self._forced:
            recording = self._recording(metadata)
            end = recording.descriptor.stop_position
            torn_at = yield from self._worker.call(lambda: recording.torn_at(end))
            if torn_at is not None:
                self._errors.record(
                    "ledger cut",
                    f"ledger {metadata.ledger}: recording {recording_id} ends at {torn_at}, not at"
                    f" {end}: its last entries were not written whole",
                )
                self._catalog.set_stop_position(recording_id, torn_at)
            yield from self._worker.call(
                lambda: durable.force_recording(self._archive_dir, recording_id)
            )
            self._forced.add(recording_id)
        return self._recording(metadata)

    def _status(self, metadata: LedgerMetadata, *, with_entries: bool = True) -> Task[LedgerStatus]:
        """Return positions that hold now, and the entries that end there."""
        if metadata.is_closed or metadata.recording_id == NULL_VALUE:
            return LedgerStatus.of_metadata(metadata)
        recordings, recording_id = self._recordings, metadata.recording_id
        while self._session(metadata) is None and recordings.session(recording_id) is not None:
            yield  # it begins or ends
        if self._session(metadata) is None:
            yield from self._settled(metadata)
        positions = self._positions(metadata)
        if not with_entries:
            return positions
        recording, known = self._recording(metadata), self._marks.get(metadata.recording_id)
        confirmed, recorded = positions.confirmed_position, positions.recorded_position
        last_confirmed = yield from self._worker.call(
            lambda: recording.last_entry(confirmed, known)
        )
        last_pushed = yield from self._worker.call(
            lambda: recording.last_entry(recorded, last_confirmed)
        )
        self._marks[metadata.recording_id] = last_confirmed
        return positions.with_entries(last_pushed, last_confirmed)

    def _shown(self, metadata: LedgerMetadata, status: LedgerStatus) -> LedgerStatus:
        return status  # for what clients may know

    def _positions(self, metadata: LedgerMetadata) -> LedgerStatus:
        """Return what is known without looking at files."""
        session = self._session(metadata)
        if session is not None:
            return self._shown(metadata, LedgerStatus.of_session(session))
        if metadata.is_closed or not self._catalog.has_recording(metadata.recording_id):
            return LedgerStatus.of_metadata(metadata)
        stop_position = self._catalog.stop_position(metadata.recording_id)
        status = LedgerStatus(metadata.recording_id, stop_position, stop_position)
        return self._shown(metadata, status)

    def _session(
        self, metadata: LedgerMetadata, writer: Attachment | None = None
    ) -> RecordingSession | None:
        recording_id = metadata.recording_id if writer is None else writer.recording_id
        session = self._recordings.session(recording_id)
        return session if session is not None and session.state is State.RECORDING else None

    def _recording(self, metadata: LedgerMetadata) -> LedgerRecording:
        if not self._catalog.has_recording(metadata.recording_id):
            raise LedgerError(
                f"ledger {metadata.ledger} has lost recording {metadata.recording_id}, which is"
                " not in the catalog: delete the ledger, or restore the recording",
                metadata.ledger,
            )
        digest_type = metadata.digest_type
        return LedgerRecording(
            self._archive_dir,
            self._catalog.descriptor(metadata.recording_id),
            # Without the password an HMAC cannot be checked.
            None
            if digest_type is DigestType.HMAC
            else cast("entries.DigestType", digest_type.name),
        )

    def _check_no_writer(self, metadata: LedgerMetadata) -> None:
        if (
            metadata.ledger in self._writers
            or self._recordings.session(metadata.recording_id) is not None
        ):
            raise in_use(metadata)
