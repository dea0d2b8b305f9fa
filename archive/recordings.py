"""Recordings as the conductor sees them: subscriptions, and a session for each of their images.

A start-recording request makes a subscription; every image of it becomes a recording of its own:
entered into the catalog, given a position counter, and handed to the native recorder, which says
when it has stopped. A subscription counts references, one for the request and one for each of its
sessions, and is closed when none is left or, with auto-stop, when its first recording ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.archive import counters
from aerotape.archive.channel_uri import SPY_PREFIX, ChannelUri, recording_key, stripped_channel
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.protocol import ErrorCode
from aerotape.archive.recording_session import (
    RecordingSession,
    RecordingSubscription,
    Requester,
)
from aerotape.codecs.archive import RecordingSignal, SourceLocation
from aerotape.errors import AerotapeError, ConfigurationError

if TYPE_CHECKING:
    from aerotape._native import (
        AeronClient,
        Counter,
        Image,
        Mailbox,
        SessionWorker,
    )
    from aerotape.archive.config import ArchiveConfig
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
        session_counter: Counter,
        errors: ErrorLog,
        epoch_ms: Callable[[], int],
    ) -> None:
        """Begin with none.

        Args:
            epoch_ms: milliseconds since 1970, for the catalog's timestamps.
        """
        self._config = config
        self._archive_id = archive_id
        self._archive_dir = archive_dir
        self._client = client
        self._mailbox = mailbox
        self._catalog = catalog
        self._recorder = recorder
        self._session_counter = session_counter
        self._errors = errors
        self._epoch_ms = epoch_ms
        self._sessions: dict[int, RecordingSession] = {}
        # Those that a client can still find and stop.
        self._by_key: dict[str, RecordingSubscription] = {}
        # Besides these, those whose last sessions are ending.
        self._by_id: dict[int, RecordingSubscription] = {}
        self._pending_subscriptions: list[RecordingSubscription] = []
        self._pending_sessions: list[RecordingSession] = []

    # ---- what others ask ----------------------------------------------------------------------

    @property
    def wants_soon(self) -> bool:
        """Whether the driver owes an answer."""
        return bool(self._pending_subscriptions or self._pending_sessions)

    def session(self, recording_id: int) -> RecordingSession | None:
        """Return the session of a recording that is in progress."""
        return self._sessions.get(recording_id)

    def __iter__(self) -> Iterator[RecordingSession]:
        return iter(list(self._sessions.values()))

    def __len__(self) -> int:
        return len(self._sessions)

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
        limit = self._config.max_concurrent_recordings
        if len(self._by_key) >= limit or len(self._sessions) >= limit:
            requester.send_error(correlation_id, *self._too_many())
            return
        if (low := self._low_storage()) is not None:
            requester.send_error(correlation_id, *low)
            return
        try:
            uri = ChannelUri.parse(channel)
            stripped = stripped_channel(uri)
        except ConfigurationError as error:
            requester.send_error(correlation_id, ErrorCode.GENERIC, str(error))
            return
        key = recording_key(stream_id, uri)
        if key in self._by_key:
            requester.send_error(
                correlation_id,
                ErrorCode.ACTIVE_SUBSCRIPTION,
                f"already being recorded: streamId={stream_id} channel={channel}",
            )
            return
        is_spy = source_location is SourceLocation.LOCAL and uri.is_udp
        pending = self._client.async_add_subscription(
            SPY_PREFIX + stripped if is_spy else stripped, stream_id, self._mailbox
        )
        source = RecordingSubscription(
            requester,
            correlation_id,
            key=key,
            stream_id=stream_id,
            original_channel=channel,
            stripped=stripped,
            auto_stop=auto_stop,
            pending=pending,
        )
        self._by_key[key] = source
        self._by_id[source.registration_id] = source
        self._pending_subscriptions.append(source)

    def _too_many(self) -> tuple[ErrorCode, str]:
        limit = self._config.max_concurrent_recordings
        return ErrorCode.MAX_RECORDINGS, f"{limit} recordings are the most that may run at once"

    def _low_storage(self) -> tuple[ErrorCode, str] | None:
        threshold = self._config.low_storage_space_threshold
        status = os.statvfs(self._archive_dir)
        usable = status.f_bavail * status.f_frsize
        if usable > threshold:
            return None
        return (
            ErrorCode.STORAGE_SPACE,
            f"low storage space: usable={usable} bytes, threshold={threshold} bytes",
        )

    def on_image(self, image: Image) -> None:
        """Begin to record an image that has come up on one of the subscriptions."""
        source = self._by_id.get(image.subscription_registration_id)
        if source is not None and source.pending is not None:
            # The client learns of the subscription before it learns of the recording.
            self._poll_subscription(source)
        if source is None or source.is_stopping:
            image.release()
            return
        refusal: tuple[ErrorCode, str] | None = None
        if len(self._sessions) >= self._config.max_concurrent_recordings:
            refusal = self._too_many()
        else:
            refusal = self._low_storage()
        if refusal is None:
            try:
                self._add_session(source, image)
                return
            except (AerotapeError, OSError) as error:
                refusal = ErrorCode.GENERIC, f"cannot add a recording: {error}"
        image.release()
        self._errors.record("stream not recorded", f"{source.original_channel}: {refusal[1]}")
        source.requester.send_error(source.correlation_id, *refusal)

    def _add_session(self, source: RecordingSubscription, image: Image) -> None:
        segment_file_length = max(self._config.segment_file_length, image.term_buffer_length)
        session_id = image.session_id
        source_identity = image.source_identity
        recording_id = self._catalog.add_recording(
            start_position=image.join_position,
            start_timestamp_ms=self._epoch_ms(),
            initial_term_id=image.initial_term_id,
            segment_file_length=segment_file_length,
            term_buffer_length=image.term_buffer_length,
            mtu_length=image.mtu_length,
            session_id=session_id,
            stream_id=source.stream_id,
            stripped_channel=source.stripped_channel,
            original_channel=source.original_channel,
            source_identity=source_identity,
        )
        pending_counter = self._client.async_add_counter(
            counters.CounterType.RECORDING_POSITION,
            counters.recording_position_key(
                self._archive_id, recording_id, session_id, source_identity
            ),
            counters.recording_position_label(
                self._archive_id,
                recording_id,
                session_id,
                source.stream_id,
                source.stripped_channel,
            ),
        )
        session = RecordingSession(
            source,
            image,
            recording_id,
            segment_file_length=segment_file_length,
            pending_counter=pending_counter,
        )
        source.references += 1
        self._sessions[recording_id] = session
        self._session_counter.add(1)
        self._pending_sessions.append(session)

    # ---- the driver's answers -----------------------------------------------------------------

    def do_work(self) -> None:
        """Take the answers that the driver has given since."""
        for source in list(self._pending_subscriptions):
            self._poll_subscription(source)
        for session in list(self._pending_sessions):
            self.poll_session(session)

    def _poll_subscription(self, source: RecordingSubscription) -> None:
        if source.pending is None:
            return
        try:
            subscription = source.pending.poll()
        except AerotapeError as error:
            source.pending = None
            self._pending_subscriptions.remove(source)
            self._forget(source)
            source.requester.send_error(
                source.correlation_id,
                ErrorCode.GENERIC,
                f"cannot subscribe to {source.original_channel}: {error}",
            )
            return
        if subscription is not None:
            source.pending = None
            source.subscription = subscription
            self._pending_subscriptions.remove(source)
            source.requester.send_ok(source.correlation_id, source.registration_id)

    def poll_session(self, session: RecordingSession) -> None:
        """Hand a session to the recorder if its counter has come."""
        if session.pending_counter is None:
            return
        try:
            counter = session.pending_counter.poll()
        except AerotapeError as error:
            session.pending_counter = None
            self._finish_unstarted(session, f"no position counter: {error}")
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
        counter.set(session.start_position)
        source = session.source
        source.requester.send_signal(
            source.correlation_id,
            session.recording_id,
            source.registration_id,
            session.start_position,
            RecordingSignal.START,
        )
        image, session.image = session.image, None
        assert image is not None
        try:
            self._recorder.record(
                image,
                counter,
                recording_id=session.recording_id,
                start_position=session.start_position,
                segment_length=session.segment_file_length,
            )
        except AerotapeError as error:
            self.on_stopped(
                session.recording_id, session.start_position, ErrorCode.GENERIC, str(error)
            )
            return
        if session.is_stopping:
            self._recorder.stop_recording(session.recording_id)

    def _finish_unstarted(self, session: RecordingSession, message: str | None) -> None:
        self._pending_sessions.remove(session)
        if session.image is not None:
            session.image.release()
            session.image = None
        self.on_stopped(session.recording_id, session.start_position, ErrorCode.GENERIC, message)

    # ---- stop ---------------------------------------------------------------------------------

    def stop_channel(self, stream_id: int, channel: str) -> bool:
        """Stop what was started for a channel and stream; False when there is no such thing.

        Raises:
            ConfigurationError: not a channel URI.
        """
        source = self._by_key.get(recording_key(stream_id, ChannelUri.parse(channel)))
        if source is not None:
            self._stop_source(source)
        return source is not None

    def stop_subscription(self, registration_id: int) -> bool:
        """Stop what was started with this subscription id; False when there is no such thing."""
        source = self._listed(registration_id)
        if source is not None:
            self._stop_source(source)
        return source is not None

    def stop_identity(self, recording_id: int) -> bool:
        """Stop one recording and its subscription; False when it is not in progress."""
        session = self._sessions.get(recording_id)
        if session is None:
            return False
        self._stop_session(session)
        source = self._listed(session.source.registration_id)
        if source is None:
            return False
        del self._by_key[source.key]
        self._release(source)
        return True

    def _listed(self, registration_id: int) -> RecordingSubscription | None:
        source = self._by_id.get(registration_id)
        return source if source is not None and self._by_key.get(source.key) is source else None

    def _stop_source(self, source: RecordingSubscription) -> None:
        if source.pending is not None:
            # Stopped before the driver has answered: the start is answered all the same.
            self._pending_subscriptions.remove(source)
            source.requester.send_ok(source.correlation_id, source.registration_id)
        source.is_stopping = True
        del self._by_key[source.key]
        for session in self:
            if session.source is source:
                self._stop_session(session)
        self._release(source)

    def _stop_session(self, session: RecordingSession) -> None:
        if not session.is_stopping:
            session.is_stopping = True
            if session.counter is not None:
                self._recorder.stop_recording(session.recording_id)

    def _release(self, source: RecordingSubscription) -> None:
        source.references -= 1
        if source.references <= 0:
            self._forget(source)

    def _forget(self, source: RecordingSubscription) -> None:
        if self._by_key.get(source.key) is source:
            del self._by_key[source.key]
        self._by_id.pop(source.registration_id, None)
        source.close()

    def on_stopped(
        self, recording_id: int, position: int, error_code: int, message: str | None
    ) -> None:
        """Write down where a recording has ended and tell who started it.

        Args:
            position: the end of its last whole frame, bytes.
            message: what went wrong, None when nothing did.
        """
        session = self._sessions.pop(recording_id, None)
        if session is None:
            return
        source = session.source
        position = max(position, session.start_position)
        try:
            self._catalog.recording_stopped(recording_id, position, self._epoch_ms())
        except (AerotapeError, OSError) as error:
            self._errors.record("stop position not written", f"recording {recording_id}: {error}")
        if message is not None:
            self._errors.record("recording failed", f"recording {recording_id}: {message}")
            source.requester.send_error(source.correlation_id, error_code, message)
        source.requester.send_signal(
            source.correlation_id,
            recording_id,
            source.registration_id,
            position,
            RecordingSignal.STOP,
        )
        if source.auto_stop and not source.is_stopping:
            source.is_stopping = True
            for other in self:
                if other.source is source:
                    self._stop_session(other)
            self._forget(source)
        else:
            self._release(source)
        if session.counter is not None:
            session.counter.close()
        self._session_counter.add(-1)

    def close(self) -> None:
        """Give back what the recorder does not hold; its last events have been taken."""
        for session in self:
            if session.pending_counter is not None:
                session.pending_counter.cancel()
                session.pending_counter = None
                self._finish_unstarted(session, None)
        for source in list(self._by_id.values()):
            self._forget(source)
        self._pending_subscriptions.clear()
