"""Recordings: subscriptions, and a session for each of their images.

A start-recording request adds a subscription; each of its images becomes a recording: an entry of
the catalog, a position counter, and a session of the native recorder, which reports when it has
stopped. The image of an extend-recording request extends a recording that has stopped. With
auto-stop, the first recording that ends closes the subscription.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aerotape.archive.agent import SOON_NS
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.durability import Durability, OnSynced
from aerotape.archive.recording.extension import refuse_image, refuse_request
from aerotape.archive.recording.recording_session import (
    RecordingSession,
    RecordingSessionState,
)
from aerotape.archive.recording.session_factory import RecordingSessionFactory
from aerotape.archive.recording.storage import (
    Refusal,
    StorageGate,
    StorageSpace,
    is_out_of_space,
)
from aerotape.archive.recording.subscriptions import (
    RecordedSubscription,
    RecordedSubscriptions,
)
from aerotape.clock import epoch_ms
from aerotape.codecs.generated.archive import RecordingSignal, SourceLocation
from aerotape.errors import AerotapeError, ArchiveError
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from concurrent.futures import Future

    from aerotape._native import (
        AeronClient,
        Counter,
        Image,
        Mailbox,
        SessionWorker,
    )
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.recording.file_worker import FileWorker
    from aerotape.archive.recording.observer import RecordingObserver
    from aerotape.archive.recording.segments.locks import SegmentLocks
    from aerotape.archive.worker_tasks import TimeIndexTask
    from aerotape.catalog.file.catalog import Catalog


class _Extension(NamedTuple):
    """An image that waits until the files of the recording that it extends are prepared."""

    subscription: RecordedSubscription
    image: Image
    recording_id: int
    prepared: Future[TimeIndexTask | None]


@dataclass(eq=False, kw_only=True)
class Recordings:
    """All subscriptions and sessions of the archive's recordings."""

    config: ArchiveConfig
    archive_id: int
    archive_dir: Path
    client: AeronClient
    mailbox: Mailbox
    catalog: Catalog
    recorder: SessionWorker
    storage: StorageSpace
    gate: StorageGate
    locks: SegmentLocks
    files: FileWorker
    session_counter: Counter
    errors: ErrorLog
    _sessions: dict[int, RecordingSession] = field(default_factory=dict, init=False)
    _starting: list[RecordingSession] = field(default_factory=list, init=False)
    _extensions: list[_Extension] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.subscriptions = RecordedSubscriptions(
            self.client, self.mailbox, self.errors, self.config.connect_timeout_ns
        )
        self._factory = RecordingSessionFactory(
            config=self.config,
            archive_id=self.archive_id,
            archive_dir=self.archive_dir,
            client=self.client,
            catalog=self.catalog,
        )

    # ---- queries ------------------------------------------------------------------------------

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: responses of the driver are pending."""
        return SOON_NS if self._starting else self.subscriptions.wants_within_ns

    def session(self, recording_id: int) -> RecordingSession | None:
        """Return the session of a recording that is in progress."""
        return self._sessions.get(recording_id)

    def __iter__(self) -> Iterator[RecordingSession]:
        return iter(list(self._sessions.values()))

    def _too_many(self, count: int) -> Refusal | None:
        limit = self.config.max_concurrent_recordings
        if count < limit:
            return None
        return (
            ErrorCode.MAX_RECORDINGS,
            f"max concurrent recordings reached at {limit}: stop one, or raise"
            " aeron.archive.max.concurrent.recordings",
        )

    def _refuse_extension(self, recording_id: int, stream_id: int) -> Refusal | None:
        """Return why a recording cannot be extended now; None when it can."""
        return refuse_request(
            self.catalog,
            recording_id,
            stream_id,
            is_recorded=recording_id in self._sessions
            or any(each.recording_id == recording_id for each in self._extensions),
            deleted_to=self.locks.locked_to(recording_id),
        )

    # ---- start --------------------------------------------------------------------------------

    def start(
        self,
        observer: RecordingObserver,
        *,
        stream_id: int,
        channel: str,
        source_location: SourceLocation,
        auto_stop: bool,
        extends: int | None = None,
        durability: Durability | None = None,
    ) -> RecordedSubscription:
        """Subscribe to a channel; the observer is notified once the driver has added it.

        Args:
            extends: as in RecordedSubscription.
            durability: as in RecordedSubscription.

        Raises:
            ArchiveError: it is refused.
            ConfigurationError: not a channel URI.
        """
        refusal = (
            self._too_many(max(len(self.subscriptions), len(self._sessions)))
            or (None if extends is None else self._refuse_extension(extends, stream_id))
            or self.storage.refuse()
        )
        if refusal is not None:
            code, message = refusal
            raise ArchiveError(message, code)
        subscription = RecordedSubscription(
            observer=observer,
            stream_id=stream_id,
            original_channel=channel,
            source_location=source_location,
            auto_stop=auto_stop,
            extends=extends,
            durability=durability,
        )
        self.subscriptions.add(subscription)
        return subscription

    # ---- images -------------------------------------------------------------------------------

    def on_image(self, image: Image) -> None:
        """Begin to record an image that has become available on one of the subscriptions."""
        subscription = self.subscriptions.get(image.subscription_registration_id)
        if subscription is not None:
            # The observer is notified of the subscription before the recording's signals.
            self.subscriptions.poll(subscription)
        if subscription is None or subscription.is_stopping:
            image.release()
            return
        try:
            refusal = self._record(subscription, image)
        except (AerotapeError, OSError) as error:
            refusal = _why_failed(error)
        if refusal is not None:
            self._reject(subscription, image, refusal)

    def _record(self, subscription: RecordedSubscription, image: Image) -> Refusal | None:
        recording_id = subscription.extends
        if recording_id is None:
            refusal = self._too_many(len(self._sessions)) or self.storage.refuse()
            if refusal is None:
                self._add(self._factory.new_recording(subscription, image))
            return refusal
        refusal = self._refuse_image(subscription, image, recording_id)
        if refusal is None:
            prepare = self._factory.preparation(subscription, image, recording_id)
            self.locks.hold([recording_id])
            prepared = self.files.submit(prepare)
            self._extensions.append(_Extension(subscription, image, recording_id, prepared))
        return refusal

    def _refuse_image(
        self, subscription: RecordedSubscription, image: Image, recording_id: int
    ) -> Refusal | None:
        # The checks of the request again: it may have been long ago.
        return (
            self._refuse_extension(recording_id, subscription.stream_id)
            or self._too_many(len(self._sessions))
            or self.storage.refuse()
            or refuse_image(image, self.catalog.descriptor(recording_id))
        )

    def _extend(self, extension: _Extension) -> None:
        """Begin to record an image once the files are prepared, if that is still possible."""
        subscription, image, recording_id, prepared = extension
        self.locks.release([recording_id])
        if subscription.is_stopping:
            image.release()
            return
        try:
            time_index = prepared.result()
            refusal = self._refuse_image(subscription, image, recording_id)
            if refusal is None:
                self._add(
                    self._factory.extended_recording(subscription, image, recording_id, time_index)
                )
        except Exception as error:
            refusal = _why_failed(error)
        if refusal is not None:
            self._reject(subscription, image, refusal)

    def _reject(self, subscription: RecordedSubscription, image: Image, refusal: Refusal) -> None:
        image.release()
        self.errors.record("stream not recorded", f"{subscription.original_channel}: {refusal[1]}")
        subscription.observer.on_failed(*refusal)
        if subscription.auto_stop and subscription.extends is not None:
            self._auto_stop(subscription)

    def _add(self, session: RecordingSession) -> None:
        session.subscription.references += 1
        self._sessions[session.recording_id] = session
        self.session_counter.add(1)
        self._starting.append(session)

    # ---- the duty cycle -----------------------------------------------------------------------

    def do_work(self) -> None:
        """Poll the driver for subscriptions and counters; record images that are prepared."""
        self.subscriptions.do_work()
        prepared = [each for each in self._extensions if each.prepared.done()]
        if not ((prepared or self._starting) and self.gate.is_open()):
            return
        for extension in prepared:
            self._extensions.remove(extension)
            self._extend(extension)
        if self._starting:
            for session in self._starting:
                self.poll_session(session)
                if session.state is RecordingSessionState.CANCELLED:
                    self.on_stopped(session.recording_id, session.join_position)
            self._starting = [session for session in self._starting if session.is_starting]

    def poll_session(self, session: RecordingSession) -> None:
        """Pass a session to the recorder if the driver has added its counter."""
        if not session.is_starting:
            return
        try:
            session.begin(self.recorder, with_events=self.config.recording_events_enabled)
        except AerotapeError as error:
            self.on_stopped(
                session.recording_id,
                session.join_position,
                ErrorCode.GENERIC,
                f"recording {session.recording_id} did not begin: {error}",
            )

    # ---- durability ---------------------------------------------------------------------------

    def request_sync(self, recording_id: int, on_synced: OnSynced) -> bool:
        """Make durable what has been recorded; `on_synced` is called when that is done.

        Returns:
            False, and nothing is done, when the recording is not in progress or not synced.
        """
        session = self._sessions.get(recording_id)
        if session is None or not (session.subscription.durability or self.config.file_sync_level):
            return False
        session.request_sync(self.recorder, on_synced)
        return True

    def on_synced(self, recording_id: int, position: int) -> None:
        """Report a requested sync to its callers."""
        session = self._sessions.get(recording_id)
        if session is not None:
            session.on_synced(position)

    # ---- stop ---------------------------------------------------------------------------------

    def stop_channel(self, stream_id: int, channel: str) -> bool:
        """Stop recording a channel and stream; False when it is not recorded.

        Raises:
            ConfigurationError: not a channel URI.
        """
        return self._stop_subscription(self.subscriptions.find_channel(stream_id, channel))

    def stop_subscription(self, registration_id: int) -> bool:
        """Stop recording a subscription; False when there is none with this id."""
        return self._stop_subscription(self.subscriptions.find(registration_id))

    def stop_identity(self, recording_id: int) -> bool:
        """Stop one recording and its subscription; False when it is not in progress."""
        session = self._sessions.get(recording_id)
        if session is None:
            return False
        session.stop(self.recorder)
        subscription = self.subscriptions.find(session.subscription.registration_id)
        if subscription is None:
            return False
        self.subscriptions.unlist(subscription)
        self.subscriptions.release(subscription)
        return True

    def _stop_subscription(self, subscription: RecordedSubscription | None) -> bool:
        if subscription is None:
            return False
        self.subscriptions.unlist(subscription)
        self._stop_sessions_of(subscription)
        self.subscriptions.release(subscription)
        return True

    def _stop_sessions_of(self, subscription: RecordedSubscription) -> None:
        subscription.is_stopping = True
        for session in self:
            if session.subscription is subscription:
                session.stop(self.recorder)

    def _auto_stop(self, subscription: RecordedSubscription) -> None:
        self._stop_sessions_of(subscription)
        self.subscriptions.close_one(subscription)

    def on_stopped(
        self,
        recording_id: int,
        position: int,
        error_code: int = ErrorCode.GENERIC,
        message: str | None = None,
    ) -> None:
        """Write the stop position of a recording and notify the observer of STOP.

        Args:
            position: the end of its last whole frame, bytes.
            message: the error that ended it, None for an orderly end.
        """
        session = self._sessions.pop(recording_id, None)
        if session is None:
            return
        subscription = session.subscription
        session.send_begin()
        position = max(position, session.join_position)
        try:
            self.catalog.recording_stopped(recording_id, position, epoch_ms())
        except (AerotapeError, OSError) as error:
            self.errors.record("stop position not written", f"recording {recording_id}: {error}")
        if message is not None:
            self.errors.record("recording failed", message)
            subscription.observer.on_failed(error_code, message)
            if error_code == ErrorCode.STORAGE_SPACE:
                self.storage.watch()
        session.on_synced(position, message, is_final=True)
        session.send_signal(position, RecordingSignal.STOP)
        if subscription.auto_stop and not subscription.is_stopping:
            self._auto_stop(subscription)
        else:
            self.subscriptions.release(subscription)
        session.close()
        self.session_counter.add(-1)

    def close(self) -> None:
        """Release what the recorder does not own; its last events have been handled."""
        for extension in self._extensions:
            extension.image.release()
        self._extensions.clear()
        for session in self:
            if session.is_starting:
                self.on_stopped(session.recording_id, session.join_position)
        self.subscriptions.close()


def _why_failed(error: Exception) -> Refusal:
    what = f"the stream cannot be recorded: {error}"
    if is_out_of_space(error):
        return ErrorCode.STORAGE_SPACE, f"{what}: free space in the archive directory"
    return ErrorCode.GENERIC, what
