"""Recordings as the conductor sees them: subscriptions, and a session for each of their images.

A start-recording request makes a subscription; every image of it becomes a recording of its own:
entered into the catalog, given a position counter, and handed to the native recorder, which says
when it has stopped. The image of an extend-recording request goes on with a recording that has
stopped; from there on it is treated the same. With auto-stop the first recording that ends takes
the subscription with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.archive.error_log import ErrorLog
from aerotape.archive.protocol import ErrorCode
from aerotape.archive.recording.events import recording_events
from aerotape.archive.recording.images import RecordingImages
from aerotape.archive.recording.limits import RecordingLimits
from aerotape.archive.recording.session import (
    RecordingSession,
    RecordingSubscription,
    Requester,
)
from aerotape.archive.recording.storage_space import StorageSpace
from aerotape.archive.recording.subscriptions import RecordingSubscriptions
from aerotape.codecs.archive import RecordingSignal, SourceLocation
from aerotape.errors import AerotapeError, ClosedError

if TYPE_CHECKING:
    from aerotape._native import (
        AeronClient,
        Counter,
        Image,
        Mailbox,
        SessionWorker,
    )
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.recording.segment_deletion import SegmentDeletions
    from aerotape.catalog.catalog import Catalog


class Recordings:
    """All subscriptions and sessions of the archive's recordings."""

    def __init__(
        self,
        *,
        config: ArchiveConfig,
        archive_id: int,
        archive_dir: Path,
        client: AeronClient,
        mailbox: Mailbox,
        catalog: Catalog,
        recorder: SessionWorker,
        storage: StorageSpace,
        deletions: SegmentDeletions,
        session_counter: Counter,
        errors: ErrorLog,
        epoch_ms: Callable[[], int],
    ) -> None:
        """Begin with none.

        Args:
            epoch_ms: milliseconds since 1970, for the catalog's timestamps.
        """
        self.subscriptions = RecordingSubscriptions(
            client, mailbox, errors, config.connect_timeout_ns
        )
        self._limits = RecordingLimits(config.max_concurrent_recordings, storage)
        self._storage = storage
        self._deletions = deletions
        self._config = config
        self._catalog = catalog
        self._recorder = recorder
        self._session_counter = session_counter
        self._errors = errors
        self._epoch_ms = epoch_ms
        self._sessions: dict[int, RecordingSession] = {}
        self._pending_sessions: list[RecordingSession] = []
        self._images = RecordingImages(
            config=config,
            archive_id=archive_id,
            archive_dir=archive_dir,
            client=client,
            catalog=catalog,
            limits=self._limits,
            deletions=deletions,
            errors=errors,
            epoch_ms=epoch_ms,
            sessions=self._sessions,
            begin=self._begin,
            auto_stop=self._auto_stop,
        )

    # ---- what others ask ----------------------------------------------------------------------

    @property
    def wants_soon(self) -> bool:
        """Whether the driver owes an answer."""
        return self.subscriptions.wants_soon or bool(self._pending_sessions)

    def session(self, recording_id: int) -> RecordingSession | None:
        """Return the session of a recording that is in progress."""
        return self._sessions.get(recording_id)

    def __iter__(self) -> Iterator[RecordingSession]:
        return iter(list(self._sessions.values()))

    def __len__(self) -> int:
        return len(self._sessions)

    def are_segments_changing(self, recording_id: int) -> bool:
        """Whether segment files of a recording are being deleted, moved or cleared."""
        deletions = self._deletions
        return deletions.is_held(recording_id) or deletions.end_position(recording_id) is not None

    # ---- start --------------------------------------------------------------------------------

    def start(
        self,
        requester: Requester,
        correlation_id: int,
        *,
        stream_id: int,
        channel: str,
        source_location: SourceLocation,
        auto_stop: bool,
    ) -> None:
        """Subscribe to what is to be recorded; answered once the driver has agreed."""
        refusal = (
            self._limits.too_many(len(self.subscriptions), len(self._sessions))
            or self._limits.low_storage()
        )
        if refusal is not None:
            requester.send_error(correlation_id, *refusal)
            return
        self.subscriptions.add(
            requester,
            correlation_id,
            stream_id=stream_id,
            channel=channel,
            source_location=source_location,
            auto_stop=auto_stop,
        )

    def extend(
        self,
        requester: Requester,
        correlation_id: int,
        *,
        recording_id: int,
        stream_id: int,
        channel: str,
        source_location: SourceLocation,
        auto_stop: bool,
    ) -> RecordingSubscription | None:
        """Subscribe to what a stopped recording is to go on with; answered as `start`.

        Returns:
            The subscription; None when it was refused, which has been answered.
        """
        refusal = (
            self._limits.too_many(len(self.subscriptions), len(self._sessions))
            or self._images.refuse_extension(recording_id, stream_id)
            or self._limits.low_storage()
        )
        if refusal is not None:
            requester.send_error(correlation_id, *refusal)
            return None
        return self.subscriptions.add(
            requester,
            correlation_id,
            stream_id=stream_id,
            channel=channel,
            source_location=source_location,
            auto_stop=auto_stop,
            extends=recording_id,
        )

    # ---- images -------------------------------------------------------------------------------

    def on_image(self, image: Image) -> None:
        """Begin to record an image that has come up on one of the subscriptions."""
        source = self.subscriptions.get(image.subscription_registration_id)
        if source is not None and source.pending is not None:
            # The client learns of the subscription before it learns of the recording.
            self.subscriptions.poll(source)
        if source is None or source.is_stopping:
            image.release()
            return
        self._images.record(source, image)

    def _begin(self, session: RecordingSession) -> None:
        session.source.references += 1
        self._sessions[session.recording_id] = session
        self._session_counter.add(1)
        self._pending_sessions.append(session)
        # Its thread takes as long to wake up as the driver to make a counter. If it is closed, it
        # says so when it gets the recording.
        with contextlib.suppress(ClosedError):
            self._recorder.expect_recording()

    # ---- the driver's answers -----------------------------------------------------------------

    def do_work(self) -> None:
        """Take the answers that the driver has given since."""
        self.subscriptions.do_work()
        self._images.do_work()
        if self._pending_sessions:
            for session in list(self._pending_sessions):
                self.poll_session(session)

    def poll_session(self, session: RecordingSession) -> None:
        """Hand a session to the recorder if its counter has come."""
        if session.pending_counter is None:
            return
        try:
            counter = session.pending_counter.poll()
        except AerotapeError as error:
            session.pending_counter = None
            what = f"recording {session.recording_id} did not begin: no position counter: {error}"
            self._finish_unstarted(session, what)
            return
        if counter is None and not session.is_stopping:
            return
        if counter is None:
            session.pending_counter.cancel()
            session.pending_counter = None
            self._finish_unstarted(session, None)
            return
        session.pending_counter = None
        session.counter = counter
        self._pending_sessions.remove(session)
        counter.set(session.join_position)
        source = session.source
        image, session.image = session.image, None
        assert image is not None
        events = None
        if self._config.recording_events_enabled:
            events = recording_events(
                recording_id=session.recording_id,
                join_position=session.join_position,
                session_id=image.session_id,
                stream_id=source.stream_id,
                channel=source.original_channel,
                source_identity=image.source_identity,
            )
        try:
            self._recorder.record(
                image,
                counter,
                recording_id=session.recording_id,
                start_position=session.start_position,
                segment_length=session.segment_file_length,
                events=events,
                time_index=session.time_index,
            )
        except AerotapeError as error:
            self._tell_begin(session)
            self.on_stopped(
                session.recording_id,
                session.join_position,
                ErrorCode.GENERIC,
                f"recording {session.recording_id} did not begin: {error}",
            )
            return
        # The recorder need not wait for this.
        self._tell_begin(session)
        if session.is_stopping:
            self._recorder.stop_recording(session.recording_id)

    @staticmethod
    def _tell_begin(session: RecordingSession) -> None:
        """Send START or EXTEND, once: with the counter, or when there will be none."""
        if session.is_begin_told:
            return
        session.is_begin_told = True
        source = session.source
        source.requester.send_signal(
            source.correlation_id,
            session.recording_id,
            source.registration_id,
            session.join_position,
            RecordingSignal.START if source.extends is None else RecordingSignal.EXTEND,
        )

    def _finish_unstarted(self, session: RecordingSession, message: str | None) -> None:
        self._tell_begin(session)
        self._pending_sessions.remove(session)
        if session.image is not None:
            session.image.release()
            session.image = None
        self.on_stopped(session.recording_id, session.join_position, ErrorCode.GENERIC, message)

    # ---- stop ---------------------------------------------------------------------------------

    def stop_channel(self, stream_id: int, channel: str) -> bool:
        """Stop what was started for a channel and stream; False when there is no such thing.

        Raises:
            ConfigurationError: not a channel URI.
        """
        source = self.subscriptions.find_channel(stream_id, channel)
        if source is not None:
            self._stop_source(source)
        return source is not None

    def stop_subscription(self, registration_id: int) -> bool:
        """Stop what was started with this subscription id; False when there is no such thing."""
        source = self.subscriptions.find(registration_id)
        if source is not None:
            self._stop_source(source)
        return source is not None

    def stop_identity(self, recording_id: int) -> bool:
        """Stop one recording and its subscription; False when it is not in progress."""
        session = self._sessions.get(recording_id)
        if session is None:
            return False
        self._stop_session(session)
        source = self.subscriptions.find(session.source.registration_id)
        if source is None:
            return False
        self.subscriptions.unlist(source)
        self.subscriptions.release(source)
        return True

    def _stop_source(self, source: RecordingSubscription) -> None:
        self.subscriptions.unlist(source)
        self._stop_sessions_of(source)
        self.subscriptions.release(source)

    def _stop_sessions_of(self, source: RecordingSubscription) -> None:
        source.is_stopping = True
        for session in self:
            if session.source is source:
                self._stop_session(session)

    def _stop_session(self, session: RecordingSession) -> None:
        if not session.is_stopping:
            session.is_stopping = True
            if session.counter is not None:
                self._recorder.stop_recording(session.recording_id)
            else:
                # Before the stop is answered, as where the counter is there from the beginning.
                self._tell_begin(session)

    def _auto_stop(self, source: RecordingSubscription) -> None:
        self._stop_sessions_of(source)
        self.subscriptions.close_one(source)

    def on_stopped(
        self, recording_id: int, position: int, error_code: int, message: str | None
    ) -> None:
        """Write down where a recording has ended and tell who started it.

        Args:
            position: the end of its last whole frame, bytes.
            message: what went wrong with which recording, None when nothing did.
        """
        session = self._sessions.pop(recording_id, None)
        if session is None:
            return
        source = session.source
        position = max(position, session.join_position)
        try:
            self._catalog.recording_stopped(recording_id, position, self._epoch_ms())
        except (AerotapeError, OSError) as error:
            self._errors.record("stop position not written", f"recording {recording_id}: {error}")
        if message is not None:
            self._errors.record("recording failed", message)
            source.requester.send_error(source.correlation_id, error_code, message)
            if error_code == ErrorCode.STORAGE_SPACE:
                self._storage.watch()
        source.requester.send_signal(
            source.correlation_id,
            recording_id,
            source.registration_id,
            position,
            RecordingSignal.STOP,
        )
        if source.auto_stop and not source.is_stopping:
            self._auto_stop(source)
        else:
            self.subscriptions.release(source)
        if session.counter is not None:
            session.counter.close()
        self._session_counter.add(-1)

    def close(self) -> None:
        """Give back what the recorder does not hold; its last events have been taken."""
        self._images.close()
        for session in self:
            if session.pending_counter is not None:
                session.pending_counter.cancel()
                session.pending_counter = None
                self._finish_unstarted(session, None)
        self.subscriptions.close()
