"""One image being recorded: from the request of its position counter to its STOP signal.

    INIT ---> RECORDING ---> STOPPING ---> STOPPED

INIT waits for the driver to add the position counter. Then the recorder takes the image over, the
client receives START or EXTEND, and the session is RECORDING.

A stop sets the *stop point*: the position up to which the publication has accepted messages at
that time, or for a publication of another driver the position that has been received a little
later (`driver_streams`). It ends no recording by itself:

- A session that is in INIT stays there; START is sent at once, because it precedes the response to
  the stop request. The recorder gets the image as ever, and with it the stop point.
- The recorder gets the stop point once it is known; that makes a session STOPPING. The recording
  ends when it has reached that position, when the image ends, or after the message timeout. It may
  have a few messages more: what came while it was stopped.
- The session holds its subscription open until it is STOPPED, so the publisher neither overwrites
  what is yet to be recorded nor loses its connection before.

A second stop changes nothing. A recording that fails, or whose image ends, is STOPPED from any
state. `recordings` has the same rule for images whose session has not begun.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from aerotape import counter_keys
from aerotape.catalog.time_index.file import Provenance, time_index_path
from aerotape.clock import epoch_ms
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.errors import AerotapeError
from aerotape.worker_arguments import RecordArguments, TimeIndexArguments

if TYPE_CHECKING:
    from aerotape._native import Counter, Image, PendingCounter, SessionWorker
    from aerotape.archive.recording.driver_streams import DriverStreams, StopPoint
    from aerotape.archive.recording.recordings import Recordings
    from aerotape.archive.recording.subscriptions import RecordedSubscription
    from aerotape.durability import OnSynced


class RecordingSessionState(Enum):
    """States of a recording session."""

    INIT = auto()
    RECORDING = auto()
    STOPPING = auto()
    STOPPED = auto()


@dataclass(eq=False)
class RecordingSession:
    """One image being recorded; the session owns the image until the recorder takes it.

    Attributes:
        start_position: the recording's, bytes.
        pending_confirmed: the counter of the confirmed position; None without a durability.
        time_index: for the recorder; None when no time index is written.
        join_position: where in the recording the image begins, bytes: its start position, or the
            stop position that it had before it was extended.
        counter: of the recorded position; None until the recorder has the image.
        confirmed_counter: of the durable position, for recordings with a durability; likewise.
        stop_point: where the recording ends; None until it is stopped.
    """

    subscription: RecordedSubscription
    image: Image
    recording_id: int
    start_position: int
    segment_file_length: int
    pending_counter: PendingCounter
    pending_confirmed: PendingCounter | None
    time_index: TimeIndexArguments | None
    state: RecordingSessionState = field(default=RecordingSessionState.INIT, init=False)
    counter: Counter | None = field(default=None, init=False)
    confirmed_counter: Counter | None = field(default=None, init=False)
    stop_point: StopPoint | None = field(default=None, init=False)
    _is_begin_sent: bool = field(default=False, init=False)
    # Positions to make durable, ascending, and their callers.
    _syncs: deque[tuple[int, OnSynced]] = field(default_factory=deque, init=False)

    def __post_init__(self) -> None:
        self.join_position = self.image.join_position

    @property
    def position(self) -> int:
        """The recorded position, bytes."""
        return self.join_position if self.counter is None else self.counter.get()

    @property
    def confirmed_position(self) -> int:
        """Position up to which a recording with a durability is durable, bytes."""
        counter = self.confirmed_counter
        return self.join_position if counter is None else counter.get()

    @property
    def is_starting(self) -> bool:
        """Whether the recorder has not taken the image over yet."""
        return self.state is RecordingSessionState.INIT

    def begin(self, recorder: SessionWorker, *, with_events: bool) -> None:
        """Pass the image to the recorder if the driver has added the counter.

        Args:
            recorder: writes the segment files.
            with_events: whether the recorder publishes recording events.

        Raises:
            AerotapeError: the image cannot be recorded.
        """
        if not self._are_counters_added():
            return
        assert self.counter is not None
        durability = self.subscription.durability
        arguments = RecordArguments(
            recording_id=self.recording_id,
            start_position=self.start_position,
            segment_length=self.segment_file_length,
            events=self._events() if with_events else None,
            time_index=self.time_index,
            durability=None if durability is None else durability.sync,
            confirmed_counter=self.confirmed_counter,
        )
        recorder.record(self.image, self.counter, arguments)
        # After that call: the recorder need not wait for the signal.
        self.send_begin()
        self.state = RecordingSessionState.RECORDING

    def _are_counters_added(self) -> bool:
        try:
            self.counter = self.counter or self.pending_counter.poll()
            if self.pending_confirmed is not None:
                self.confirmed_counter = self.confirmed_counter or self.pending_confirmed.poll()
        except AerotapeError as error:
            raise AerotapeError(f"no position counter: {error}") from error
        counters = [self.counter]
        if self.pending_confirmed is not None:
            counters.append(self.confirmed_counter)
        for counter in counters:
            if counter is not None:
                counter.set(self.join_position)
        return None not in counters

    def request_sync(self, recorder: SessionWorker, on_synced: OnSynced) -> None:
        """Make durable what has been recorded; `on_synced` is called when that is done."""
        if self.is_starting:
            on_synced(self.join_position, None)
            return
        self._syncs.append((self.position, on_synced))
        # One that has ended meanwhile is made durable before it is reported.
        recorder.request_sync(self.recording_id)

    def on_synced(
        self, position: int, message: str | None = None, *, is_final: bool = False
    ) -> None:
        """Report to the callers of `request_sync` that the recording is durable up to `position`.

        Args:
            message: why the recording has failed.
            is_final: the recording has stopped: also to those that wait for a higher position.
        """
        while self._syncs and (is_final or self._syncs[0][0] <= position):
            _, on_synced = self._syncs.popleft()
            on_synced(position, message)

    def _events(self) -> tuple[bytes, bytes, bytes]:
        """Return the recording events; the recorder fills in the positions of the last two."""
        started = codecs.RecordingStarted(
            recording_id=self.recording_id,
            start_position=self.join_position,
            session_id=self.image.session_id,
            stream_id=self.subscription.stream_id,
            channel=self.subscription.original_channel,
            source_identity=self.image.source_identity,
        )
        place = {"recording_id": self.recording_id, "start_position": self.join_position}
        progress, stopped = codecs.RecordingProgress(**place), codecs.RecordingStopped(**place)
        return started.encode(), progress.encode(), stopped.encode()

    def stop(self, point: StopPoint) -> None:
        """Record up to a stop point, unless there is one."""
        if self.stop_point is None:
            self.send_begin()
            self.stop_point = point

    def advance_stop(
        self, recorder: SessionWorker, streams: DriverStreams, timeout_ns: int
    ) -> bool:
        """Pass the stop point to the recorder once it is known; return whether that was done.

        Args:
            timeout_ns: how long the recorder may take to reach it.
        """
        if self.state is not RecordingSessionState.RECORDING:
            return not self.is_starting
        assert self.stop_point is not None
        position = streams.settle(self.stop_point, self.image)
        if position is None:
            return False
        recorder.stop_recording(self.recording_id, position, timeout_ns)
        self.state = RecordingSessionState.STOPPING
        return True

    def send_begin(self) -> None:
        """Notify the observer of START or EXTEND, unless that was done."""
        if self._is_begin_sent:
            return
        self._is_begin_sent = True
        is_extended = self.subscription.extends is not None
        self.send_signal(
            self.join_position,
            RecordingSignal.EXTEND if is_extended else RecordingSignal.START,
        )

    def send_signal(self, position: int, signal: RecordingSignal) -> None:
        """Notify the observer of a signal of this recording."""
        subscription = self.subscription
        subscription.observer.on_signal(
            self.recording_id, subscription.registration_id, position, signal
        )

    def close(self) -> None:
        """End as STOPPED; release what the recorder does not own."""
        if self.is_starting:
            for pending in (self.pending_counter, self.pending_confirmed):
                if pending is not None:
                    pending.cancel()
            self.image.release()
        for counter in (self.counter, self.confirmed_counter):
            if counter is not None:
                counter.close()
        self.state = RecordingSessionState.STOPPED


def new_session(
    recordings: Recordings, subscription: RecordedSubscription, image: Image
) -> RecordingSession:
    """Return the session of an image whose recording this adds to the catalog.

    Raises:
        AerotapeError: the catalog cannot be written, or the counter not be requested.
    """
    segment_file_length = recordings.config.segment_file_length
    recording_id = recordings.catalog.add_recording(
        start_position=image.join_position,
        start_timestamp_ms=epoch_ms(),
        initial_term_id=image.initial_term_id,
        segment_file_length=max(segment_file_length, image.term_buffer_length),
        term_buffer_length=image.term_buffer_length,
        mtu_length=image.mtu_length,
        session_id=image.session_id,
        stream_id=subscription.stream_id,
        stripped_channel=subscription.stripped_channel,
        original_channel=subscription.original_channel,
        source_identity=image.source_identity,
    )
    return _session(recordings, subscription, image, recording_id, is_new=True)


def extended_session(
    recordings: Recordings, subscription: RecordedSubscription, image: Image, recording_id: int
) -> RecordingSession:
    """Return the session of an image that extends a recording, active again in the catalog.

    Its files are prepared.

    Raises:
        AerotapeError: the catalog cannot be written, or the counter not be requested.
    """
    recordings.catalog.extend_recording(
        recording_id,
        control_session_id=subscription.observer.session_id,
        correlation_id=subscription.observer.correlation_id,
        session_id=image.session_id,
    )
    return _session(recordings, subscription, image, recording_id, is_new=False)


def _session(
    recordings: Recordings,
    subscription: RecordedSubscription,
    image: Image,
    recording_id: int,
    *,
    is_new: bool,
) -> RecordingSession:
    # The catalog was written first: clients that see a counter may rely on its entry.
    catalog = recordings.catalog
    entry = catalog.entry(recording_id)
    try:
        pending_counter, pending_confirmed = _add_counters(
            recordings, subscription, image, recording_id
        )
    except AerotapeError:
        # Nothing was recorded: the next start need not search for the end.
        catalog.recording_stopped(recording_id, image.join_position, epoch_ms())
        raise
    return RecordingSession(
        subscription,
        image,
        recording_id,
        start_position=entry.descriptor.start_position,
        segment_file_length=entry.descriptor.segment_file_length,
        pending_counter=pending_counter,
        pending_confirmed=pending_confirmed,
        time_index=_time_index(recordings, Provenance.of(entry), is_new=is_new),
    )


def _add_counters(
    recordings: Recordings, subscription: RecordedSubscription, image: Image, recording_id: int
) -> tuple[PendingCounter, PendingCounter | None]:
    """Request the counters of the recorded position and, with a durability, of the confirmed."""
    client, archive_id = recordings.client, recordings.archive_id
    pending_confirmed = None
    if subscription.durability is not None:
        # After a power cut, confirmed bytes are found only through this entry.
        recordings.catalog.force()
        where = archive_id, recording_id, subscription.durability.key
        pending_confirmed = client.async_add_counter(
            counter_keys.CounterType.CONFIRMED_POSITION,
            counter_keys.confirmed_position_key(*where),
            counter_keys.confirmed_position_label(*where),
        )
    session_id = image.session_id
    try:
        pending_counter = client.async_add_counter(
            counter_keys.CounterType.RECORDING_POSITION,
            counter_keys.recording_position_key(
                archive_id, recording_id, session_id, image.source_identity
            ),
            counter_keys.recording_position_label(
                archive_id,
                recording_id,
                session_id,
                subscription.stream_id,
                subscription.stripped_channel,
            ),
        )
    except AerotapeError:
        if pending_confirmed is not None:
            pending_confirmed.cancel()
        raise
    return pending_counter, pending_confirmed


def _time_index(
    recordings: Recordings, provenance: Provenance, *, is_new: bool
) -> TimeIndexArguments | None:
    config = recordings.config
    if not config.time_index_interval_ns:
        return None
    return TimeIndexArguments(
        str(time_index_path(recordings.archive_dir, provenance.recording_id)),
        provenance.encode(),
        is_new,
        config.time_index_interval_ns,
        config.time_index_length,
    )
