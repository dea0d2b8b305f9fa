r"""One image being recorded: from the request of its position counter to its STOP signal.

    INIT ---> RECORDING ---> STOPPING ---> STOPPED
       \                     ^             ^
        \---> CANCELLED -----+-------------+

INIT waits for the driver to add the position counter. Then the recorder takes the image over, the
client receives START or EXTEND, and the session is RECORDING. A stop request makes it STOPPING
until the recorder reports the stop position. A session that is stopped in INIT is CANCELLED: START
is sent at once, because it precedes the response to the stop request. The next duty cycle passes
the image to the recorder after all if the counter is there, to be stopped with what it has
received; else nothing is recorded. A recording that fails, or whose image ends, is STOPPED from
any state.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from aerotape.archive.recording.events import recording_events
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.errors import AerotapeError

if TYPE_CHECKING:
    from aerotape._native import Counter, Image, PendingCounter, SessionWorker
    from aerotape.archive.recording.subscriptions import RecordingSubscription

# Path, header, whether the file is created, nanoseconds and bytes between points.
TimeIndexRequest = tuple[str, bytes, bool, int, int]


class State(Enum):
    """States of a recording session."""

    INIT = auto()
    RECORDING = auto()
    CANCELLED = auto()
    STOPPING = auto()
    STOPPED = auto()


class RecordingSession:
    """One image being recorded.

    Attributes:
        join_position: where in the recording the image begins, bytes: its start position, or the
            stop position that it had before it was extended.
    """

    def __init__(
        self,
        subscription: RecordingSubscription,
        image: Image,
        recording_id: int,
        *,
        start_position: int,
        segment_file_length: int,
        pending_counter: PendingCounter,
        time_index: TimeIndexRequest | None,
    ) -> None:
        """Wait for the counter; the session owns the image until the recorder takes it.

        Args:
            start_position: the recording's, bytes.
            time_index: for the recorder; None when no time index is written.
        """
        self.subscription = subscription
        self.recording_id = recording_id
        self.join_position = image.join_position
        self.state = State.INIT
        self.counter: Counter | None = None
        self._image = image
        self._start_position = start_position
        self._segment_file_length = segment_file_length
        self._pending_counter = pending_counter
        self._time_index = time_index

    @property
    def position(self) -> int:
        """How far the stream has been recorded, bytes."""
        return self.join_position if self.counter is None else self.counter.get()

    @property
    def is_starting(self) -> bool:
        """Whether the recorder has not taken the image over yet."""
        return self.state in (State.INIT, State.CANCELLED)

    def begin(self, recorder: SessionWorker, *, with_events: bool) -> None:
        """Pass the image to the recorder if the driver has added the counter.

        Args:
            recorder: writes the segment files.
            with_events: whether the recorder publishes recording events.

        Raises:
            AerotapeError: the image cannot be recorded.
        """
        try:
            counter = self._pending_counter.poll()
        except AerotapeError as error:
            raise AerotapeError(f"no position counter: {error}") from error
        if counter is None:
            return
        counter.set(self.join_position)
        self.counter = counter
        subscription, image = self.subscription, self._image
        events = None
        if with_events:
            events = recording_events(
                recording_id=self.recording_id,
                join_position=self.join_position,
                session_id=image.session_id,
                stream_id=subscription.stream_id,
                channel=subscription.original_channel,
                source_identity=image.source_identity,
            )
        recorder.record(
            image,
            counter,
            recording_id=self.recording_id,
            start_position=self._start_position,
            segment_length=self._segment_file_length,
            events=events,
            time_index=self._time_index,
        )
        # After that call: the recorder need not wait for the signal.
        self.send_begin()
        is_cancelled = self.state is State.CANCELLED
        self.state = State.RECORDING
        if is_cancelled:
            self.stop(recorder)

    def stop(self, recorder: SessionWorker) -> None:
        """Stop recording. Idempotent."""
        if self.state is State.INIT:
            self.send_begin()
            self.state = State.CANCELLED
        elif self.state is State.RECORDING:
            recorder.stop_recording(self.recording_id)
            self.state = State.STOPPING

    def send_begin(self) -> None:
        """Send the client START or EXTEND, unless that was done."""
        if self.state is State.INIT:
            is_extended = self.subscription.extends is not None
            self.send_signal(
                self.join_position,
                RecordingSignal.EXTEND if is_extended else RecordingSignal.START,
            )

    def send_signal(self, position: int, signal: RecordingSignal) -> None:
        """Send the client a signal of this recording."""
        subscription = self.subscription
        subscription.requester.send_signal(
            subscription.correlation_id,
            self.recording_id,
            subscription.registration_id,
            position,
            signal,
        )

    def close(self) -> None:
        """End as STOPPED; release what the recorder does not own."""
        if self.is_starting:
            self._pending_counter.cancel()
            self._image.release()
        if self.counter is not None:
            self.counter.close()
        self.state = State.STOPPED
