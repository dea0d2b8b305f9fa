"""The recording of a ledger in this archive: who writes it, how far it is, and its end.

Positions are those of this archive alone. Which of them a quorum has is up to the role
(`mirrors/leading.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.archive.features.ledger.alias import mark_closed
from aerotape.archive.features.ledger.boot import boot_id
from aerotape.archive.features.ledger.entry_lookup import EntryMark, LedgerRecording
from aerotape.archive.features.ledger.ledger_worker import LedgerWorker
from aerotape.archive.features.ledger.metadata import LedgerMetadata
from aerotape.archive.features.ledger.status import LedgerStatus
from aerotape.archive.features.ledger.writer_recording import WriterRecording
from aerotape.archive.recording.recording_session import RecordingSession, RecordingSessionState
from aerotape.catalog.forcing import force_recording
from aerotape.channel_uri import ChannelUri, initial_position
from aerotape.codecs.generated.archive import SourceLocation
from aerotape.errors import ArchiveError, LedgerError, LedgerFencedError, LedgerInUseError
from aerotape.protocol import NULL_VALUE, ErrorCode
from aerotape.waiting import Done, Pause, Task, await_future

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.features.ledger.protocol.member_record import MemberRecord
    from aerotape.archive.recording.recordings import Recordings
    from aerotape.archive.recording.segments.deletion import Deletion
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.qualified_id import QualifiedId

Purge = Callable[[int], "Deletion"]
Truncate = Callable[[int, int], "Deletion"]


@dataclass(frozen=True, kw_only=True)
class Storage:
    """The parts of the archive that the logs of all ledgers use.

    Attributes:
        purge: removes a recording.
        truncate: ends a recording at a position.
    """

    archive_dir: Path
    catalog: Catalog
    recordings: Recordings
    worker: LedgerWorker
    purge: Purge
    truncate: Truncate
    errors: ErrorLog


class Log:
    """The recording of a ledger in this archive. For the conductor's thread.

    Attributes:
        writer: of the ledger, while there is one.
    """

    def __init__(self, ledger: QualifiedId, storage: Storage) -> None:
        """Create the log, without a writer."""
        self.ledger = ledger
        self.writer: WriterRecording | None = None
        self._storage = storage
        self._catalog, self._errors = storage.catalog, storage.errors
        self._recordings, self._worker = storage.recordings, storage.worker
        # Whether the stop position is on storage.
        self._is_forced = False
        # The recording, if it has not stopped since it was expected to grow.
        self._growing_id = NULL_VALUE
        # Up to where it was on storage when that was noted, while it grows.
        self._noted_position = 0
        # Where the sound entries end, if a power cut may have torn later ones, until it is cut.
        self._sound_end: int | None = None
        # The last confirmed entry that was looked up.
        self._mark: EntryMark | None = None

    @property
    def is_active(self) -> bool:
        """Whether it has a writer, or may grow."""
        return self.writer is not None or self._growing_id != NULL_VALUE

    def do_work(self) -> None:
        """Remove the writer once its recording has stopped; note what is on storage."""
        if self.writer is not None and self.writer.stop_position is not None:
            # The recorder has forced it to storage up to there.
            self._is_forced = True
            self.writer = None
        recording_id = self._growing_id
        if recording_id == NULL_VALUE:
            return
        if self._recordings.session(recording_id) is None:
            self._growing_id = NULL_VALUE
            if self._catalog.has_recording(recording_id):
                stopped = self._catalog.descriptor(recording_id)
                self._worker.note_forced(self.ledger, stopped.stop_position, stopped)
        elif self._worker.is_note_due and (session := self.session(recording_id)) is not None:
            position = session.confirmed_position
            if position > self._noted_position:
                self._noted_position = position
                self._worker.note_forced(self.ledger, position)

    # ---- what it is ---------------------------------------------------------------------------

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
            raise LedgerError.lost_recording(self.ledger, metadata.recording_id)
        descriptor = self._catalog.descriptor(metadata.recording_id)
        return LedgerRecording.of(
            self._storage.archive_dir, descriptor, metadata.digest_type
        )

    # ---- writers ------------------------------------------------------------------------------

    def check_no_writer(self, metadata: LedgerMetadata) -> None:
        """Refuse a ledger that has a writer, or that is being mirrored (LedgerInUseError)."""
        if (
            self.writer is not None
            or self._recordings.session(metadata.recording_id) is not None
        ):
            raise LedgerInUseError.of_ledger(self.ledger)

    def check_continues(self, metadata: LedgerMetadata, channel: str) -> None:
        """Refuse a stream that does not begin where a recording ends (LedgerFencedError).

        Another writer has been there since its publisher asked where that is.
        """
        if metadata.recording_id == NULL_VALUE:
            return
        descriptor, uri = self.recording(metadata).descriptor, ChannelUri.parse(channel)
        begin = initial_position(
            descriptor.stop_position, descriptor.initial_term_id, descriptor.term_buffer_length
        )
        for name in ("init-term-id", "term-id", "term-offset"):
            if uri.get(name) != str(begin[name.replace("-", "_")]):
                raise LedgerFencedError(
                    f"ledger {self.ledger} was continued by another writer: open it again",
                    self.ledger,
                )

    def check_writer(self, client: ControlSession, attach_id: int) -> None:
        """Refuse a client that is not the writer of the ledger any more (LedgerFencedError)."""
        ledger, writer = self.ledger, self.writer
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
        self.writer = writer
        try:
            yield from writer.record(
                self._recordings, stream_id, channel, source_location, timeout_ns
            )
        finally:
            if not writer.is_active:
                self.writer = None
        self.forget_durable_end(writer.metadata)

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
        end = self.end(metadata)
        return LedgerStatus(recording_id, end, end)

    def end(self, metadata: LedgerMetadata) -> int:
        """Return the end of a ledger's recording, bytes; 0 without a recording.

        It is not before the end of the last entry, after which there may be padding.
        """
        session = self._recordings.session(metadata.recording_id)
        if session is not None:
            return session.position
        if not self._catalog.has_recording(metadata.recording_id):
            return 0
        end = max(self._catalog.stop_position(metadata.recording_id), 0)
        return end if self._sound_end is None else min(end, self._sound_end)

    def status(self, metadata: LedgerMetadata) -> Task[LedgerStatus]:
        """Return the status of a recording that has stopped, once it is on storage."""
        if metadata.recording_id == NULL_VALUE:
            return LedgerStatus.of_metadata(metadata)
        yield from self.await_durable_end(metadata)
        return (yield from self.find_entries(metadata, self.positions(metadata)))

    def find_entries(self, metadata: LedgerMetadata, status: LedgerStatus) -> Task[LedgerStatus]:
        """Return a status with the entries that end at its positions."""
        recording, known = self.recording(metadata), self._mark
        confirmed, recorded = status.confirmed_position, status.recorded_position
        find = partial(self._worker.last_entry, self.ledger, recording)
        last_confirmed = yield from find(confirmed, known)
        last_pushed = yield from find(recorded, last_confirmed)
        self._mark = last_confirmed
        return status.with_entries(last_pushed, last_confirmed)

    def sync(self, metadata: LedgerMetadata) -> Task[int]:
        """Force what is recorded from a writer to storage; return its end (LedgerError)."""
        ledger, synced = self.ledger, Done[int]()

        def on_synced(position: int, failure: str | None) -> None:
            if failure is None:
                synced.set(position)
            else:
                synced.fail(LedgerError(f"ledger {ledger} has failed: {failure}", ledger))

        is_requested = self._recordings.request_sync(metadata.recording_id, on_synced)
        assert is_requested, "a session that records a ledger has a durability"
        yield synced
        yield from self._worker.sync(ledger, self.recording(metadata), synced.result)
        return synced.result

    # ---- the end ------------------------------------------------------------------------------

    def await_durable_end(self, metadata: LedgerMetadata) -> Task[LedgerRecording]:
        """Wait until a recording has stopped and all of it is on storage, and return it.

        What a power cut may have torn at its end is cut. If others store the ledger, too, this
        archive has lost entries then, or if less is left than it had on storage.
        """
        yield from self._force(metadata)
        ledger, recording_id = self.ledger, metadata.recording_id
        first_torn_position = self._sound_end
        if first_torn_position is not None:
            end = self._catalog.stop_position(recording_id)
            self._errors.record(
                "ledger cut",
                f"ledger {ledger}: recording {recording_id} ends at {first_torn_position}, not at"
                f" {end}: its last entries were not written whole",
            )
            yield from self._worker.change(lambda store: store.lose(ledger, first_torn_position))
            # Else a later start would find it after what is written next.
            recording = self.recording(metadata)
            yield from self._worker.call(lambda: recording.erase(first_torn_position))
            yield from self._recordings.changes.await_disk()
            self._catalog.set_stop_position(recording_id, first_torn_position)
            yield from self._force_files(recording_id)
            self._sound_end = None
        return self.recording(metadata)

    def _force(self, metadata: LedgerMetadata) -> Task[None]:
        """Wait until a recording has stopped and all of it is on storage; find its sound end."""
        ledger, recording_id = self.ledger, metadata.recording_id
        while self._recordings.session(recording_id) is not None:
            yield Pause()
        if self._is_forced:
            return
        recording = self.recording(metadata)
        end = recording.descriptor.stop_position
        known = yield from self._worker.forced(ledger)
        forced = recording.descriptor.start_position if known is None else known.position
        # As long as the machine runs, nothing is lost that was written. Nothing is cut either while
        # it is not known whether it was started again.
        is_killed = known is None or known.boot == boot_id()
        first_torn_position = yield from self._worker.call(
            lambda: recording.first_torn_position(end, forced, is_killed=is_killed)
        )
        has_lost_end = yield from self._worker.call(lambda: recording.has_lost_end(end))
        yield from self._force_files(recording_id)
        if known is not None and (end < known.position or has_lost_end):
            reason = "the end of its last segment file is not there"
            if end < known.position:
                reason = f"was on storage up to {known.position}"
            self._errors.record(
                "ledger has lost entries",
                f"ledger {ledger}: recording {recording_id} ends at {end}, and {reason}: restore"
                " the directory from a backup, or recover the ledger in another archive that stores"
                " it",
            )
            yield from self._worker.change(lambda store: store.lose(ledger, end))
        elif first_torn_position is None:
            yield from self._worker.change(lambda store: store.set_forced(ledger, end))
        else:
            self._sound_end = first_torn_position
        self._is_forced = True

    def _force_files(self, recording_id: int) -> Task[None]:
        archive_dir = self._storage.archive_dir
        yield from self._worker.call(lambda: force_recording(archive_dir, recording_id))

    def await_live_or_durable(self, metadata: LedgerMetadata) -> Task[None]:
        """Wait until a recording, which may begin or end now, is in progress or on storage.

        Nothing is cut: what may be torn at its end only does not count.
        """
        recording_id = metadata.recording_id
        while recording_id != NULL_VALUE and self.session(recording_id) is None:
            if self._recordings.session(recording_id) is not None:
                yield Pause()
            elif not self._is_forced:
                yield from self._force(metadata)
            else:
                return

    def forget_durable_end(self, metadata: LedgerMetadata) -> None:
        """Note that a recording continues: its stop position has to be forced again."""
        self._is_forced = False
        self._growing_id, self._noted_position = metadata.recording_id, 0

    def confirmed_end(self, metadata: LedgerMetadata) -> Task[int]:
        """Return the position up to which the entries of a recording confirm it, bytes."""
        if metadata.recording_id == NULL_VALUE:
            return 0
        recording, limit = self.recording(metadata), self.end(metadata)
        return (yield from self._worker.call(lambda: recording.confirmed_end(limit)))

    def store_member_record(
        self,
        metadata: LedgerMetadata,
        member_record: MemberRecord,
        *,
        is_closed: bool,
        forced: int | None = None,
    ) -> Task[None]:
        """Store how far this archive is in the protocol, with the ledger closed or open.

        Args:
            metadata: with the recording, which has stopped if the ledger is closed.
            forced: up to where the recording is on storage, bytes; None: not known.

        Raises:
            LedgerClosedError: a higher epoch has been promised.
            StorageError: it cannot be written.
        """
        ledger = self.ledger
        end = (yield from self.last_entry(metadata)) if is_closed else None
        yield from self._worker.change(
            lambda store: store.set_member_record(ledger, member_record, end, forced)
        )
        yield from self._recordings.changes.await_disk()
        mark_closed(self._catalog, metadata.recording_id, self._errors, is_closed=is_closed)

    def last_entry(self, metadata: LedgerMetadata) -> Task[EntryMark]:
        """Return the last entry of a recording that has stopped, if there is one."""
        if metadata.recording_id == NULL_VALUE:
            return EntryMark(0)
        recording = self.recording(metadata)
        limit = recording.descriptor.stop_position
        return (yield from self._worker.last_entry(self.ledger, recording, limit))

    def close(self, metadata: LedgerMetadata) -> Task[EntryMark]:
        """Store that a ledger whose recording has stopped is closed; return its last entry."""
        end = yield from self.last_entry(metadata)
        yield from self._worker.change(lambda store: store.set_closed(self.ledger, end))
        yield from self._recordings.changes.await_disk()
        mark_closed(self._catalog, metadata.recording_id, self._errors)
        return end

    def start_position(self, recording_id: int) -> int:
        """Return the start position of a recording, bytes."""
        return self._catalog.descriptor(recording_id).start_position

    def purge(self, metadata: LedgerMetadata) -> Task[None]:
        """Purge the recording of a ledger, if it has one (ArchiveError)."""
        if not self._catalog.has_recording(metadata.recording_id):
            return
        yield from self._recordings.changes.await_disk()
        try:
            yield from await_future(self._storage.purge(metadata.recording_id).counted)
        except ArchiveError as error:
            raise ArchiveError(
                f"ledger {self.ledger} is not deleted: {error}", error.error_code
            ) from error
        self._is_forced, self._sound_end, self._mark = False, None, None

    def truncate(self, metadata: LedgerMetadata, position: int) -> Task[None]:
        """Truncate the recording of a ledger, and wait until its files are (ArchiveError)."""
        ledger = self.ledger
        # First: less than was on storage would be a loss.
        yield from self._worker.change(lambda store: store.cut(ledger, position))
        yield from self._recordings.changes.await_disk()
        try:
            yield from await_future(self._storage.truncate(metadata.recording_id, position).deleted)
        except ArchiveError as error:
            raise ArchiveError(
                f"cannot mirror ledger {self.ledger}: {error}", error.error_code
            ) from error
        finally:
            self._mark = None
