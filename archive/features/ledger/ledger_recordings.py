"""The recordings of ledgers in this archive: who writes them, how far they are, and their end.

Positions are those of this archive alone. Which of them a quorum has is up to the leader's part
(`mirrors/leader.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from aerotape.archive.features.ledger.alias import ledger_of_channel, mark_closed
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
from aerotape.codecs.generated.ledger_control import DigestType
from aerotape.errors import ArchiveError, LedgerError, LedgerFencedError, LedgerInUseError
from aerotape.protocol import NULL_VALUE, ErrorCode
from aerotape.waiting import Done, Pause, Task, await_future

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.features.ledger.protocol.replica import Replica
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
        # Those that have not stopped, since they were expected to grow.
        self._growing: dict[int, QualifiedId] = {}
        # Where the sound entries end of recordings that a power cut may have torn, until it is cut.
        self._sound_ends: dict[int, int] = {}
        # The last confirmed entry that was looked up, by recording.
        self._marks: dict[int, EntryMark] = {}

    def do_work(self) -> None:
        """Remove the writers whose recordings have stopped."""
        for ledger, writer in list(self._writers.items()):
            if writer.stop_position is not None:
                # The recorder has forced it to storage up to there.
                self._forced.add(writer.recording_id)
                del self._writers[ledger]
        for recording_id, ledger in list(self._growing.items()):
            if self._recordings.session(recording_id) is None:
                del self._growing[recording_id]
                if self._catalog.has_recording(recording_id):
                    self._worker.note_forced(ledger, self._catalog.stop_position(recording_id))

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
                    f"ledger {metadata.ledger} was continued by another writer: open it again",
                    metadata.ledger,
                )

    def check_writer(self, ledger: QualifiedId, client: ControlSession, attach_id: int) -> None:
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
        return min(end, self._sound_ends.get(metadata.recording_id, end))

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
        ledger, synced = metadata.ledger, Done[int]()

        def on_synced(position: int, failure: str | None) -> None:
            if failure is None:
                synced.set(position)
            else:
                synced.fail(LedgerError(f"ledger {ledger} has failed: {failure}", ledger))

        is_requested = self._recordings.request_sync(metadata.recording_id, on_synced)
        assert is_requested, "a session that records a ledger has a durability"
        yield synced
        yield from self._worker.change(lambda store: store.set_forced(ledger, synced.result))
        return synced.result

    # ---- the end ------------------------------------------------------------------------------

    def await_durable_end(self, metadata: LedgerMetadata) -> Task[LedgerRecording]:
        """Wait until a recording has stopped and all of it is on storage, and return it.

        What a power cut may have torn at its end is cut. If others store the ledger, too, this
        archive has lost entries then, or if less is left than it had on storage.
        """
        yield from self._force(metadata)
        ledger, recording_id = metadata.ledger, metadata.recording_id
        first_torn_position = self._sound_ends.get(recording_id)
        if first_torn_position is not None:
            end = self._catalog.stop_position(recording_id)
            self._errors.record(
                "ledger cut",
                f"ledger {ledger}: recording {recording_id} ends at {first_torn_position}, not at"
                f" {end}: its last entries were not written whole",
            )
            yield from self._worker.change(lambda store: store.lose(ledger, first_torn_position))
            yield from self._recordings.changes.await_disk()
            self._catalog.set_stop_position(recording_id, first_torn_position)
            yield from self._worker.call(lambda: force_recording(self._archive_dir, recording_id))
            self._sound_ends.pop(recording_id, None)
        return self.recording(metadata)

    def _force(self, metadata: LedgerMetadata) -> Task[None]:
        """Wait until a recording has stopped and all of it is on storage; find its sound end."""
        ledger, recording_id = metadata.ledger, metadata.recording_id
        while self._recordings.session(recording_id) is not None:
            yield Pause()
        if recording_id in self._forced:
            return
        recording = self.recording(metadata)
        end = recording.descriptor.stop_position
        known = yield from self._worker.forced(ledger)
        first_torn_position = None
        # As long as the machine runs, nothing is lost that was written.
        if known is None or known.boot != boot_id():
            forced = recording.descriptor.start_position if known is None else known.position
            first_torn_position = yield from self._worker.call(
                lambda: recording.first_torn_position(end, forced)
            )
        yield from self._worker.call(lambda: force_recording(self._archive_dir, recording_id))
        if known is not None and end < known.position:
            self._errors.record(
                "ledger has lost entries",
                f"ledger {ledger}: recording {recording_id} ends at {end}, and was on storage up to"
                f" {known.position}: restore the directory from a backup, or recover the ledger in"
                " another archive that stores it",
            )
            yield from self._worker.change(lambda store: store.lose(ledger, end))
        elif first_torn_position is None:
            yield from self._worker.change(lambda store: store.set_forced(ledger, end))
        else:
            self._sound_ends[recording_id] = first_torn_position
        self._forced.add(recording_id)

    def await_live_or_durable(self, metadata: LedgerMetadata) -> Task[None]:
        """Wait until a recording, which may begin or end now, is in progress or on storage.

        Nothing is cut: what may be torn at its end only does not count.
        """
        recording_id = metadata.recording_id
        while recording_id != NULL_VALUE and self.session(recording_id) is None:
            if self._recordings.session(recording_id) is not None:
                yield Pause()
            elif recording_id not in self._forced:
                yield from self._force(metadata)
            else:
                return

    def forget_durable_end(self, metadata: LedgerMetadata) -> None:
        """Note that a recording continues: its stop position has to be forced again."""
        self._forced.discard(metadata.recording_id)
        self._growing[metadata.recording_id] = metadata.ledger

    def confirmed_end(self, metadata: LedgerMetadata) -> Task[int]:
        """Return the position up to which the entries of a recording confirm it, bytes."""
        if metadata.recording_id == NULL_VALUE:
            return 0
        recording, limit = self.recording(metadata), self.end(metadata)
        return (yield from self._worker.call(lambda: recording.confirmed_end(limit)))

    def store_replica(
        self,
        metadata: LedgerMetadata,
        replica: Replica,
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
        ledger = metadata.ledger
        end = (yield from self.last_entry(metadata)) if is_closed else None
        yield from self._worker.change(
            lambda store: store.set_replica(ledger, replica, end, forced)
        )
        yield from self._recordings.changes.await_disk()
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
            yield from await_future(self._purge(metadata.recording_id).counted)
        except ArchiveError as error:
            raise ArchiveError(
                f"ledger {metadata.ledger} is not deleted: {error}", error.error_code
            ) from error

    def truncate(self, metadata: LedgerMetadata, position: int) -> Task[None]:
        """Truncate the recording of a ledger, and wait until its files are (ArchiveError)."""
        ledger = metadata.ledger
        # First: less than was on storage would be a loss.
        yield from self._worker.change(lambda store: store.set_forced(ledger, position))
        yield from self._recordings.changes.await_disk()
        try:
            yield from await_future(self._truncate(metadata.recording_id, position).deleted)
        except ArchiveError as error:
            raise ArchiveError(
                f"cannot mirror ledger {metadata.ledger}: {error}", error.error_code
            ) from error
        finally:
            self._marks.pop(metadata.recording_id, None)
