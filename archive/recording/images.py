"""What becomes of an image that is to be recorded: a recording, a part of one, or a refusal.

A new recording is entered into the catalog. One that is extended is first made to end at its stop
position, files and all, which a file system may take long for. Either gets a position counter.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.archive import counters
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.extension import clear_behind, refuse_image, refuse_request
from aerotape.archive.recording.limits import RecordingLimits
from aerotape.archive.recording.recording_session import (
    RecordingSession,
    RecordingSubscription,
    TimeIndexRequest,
)
from aerotape.archive.recording.storage_space import Refusal, is_out_of_space
from aerotape.catalog.segment_files import MAX_LONG
from aerotape.catalog.time_index.file import Provenance, time_index_path
from aerotape.catalog.time_index.upkeep import prepare_extension
from aerotape.errors import AerotapeError
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from concurrent.futures import Future

    from aerotape._native import AeronClient, Image
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.recording.segment_deletion import SegmentDeletions
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.file.entries import CatalogEntry

LOGGER = logging.getLogger(__name__)


class RecordingImages:
    """Makes sessions of images."""

    def __init__(
        self,
        *,
        config: ArchiveConfig,
        archive_id: int,
        archive_dir: Path,
        client: AeronClient,
        catalog: Catalog,
        limits: RecordingLimits,
        deletions: SegmentDeletions,
        errors: ErrorLog,
        epoch_ms: Callable[[], int],
        sessions: Mapping[int, RecordingSession],
        begin: Callable[[RecordingSession], None],
        auto_stop: Callable[[RecordingSubscription], None],
    ) -> None:
        """Begin without images.

        Args:
            epoch_ms: milliseconds since 1970, for the catalog's timestamps.
            sessions: those in progress, by recording id.
            begin: takes a new session.
            auto_stop: closes a subscription whose image was refused.
        """
        self._config = config
        self._archive_id = archive_id
        self._archive_dir = archive_dir
        self._client = client
        self._catalog = catalog
        self._limits = limits
        self._deletions = deletions
        self._errors = errors
        self._epoch_ms = epoch_ms
        self._sessions = sessions
        self._begin = begin
        self._auto_stop = auto_stop
        # Images that are to go on with a recording once nothing is left behind its end.
        self._clearing: list[tuple[RecordingSubscription, Image, Future[bytes | None]]] = []

    def record(self, source: RecordingSubscription, image: Image) -> None:
        """Begin to record an image, or release it and say why it is refused."""
        try:
            if source.extends is None:
                refusal = self._limits.too_many(len(self._sessions)) or self._limits.low_storage()
                if refusal is None:
                    self._add_recording(source, image)
            else:
                refusal = self._refuse_image(source, image, source.extends)
                if refusal is None:
                    self._clear_behind(source, image, source.extends)
        except (AerotapeError, OSError) as error:
            refusal = self._why_failed(error)
        if refusal is not None:
            self._reject(source, image, refusal)

    def refuse_extension(self, recording_id: int, stream_id: int) -> Refusal | None:
        """Say why a recording cannot be extended as things stand; None when it can."""
        return refuse_request(
            self._catalog,
            recording_id,
            stream_id,
            is_recorded=recording_id in self._sessions
            or any(source.extends == recording_id for source, _, _ in self._clearing),
            deleted_to=(
                MAX_LONG
                if self._deletions.is_held(recording_id)
                else self._deletions.end_position(recording_id)
            ),
        )

    def do_work(self) -> None:
        """Go on with images whose recordings have been made ready."""
        for clearing in [each for each in self._clearing if each[2].done()]:
            self._clearing.remove(clearing)
            source, image, future = clearing
            assert source.extends is not None
            self._deletions.release([source.extends])
            if source.is_stopping:
                image.release()
                continue
            try:
                time_index_header = future.result()
                # Others may have been faster.
                refusal = self._refuse_image(source, image, source.extends)
                if refusal is None:
                    self._extend_recording(source, image, source.extends, time_index_header)
            except Exception as error:
                refusal = self._why_failed(error)
            if refusal is not None:
                self._reject(source, image, refusal)

    def close(self) -> None:
        """Give back the images that wait."""
        for _, image, _ in self._clearing:
            image.release()
        self._clearing.clear()

    # ---- within --------------------------------------------------------------------------------

    @staticmethod
    def _why_failed(error: Exception) -> Refusal:
        if is_out_of_space(error):
            return ErrorCode.STORAGE_SPACE, (
                f"the stream cannot be recorded: {error}: free space in the archive directory"
            )
        return ErrorCode.GENERIC, f"the stream cannot be recorded: {error}"

    def _reject(self, source: RecordingSubscription, image: Image, refusal: Refusal) -> None:
        image.release()
        self._errors.record("stream not recorded", f"{source.original_channel}: {refusal[1]}")
        source.requester.send_error(source.correlation_id, *refusal)
        if source.auto_stop and source.extends is not None:
            self._auto_stop(source)

    def _refuse_image(
        self, source: RecordingSubscription, image: Image, recording_id: int
    ) -> Refusal | None:
        # As for the request, once more: it may be long since.
        return (
            self.refuse_extension(recording_id, source.stream_id)
            or self._limits.too_many(len(self._sessions))
            or self._limits.low_storage()
            or refuse_image(image, self._catalog.descriptor(recording_id))
        )

    def _clear_behind(self, source: RecordingSubscription, image: Image, recording_id: int) -> None:
        archive_dir, entry = self._archive_dir, self._catalog.entry(recording_id)
        now_ms = self._epoch_ms()
        provenance = Provenance(
            recording_id,
            entry.descriptor.start_timestamp_ms,
            source.requester.session_id,
            source.correlation_id,
            image.session_id,
        )

        def make_ready() -> bytes | None:
            for kept in clear_behind(archive_dir, entry.descriptor, now_ms):
                LOGGER.warning("recording %d is extended: %s", recording_id, kept)
            return self._prepare_time_index(entry, provenance)

        self._deletions.hold([recording_id])
        self._clearing.append((source, image, self._deletions.submit(make_ready)))

    def _prepare_time_index(self, entry: CatalogEntry, provenance: Provenance) -> bytes | None:
        if not self._config.time_index_interval_ns:
            return None
        problem = prepare_extension(self._archive_dir, entry, provenance)
        if problem:
            LOGGER.warning("recording %d: %s", entry.recording_id, problem)
        return provenance.encode()

    def _extend_recording(
        self,
        source: RecordingSubscription,
        image: Image,
        recording_id: int,
        time_index_header: bytes | None,
    ) -> None:
        descriptor = self._catalog.descriptor(recording_id)
        self._catalog.extend_recording(
            recording_id,
            control_session_id=source.requester.session_id,
            correlation_id=source.correlation_id,
            session_id=image.session_id,
        )
        session = self._add_session(
            source,
            image,
            recording_id,
            start_position=descriptor.start_position,
            segment_file_length=descriptor.segment_file_length,
        )
        session.time_index = self._time_index(recording_id, time_index_header, is_new=False)

    def _add_recording(self, source: RecordingSubscription, image: Image) -> None:
        segment_file_length = max(self._config.segment_file_length, image.term_buffer_length)
        start_timestamp_ms = self._epoch_ms()
        recording_id = self._catalog.add_recording(
            start_position=image.join_position,
            start_timestamp_ms=start_timestamp_ms,
            initial_term_id=image.initial_term_id,
            segment_file_length=segment_file_length,
            term_buffer_length=image.term_buffer_length,
            mtu_length=image.mtu_length,
            session_id=image.session_id,
            stream_id=source.stream_id,
            stripped_channel=source.stripped_channel,
            original_channel=source.original_channel,
            source_identity=image.source_identity,
        )
        session = self._add_session(
            source,
            image,
            recording_id,
            start_position=image.join_position,
            segment_file_length=segment_file_length,
        )
        if self._config.time_index_interval_ns:
            header = Provenance(recording_id, start_timestamp_ms, 0, 0, image.session_id).encode()
            session.time_index = self._time_index(recording_id, header, is_new=True)

    def _time_index(
        self, recording_id: int, header: bytes | None, *, is_new: bool
    ) -> TimeIndexRequest | None:
        if header is None:
            return None
        path, config = time_index_path(self._archive_dir, recording_id), self._config
        return str(path), header, is_new, config.time_index_interval_ns, config.time_index_length

    def _add_session(
        self,
        source: RecordingSubscription,
        image: Image,
        recording_id: int,
        *,
        start_position: int,
        segment_file_length: int,
    ) -> RecordingSession:
        """Have the driver make a counter for what the catalog has: who sees one may rely on it."""
        session_id = image.session_id
        try:
            pending_counter = self._client.async_add_counter(
                counters.CounterType.RECORDING_POSITION,
                counters.recording_position_key(
                    self._archive_id, recording_id, session_id, image.source_identity
                ),
                counters.recording_position_label(
                    self._archive_id,
                    recording_id,
                    session_id,
                    source.stream_id,
                    source.stripped_channel,
                ),
            )
        except AerotapeError:
            # Its end is known, and the next start must not look for it.
            self._catalog.recording_stopped(recording_id, image.join_position, self._epoch_ms())
            raise
        session = RecordingSession(
            source,
            image,
            recording_id,
            start_position=start_position,
            segment_file_length=segment_file_length,
            pending_counter=pending_counter,
        )
        self._begin(session)
        return session
