"""Recordings: subscriptions, and a session for each of their images.

A start-recording request adds a subscription; each of its images becomes a recording: an entry of
the catalog, a position counter, and a session of the native recorder, which reports when it has
stopped. The image of an extend-recording request extends a recording that has stopped. With
auto-stop, the first recording that ends stops the subscription.

A stop, whatever its reason, records what connected publications had accepted (`recording_session`),
also of images whose session has not begun: those that wait for the disk or for the files of an
extension, and those that the driver has and of which the archive is not notified yet.

The stream of an image that is not recorded, or no longer, is read and discarded by the recorder as
long as its subscription is open, so that its publisher does not wait for the archive.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.driver_streams import SETTLE_NS, DriverStreams, StopPoint
from aerotape.archive.recording.extension import (
    preparation,
    refuse_image,
    refuse_request,
    too_many,
)
from aerotape.archive.recording.recording_session import (
    RecordingSession,
    extended_session,
    new_session,
)
from aerotape.archive.recording.storage import (
    CatalogChanges,
    Refusal,
    StorageSpace,
    why_failed,
)
from aerotape.archive.recording.subscriptions import (
    Arrival,
    RecordedSubscription,
    RecordedSubscriptions,
)
from aerotape.clock import epoch_ms
from aerotape.codecs.generated.archive import RecordingSignal, SourceLocation
from aerotape.durability import Durability, OnSynced
from aerotape.errors import AerotapeError, ArchiveError, ClosedError
from aerotape.protocol import ErrorCode
from aerotape.units import MAX_LONG
from aerotape.waiting import SOON_NS

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
    from aerotape.catalog.file.catalog import Catalog


LOGGER = logging.getLogger(__name__)
IsOver = Callable[[], bool]


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
    changes: CatalogChanges
    locks: SegmentLocks
    files: FileWorker
    session_counter: Counter
    errors: ErrorLog
    _sessions: dict[int, RecordingSession] = field(default_factory=dict, init=False)
    _starting: list[RecordingSession] = field(default_factory=list, init=False)
    _stopping: list[RecordingSession] = field(default_factory=list, init=False)
    _arrivals: list[Arrival] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._streams = DriverStreams(self.client)
        self.subscriptions = RecordedSubscriptions(
            self.client,
            self.mailbox,
            self.errors,
            self._streams,
            retry_timeout_ns=self.config.connect_timeout_ns,
            announce_timeout_ns=self.config.message_timeout_ns,
        )

    # ---- queries ------------------------------------------------------------------------------

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: responses of the driver are pending."""
        if self._starting or self._stopping or any(each.is_waiting for each in self._arrivals):
            return SOON_NS
        return self.subscriptions.wants_within_ns

    @property
    def is_idle(self) -> bool:
        """Whether nothing is recorded or about to be."""
        return not (self._sessions or self._arrivals or self.subscriptions.wants_within_ns)

    def session(self, recording_id: int) -> RecordingSession | None:
        """Return the session of a recording that is in progress."""
        return self._sessions.get(recording_id)

    def __iter__(self) -> Iterator[RecordingSession]:
        return iter(list(self._sessions.values()))

    def _too_many(self, count: int) -> Refusal | None:
        return too_many(count, self.config.max_concurrent_recordings)

    def _refuse_extension(self, recording_id: int, stream_id: int) -> Refusal | None:
        """Return the refusal to extend a recording now; None when it can be extended."""
        return refuse_request(
            self.catalog,
            recording_id,
            stream_id,
            is_recorded=recording_id in self._sessions
            or any(
                each.prepared is not None and each.subscription.extends == recording_id
                for each in self._arrivals
            ),
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

        A subscription to it that records nothing, because recordings were refused or have failed,
        is replaced.

        Args:
            extends: as in RecordedSubscription.
            durability: as in RecordedSubscription.

        Raises:
            ArchiveError: it is refused.
            ConfigurationError: not a channel URI.
        """
        replaced = self.subscriptions.find_channel(stream_id, channel)
        if replaced is not None and not (replaced.unrecorded and replaced.references == 1):
            replaced = None
        active = max(len(self.subscriptions) - (replaced is not None), len(self._sessions))
        refusal = (
            self._too_many(active)
            or (None if extends is None else self._refuse_extension(extends, stream_id))
            or self.storage.refuse()
        )
        if refusal is not None:
            code, message = refusal
            raise ArchiveError(message, code)
        if replaced is not None:
            self.subscriptions.close_one(replaced)
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
        """Record an image that has become available on one of the subscriptions."""
        subscription = self.subscriptions.get(image.subscription_registration_id)
        announce = self.subscriptions.announce
        if subscription is None or not announce(subscription, image.correlation_id):
            self._discard(image)
            return
        arrival = Arrival(subscription, image)
        if subscription.is_stopping:
            arrival.stop_point = self._streams.stop_point(image, subscription.channel)
        self._arrivals.append(arrival)
        self.changes.run_when_disk_responds(partial(self._begin, arrival))

    def _begin(self, arrival: Arrival) -> None:
        subscription, image = arrival.subscription, arrival.image
        if arrival.is_over(self._streams):
            self._leave(arrival)
            return
        try:
            if self._is_former(arrival):
                self._leave(arrival)
                return
            recording_id = subscription.extends
            if recording_id is None:
                refusal = self._too_many(len(self._sessions)) or self.storage.refuse()
                if refusal is None:
                    self._add(arrival, new_session(self, subscription, image))
            elif self._is_held_up(arrival):
                arrival.is_waiting, refusal = True, None
            else:
                refusal = self._refuse_image(subscription, image, recording_id)
                if refusal is None:
                    prepare = preparation(self, subscription, image, recording_id)
                    self.locks.hold([recording_id])
                    arrival.prepared = self.files.submit(prepare)
        except (AerotapeError, OSError) as error:
            refusal = why_failed(error)
        if refusal is not None:
            self._reject(arrival, refusal)

    def _is_former(self, arrival: Arrival) -> bool:
        """Whether an image is of the closed publication whose recording it would extend.

        The driver may have connected it at a position that a subscriber had before.
        """
        recording_id, image = arrival.subscription.extends, arrival.image
        if recording_id is None or not self.catalog.has_recording(recording_id):
            return False
        descriptor = self.catalog.descriptor(recording_id)
        return (
            image.session_id == descriptor.session_id
            and image.join_position != descriptor.stop_position
            and self._streams.is_closed(image)
        )

    def _is_held_up(self, arrival: Arrival) -> bool:
        """Whether the same subscription extends the recording by an image that has nothing.

        The driver may have connected it to the publication whose recording it extends, which was
        being closed.
        """
        earlier: list[Arrival | RecordingSession]
        earlier = [each for each in self._arrivals if each is not arrival and each.prepared]
        if (session := self._sessions.get(arrival.subscription.extends or 0)) is not None:
            earlier.append(session)
        return any(
            each.subscription is arrival.subscription and self._streams.has_nothing(each.image)
            for each in earlier
        )

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

    def _extend(self, arrival: Arrival, prepared: Future[None]) -> None:
        """Begin to record an image once the files are prepared, if that is still possible."""
        subscription, image = arrival.subscription, arrival.image
        recording_id = subscription.extends
        assert recording_id is not None
        arrival.prepared = None
        self.locks.release([recording_id])
        if arrival.is_over(self._streams):
            self._leave(arrival)
            return
        try:
            prepared.result()
            refusal = self._refuse_image(subscription, image, recording_id)
            if refusal is None:
                self._add(arrival, extended_session(self, subscription, image, recording_id))
        except Exception as error:
            refusal = why_failed(error)
        if refusal is not None:
            self._reject(arrival, refusal)

    def _reject(self, arrival: Arrival, refusal: Refusal) -> None:
        subscription = arrival.subscription
        subscription.unrecorded = refusal[1]
        self.errors.record("stream not recorded", f"{subscription.original_channel}: {refusal[1]}")
        subscription.observer.on_failed(*refusal)
        if subscription.auto_stop and subscription.extends is not None:
            self._stop(subscription)
        self._leave(arrival)

    def _leave(self, arrival: Arrival) -> None:
        self._arrivals.remove(arrival)
        self._discard(arrival.image)
        self.subscriptions.release(arrival.subscription)

    def _discard(self, image: Image) -> None:
        """Have the recorder read an image until it ends, so that its publisher need not wait."""
        try:
            self.recorder.discard(image)
        except ClosedError:
            image.release()

    def _add(self, arrival: Arrival, session: RecordingSession) -> None:
        """Begin a session, which takes over the reference of its image."""
        self._arrivals.remove(arrival)
        self._sessions[session.recording_id] = session
        self.session_counter.add(1)
        self._starting.append(session)
        if arrival.stop_point is not None:
            self._stop_session(session, arrival.stop_point)

    # ---- the duty cycle -----------------------------------------------------------------------

    def do_work(self) -> None:
        """Poll the driver for subscriptions and counters; record images that are prepared."""
        self.subscriptions.do_work()
        for arrival in [each for each in self._arrivals if each.is_waiting]:
            arrival.is_waiting = False
            self.changes.run_when_disk_responds(partial(self._begin, arrival))
        prepared = [
            (arrival, arrival.prepared)
            for arrival in self._arrivals
            if arrival.prepared is not None and arrival.prepared.done()
        ]
        if (prepared or self._starting) and self.changes.does_disk_respond():
            for extension in prepared:
                self._extend(*extension)
            for session in self._starting:
                self.poll_session(session)
            self._starting = [session for session in self._starting if session.is_starting]
        if self._stopping:
            timeout_ns = self.config.message_timeout_ns
            self._stopping = [
                session
                for session in self._stopping
                if not session.advance_stop(self.recorder, self._streams, timeout_ns)
            ]

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

    def stop_channel(self, stream_id: int, channel: str) -> IsOver | None:
        """Stop recording a channel and stream.

        Returns:
            Whether all of it has been recorded, to be called until it has; None: not recorded.

        Raises:
            ConfigurationError: not a channel URI.
        """
        return self._stop_found(self.subscriptions.find_channel(stream_id, channel))

    def stop_subscription(
        self, registration_id: int, settle_ns: int = SETTLE_NS
    ) -> IsOver | None:
        """Stop recording a subscription, as `stop_channel` does.

        Args:
            settle_ns: as in `DriverStreams.stop_point`.
        """
        return self._stop_found(self.subscriptions.find(registration_id), settle_ns)

    def stop_identity(self, recording_id: int) -> IsOver | None:
        """Stop one recording and its subscription, as `stop_channel` does."""
        session = self._sessions.get(recording_id)
        if session is None:
            return None
        self._stop_session(session)
        subscription = self.subscriptions.find(session.subscription.registration_id)
        if subscription is None:
            return None
        self.subscriptions.unlist(subscription)
        self.subscriptions.release_request(subscription)
        return lambda: self._sessions.get(recording_id) is not session

    def _stop_found(
        self, found: RecordedSubscription | None, settle_ns: int = SETTLE_NS
    ) -> IsOver | None:
        if found is None:
            return None
        self._stop(found, settle_ns)
        return lambda: found.references <= 0

    def stop_all(self) -> None:
        """Stop recording; what was accepted by now is recorded in later duty cycles."""
        with self._streams.snapshot():
            for subscription in self.subscriptions:
                self._stop(subscription)

    def _stop(self, subscription: RecordedSubscription, settle_ns: int = SETTLE_NS) -> None:
        # Before the driver's list of images is read: it is later than the request.
        for session in self:
            if session.subscription is subscription:
                self._stop_session(session, settle_ns=settle_ns)
        for arrival in self._arrivals:
            if arrival.subscription is subscription and arrival.stop_point is None:
                arrival.stop_point = self._streams.stop_point(arrival.image, subscription.channel)
        self.subscriptions.stop(subscription)

    def _stop_session(
        self, session: RecordingSession, point: StopPoint | None = None, settle_ns: int = SETTLE_NS
    ) -> None:
        if session.stop_point is None:
            image, channel = session.image, session.subscription.channel
            if session.subscription.durability is not None:
                settle_ns = 0  # its writer waits for acknowledgements, not for arrival
            session.stop(point or self._streams.stop_point(image, channel, settle_ns))
            self._stopping.append(session)

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
        wanted = session.stop_point
        if message is not None:
            subscription.unrecorded = message
            self.errors.record("recording failed", message)
            subscription.observer.on_failed(error_code, message)
            if error_code == ErrorCode.STORAGE_SPACE:
                self.storage.watch()
        elif wanted is not None and position < (wanted.position or 0) < MAX_LONG:
            LOGGER.warning(
                "recording %d was stopped at position %d: its publication had accepted messages up"
                " to position %d, which the archive has not received in time",
                *(recording_id, position, wanted.position),
            )
        session.on_synced(position, message, is_final=True)
        session.send_signal(position, RecordingSignal.STOP)
        is_last = not any(
            each.is_waiting for each in self._arrivals if each.subscription is subscription
        )
        if subscription.auto_stop and is_last and not subscription.is_stopping:
            self._stop(subscription)
        if session.is_starting:
            self._discard(session.image)
        if session in self._stopping:
            self._stopping.remove(session)
        self.subscriptions.release(subscription)
        session.close()
        self.session_counter.add(-1)

    def close(self) -> None:
        """Release what the recorder does not own; its last events have been handled."""
        for arrival in self._arrivals:
            arrival.image.release()
        self._arrivals.clear()
        for session in self:
            if session.is_starting:
                self.on_stopped(session.recording_id, session.join_position)
        self.subscriptions.close()
