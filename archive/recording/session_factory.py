"""Recording sessions from images: of new recordings, and of recordings that are extended.

A new recording is added to the catalog. One that is extended is first prepared: its files have to
end at its stop position. Either is given a position counter.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape import counter_keys
from aerotape.archive.recording.extension import clear_stale_tail
from aerotape.archive.recording.recording_session import RecordingSession
from aerotape.catalog.forcing import force_segments
from aerotape.catalog.indexes import prepare_extension
from aerotape.catalog.time_index.file import Provenance, time_index_path
from aerotape.clock import epoch_ms
from aerotape.errors import AerotapeError
from aerotape.worker_tasks import TimeIndexTask

if TYPE_CHECKING:
    from aerotape._native import AeronClient, Image
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.recording.subscriptions import RecordedSubscription
    from aerotape.catalog.file.catalog import Catalog

LOGGER = logging.getLogger(__name__)


@dataclass(eq=False, kw_only=True)
class RecordingSessionFactory:
    """Creates the sessions of an archive's recordings."""

    config: ArchiveConfig
    archive_id: int
    archive_dir: Path
    client: AeronClient
    catalog: Catalog

    def new_recording(self, subscription: RecordedSubscription, image: Image) -> RecordingSession:
        """Add a recording of an image to the catalog.

        Raises:
            AerotapeError: the catalog cannot be written, or the counter not be requested.
        """
        start_timestamp_ms = epoch_ms()
        recording_id = self.catalog.add_recording(
            start_position=image.join_position,
            start_timestamp_ms=start_timestamp_ms,
            initial_term_id=image.initial_term_id,
            segment_file_length=max(self.config.segment_file_length, image.term_buffer_length),
            term_buffer_length=image.term_buffer_length,
            mtu_length=image.mtu_length,
            session_id=image.session_id,
            stream_id=subscription.stream_id,
            stripped_channel=subscription.stripped_channel,
            original_channel=subscription.original_channel,
            source_identity=image.source_identity,
        )
        provenance = Provenance(recording_id, start_timestamp_ms, 0, 0, image.session_id)
        time_index = self._time_index(provenance, is_new=True)
        return self._session(subscription, image, recording_id, time_index)

    def preparation(
        self, subscription: RecordedSubscription, image: Image, recording_id: int
    ) -> Callable[[], TimeIndexTask | None]:
        """Return a call that prepares the files of a stopped recording for an image.

        It may be made in any thread, and raises StorageError. What it returns is for
        `extended_recording`.
        """
        entry = self.catalog.entry(recording_id)
        now_ms = epoch_ms()
        provenance = Provenance(
            recording_id,
            entry.descriptor.start_timestamp_ms,
            subscription.observer.session_id,
            subscription.observer.correlation_id,
            image.session_id,
        )

        def prepare() -> TimeIndexTask | None:
            for moved in clear_stale_tail(self.archive_dir, entry.descriptor, now_ms):
                LOGGER.warning("recording %d is extended: %s", recording_id, moved)
            if subscription.durability is not None:
                # What precedes the extension is counted as durable.
                force_segments(self.archive_dir, recording_id)
            time_index = self._time_index(provenance, is_new=False)
            if time_index is not None:
                problem = prepare_extension(self.archive_dir, entry, provenance)
                if problem:
                    LOGGER.warning("recording %d: %s", recording_id, problem)
            return time_index

        return prepare

    def extended_recording(
        self,
        subscription: RecordedSubscription,
        image: Image,
        recording_id: int,
        time_index: TimeIndexTask | None,
    ) -> RecordingSession:
        """Mark a stopped recording as active again, now of an image.

        Raises:
            AerotapeError: the catalog cannot be written, or the counter not be requested.
        """
        self.catalog.extend_recording(
            recording_id,
            control_session_id=subscription.observer.session_id,
            correlation_id=subscription.observer.correlation_id,
            session_id=image.session_id,
        )
        return self._session(subscription, image, recording_id, time_index)

    def _time_index(self, provenance: Provenance, *, is_new: bool) -> TimeIndexTask | None:
        config = self.config
        if not config.time_index_interval_ns:
            return None
        path = time_index_path(self.archive_dir, provenance.recording_id)
        return TimeIndexTask(
            str(path),
            provenance.encode(),
            is_new,
            config.time_index_interval_ns,
            config.time_index_length,
        )

    def _session(
        self,
        subscription: RecordedSubscription,
        image: Image,
        recording_id: int,
        time_index: TimeIndexTask | None,
    ) -> RecordingSession:
        # The catalog was written first: clients that see a counter may rely on its entry.
        session_id = image.session_id
        pending_confirmed = None
        try:
            if subscription.durability is not None:
                # What is confirmed must be found again.
                self.catalog.force()
                where = self.archive_id, recording_id, subscription.durability.key
                pending_confirmed = self.client.async_add_counter(
                    counter_keys.CounterType.CONFIRMED_POSITION,
                    counter_keys.confirmed_position_key(*where),
                    counter_keys.confirmed_position_label(*where),
                )
            pending_counter = self.client.async_add_counter(
                counter_keys.CounterType.RECORDING_POSITION,
                counter_keys.recording_position_key(
                    self.archive_id, recording_id, session_id, image.source_identity
                ),
                counter_keys.recording_position_label(
                    self.archive_id,
                    recording_id,
                    session_id,
                    subscription.stream_id,
                    subscription.stripped_channel,
                ),
            )
        except AerotapeError:
            if pending_confirmed is not None:
                pending_confirmed.cancel()
            # Nothing was recorded: the next start need not search for the end.
            self.catalog.recording_stopped(recording_id, image.join_position, epoch_ms())
            raise
        descriptor = self.catalog.descriptor(recording_id)
        return RecordingSession(
            subscription,
            image,
            recording_id,
            start_position=descriptor.start_position,
            segment_file_length=descriptor.segment_file_length,
            pending_counter=pending_counter,
            pending_confirmed=pending_confirmed,
            time_index=time_index,
        )
