"""The recordings of ledgers in this archive: who writes them, how far they are, and their end.

Positions are those of this archive alone. Which of them a quorum has is up to the leader's part
(`mirrors/leader.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from aerotape.archive.ledger.alias import ledger_of_channel, mark_closed
from aerotape.archive.ledger.entry_lookup import EntryMark, LedgerRecording
from aerotape.archive.ledger.ledger_worker import LedgerWorker
from aerotape.archive.ledger.metadata import LedgerMetadata
from aerotape.archive.ledger.status import LedgerStatus
from aerotape.archive.ledger.writer_recording import Client, WriterRecording
from aerotape.archive.recording.durability import force_recording
from aerotape.archive.recording.recording_session import RecordingSession, RecordingSessionState
from aerotape.archive.waiting import Pause, Task, await_future
from aerotape.codecs.generated.archive import SourceLocation
from aerotape.codecs.generated.ledger_control import DigestType
from aerotape.errors import ArchiveError, LedgerError, LedgerFencedError, LedgerInUseError
from aerotape.protocol import NULL_VALUE, ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.ledger.mirrors.replica import Replica
    from aerotape.archive.recording.recordings import Recordings
    from aerotape.archive.recording.segments.deletion import Deletion
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.codecs import entry as entries
    from aerotape.qualified_id import QualifiedId

Purge = Callable[[int], "Deletion"]
Truncate = Callable[[int, int], "Deletion"]


class LedgerRecordings:
    """All recordings of ledgers. For the conductor's thread."""

    def __init__(
        self,
        *,
        archive_dir: Path,
        catalog: Catalog,
        recordings: Recordings,
        worker: LedgerWorker,
        purge: Purge,
        truncate: Truncate,
        errors: ErrorLog,
    ) -> None:
        """Create the service, without any writer.

        Args:
            purge: removes a recording.
            truncate: ends a recording at a position.
        """
        self._archive_dir = archive_dir
        self._catalog = catalog
        self._recordings = recordings
        self._worker = worker
        self._purge = purge
        self._truncate = truncate
        self._errors = errors
        self._writers: dict[QualifiedId, WriterRecording] = {}
        self._forced: set[int] = set()  # recordings whose stop position is on storage
        # The last confirmed entry that was looked up, by recording.
        self._marks: dict[int, EntryMark] = {}

    def do_work(self) -> None:
        """Remove the writers whose recordings have stopped."""
        for ledger, writer in list(self._writers.items()):
            if writer.stop_position is not None:
                # The recorder has forced it to storage up to there.
                self._forced.add(writer.recording_id)
                del self._writers[ledger]

    # ---- which they are -----------------------------------------------------------------------

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

    def metadata(self, ledger: QualifiedId) -> Task[LedgerMetadata]:
        """Return the metadata of a ledger, with the recording of its writer."""
        writer = self._writers.get(ledger)
        if writer is not None and writer.is_active:
            return writer.metadata
        return (yield from self._worker.get(ledger))

    def session(self, recording_id: int) -> RecordingSession | None:
        """Return the session that records a ledger; None before it has begun and at its end."""
        session = self._recordings.session(recording_id)
        return (
            session
            if session is not None and session.state is RecordingSessionState.RECORDING
            else None
        )

    def recording(self, metadata: LedgerMetadata) -> LedgerRecording:
        """Return the recording of a ledger on disk (LedgerError: it is not in the catalog)."""
        if not self._catalog.has_recording(metadata.recording_id):
            raise LedgerError.lost_recording(metadata.ledger, metadata.recording_id)
        digest_type = metadata.digest_type
        return LedgerRecording(
            self._archive_dir,
            self._catalog.descriptor(metadata.recording_id),
            # Without the password an HMAC cannot be checked.
            None
            if digest_type is DigestType.HMAC
            else cast("entries.DigestType", digest_type.name),
        )

    # ---- writers ------------------------------------------------------------------------------

    def writer(self, ledger: QualifiedId) -> WriterRecording | None:
        """Return the writer of a ledger."""
        return self._writers.get(ledger)

    def check_no_writer(self, metadata: LedgerMetadata) -> None:
        """Refuse a ledger that has a writer, or that is being mirrored (LedgerInUseError)."""
        if (
            metadata.ledger in self._writers
            or self._recordings.session(metadata.recording_id) is not None
        ):
            raise LedgerInUseError.of_ledger(metadata.ledger)

    def check_writer(self, ledger: QualifiedId, client: Client, attach_id: int) -> None:
        """Refuse a client that is not the writer of a ledger any more (LedgerFencedError)."""
        writer = self._writers.get(ledger)
        is_same = (
            writer is not None
            and writer.client is client
            and writer.correlation_id == attach_id
            and not writer.failure
        )
        if not is_same:
            raise LedgerFencedError(f"ledger {ledger} is no longer written by this client", ledger)

    def start_writer(
        self,
        writer: WriterRecording,
        stream_id: int,
        channel: str,
        source_location: SourceLocation,
        timeout_ns: int,
    ) -> Task[None]:
        """Wait until a writer's stream is recorded; raises as `WriterRecording.record`."""
        ledger = writer.metadata.ledger
        self._writers[ledger] = writer
        try:
            yield from writer.record(
                self._recordings, stream_id, channel, source_location, timeout_ns
            )
        finally:
            if not writer.is_active:
                self._writers.pop(ledger, None)
        self.expect_writes(writer.recording_id)

    def stop_writer(self, writer: WriterRecording) -> Task[None]:
        """Stop the recording of a writer, and wait for its end."""
        self._recordings.stop_identity(writer.recording_id)
        while writer.is_active:
            yield Pause()

    def fail_writer(
        self, writer: WriterRecording, failure: str, code: int = ErrorCode.GENERIC
    ) -> None:
        """Stop the recording of a writer because of an error, which its client receives."""
        writer.on_failed(code, failure)
        self._recordings.stop_identity(writer.recording_id)

    # ---- positions ----------------------------------------------------------------------------

    def positions(self, metadata: LedgerMetadata) -> LedgerStatus:
        """Return the positions of a ledger that are known without looking at files."""
        recording_id = metadata.recording_id
        session = self.session(recording_id)
        if session is not None:
            return LedgerStatus.of_session(session)
        if metadata.is_closed or not self._catalog.has_recording(recording_id):
            return LedgerStatus.of_metadata(metadata)
        stop_position = self._catalog.stop_position(recording_id)
        return LedgerStatus(recording_id, stop_position, stop_position)

    def end(self, metadata: LedgerMetadata) -> int:
        """Return the end of a ledger's recording, bytes; 0 without a recording.

        It is not before the end of the last entry, after which there may be padding.
        """
        session = self._recordings.session(metadata.recording_id)
        if session is not None:
            return session.position
        if not self._catalog.has_recording(metadata.recording_id):
            return 0
        return max(self._catalog.stop_position(metadata.recording_id), 0)

    def find_entries(self, metadata: LedgerMetadata, status: LedgerStatus) -> Task[LedgerStatus]:
        """Return a status with the entries that end at its positions."""
        recording, known = self.recording(metadata), self._marks.get(metadata.recording_id)
        confirmed, recorded = status.confirmed_position, status.recorded_position
        last_confirmed = yield from self._worker.call(
            lambda: recording.last_entry(confirmed, known)
        )
        last_pushed = yield from self._worker.call(
            lambda: recording.last_entry(recorded, last_confirmed)
        )
        self._marks[metadata.recording_id] = last_confirmed
        return status.with_entries(last_pushed, last_confirmed)

    def sync(self, metadata: LedgerMetadata) -> Task[int]:
        """Force what is recorded from a writer to storage; return its end (LedgerError)."""
        done: list[tuple[int, str | None]] = []
        is_requested = self._recordings.request_sync(
            metadata.recording_id, lambda position, failure: done.append((position, failure))
        )
        assert is_requested, "a session that records a ledger has a durability"
        while not done:
            yield Pause()
        position, failure = done[0]
        if failure is not None:
            raise LedgerError(f"ledger {metadata.ledger} has failed: {failure}", metadata.ledger)
        return position

    # ---- the end ------------------------------------------------------------------------------

    def settle(self, metadata: LedgerMetadata) -> Task[LedgerRecording]:
        """Wait until a recording has stopped and all of it is on storage, and return it.

        What a power cut has left of its last entries is cut off.
        """
        recording_id = metadata.recording_id
        while self._recordings.session(recording_id) is not None:
            yield Pause()
        if recording_id not in self._forced:
            recording = self.recording(metadata)
            end = recording.descriptor.stop_position
            torn_at = yield from self._worker.call(lambda: recording.torn_at(end))
            if torn_at is not None:
                self._errors.record(
                    "ledger cut",
                    f"ledger {metadata.ledger}: recording {recording_id} ends at {torn_at}, not at"
                    f" {end}: its last entries were not written whole",
                )
                yield from self._recordings.gate.await_open()
                self._catalog.set_stop_position(recording_id, torn_at)
            yield from self._worker.call(lambda: force_recording(self._archive_dir, recording_id))
            self._forced.add(recording_id)
        return self.recording(metadata)

    def await_known(self, metadata: LedgerMetadata) -> Task[None]:
        """Wait until a recording, which may begin or end now, is in progress or settled."""
        recording_id = metadata.recording_id
        while recording_id != NULL_VALUE and self.session(recording_id) is None:
            if self._recordings.session(recording_id) is not None:
                yield Pause()
            elif recording_id not in self._forced:
                yield from self.settle(metadata)
            else:
                return

    def expect_writes(self, recording_id: int) -> None:
        """Note that a recording continues: its stop position has to be forced again."""
        self._forced.discard(recording_id)

    def store_replica(
        self, metadata: LedgerMetadata, replica: Replica, *, is_closed: bool
    ) -> Task[None]:
        """Store how far this archive is in the protocol, with the ledger closed or open.

        Args:
            metadata: with the recording, which has stopped if the ledger is closed.

        Raises:
            LedgerClosedError: a higher epoch has been promised.
            StorageError: it cannot be written.
        """
        ledger = metadata.ledger
        end = (yield from self.last_entry(metadata)) if is_closed else None
        yield from self._worker.change(lambda store: store.set_replica(ledger, replica, end))
        yield from self._recordings.gate.await_open()
        mark_closed(self._catalog, metadata.recording_id, self._errors, is_closed=is_closed)

    def last_entry(self, metadata: LedgerMetadata) -> Task[EntryMark]:
        """Return the last entry of a recording that has stopped, if there is one."""
        if metadata.recording_id == NULL_VALUE:
            return EntryMark(0)
        recording = self.recording(metadata)
        limit = recording.descriptor.stop_position
        return (yield from self._worker.call(lambda: recording.last_entry(limit)))

    def close(self, metadata: LedgerMetadata) -> Task[EntryMark]:
        """Store that a ledger whose recording has stopped is closed; return its last entry."""
        end = yield from self.last_entry(metadata)
        yield from self._worker.change(lambda store: store.set_closed(metadata.ledger, end))
        yield from self._recordings.gate.await_open()
        mark_closed(self._catalog, metadata.recording_id, self._errors)
        return end

    def start_position(self, recording_id: int) -> int:
        """Return where a recording begins, bytes."""
        return self._catalog.descriptor(recording_id).start_position

    def purge(self, metadata: LedgerMetadata) -> Task[None]:
        """Purge the recording of a ledger, if it has one (ArchiveError)."""
        if not self._catalog.has_recording(metadata.recording_id):
            return
        yield from self._recordings.gate.await_open()
        try:
            yield from await_future(self._purge(metadata.recording_id).counted)
        except ArchiveError as error:
            raise ArchiveError(
                f"ledger {metadata.ledger} is not deleted: {error}", error.error_code
            ) from error

    def truncate(self, metadata: LedgerMetadata, position: int) -> Task[None]:
        """Truncate the recording of a ledger, and wait until its files are (ArchiveError)."""
        yield from self._recordings.gate.await_open()
        try:
            yield from await_future(self._truncate(metadata.recording_id, position).deleted)
        except ArchiveError as error:
            raise ArchiveError(
                f"cannot mirror ledger {metadata.ledger}: {error}", error.error_code
            ) from error
        finally:
            self._marks.pop(metadata.recording_id, None)
