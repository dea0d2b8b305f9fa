"""The state machine of a persistent subscription: replay, join the live stream, fall back, repeat.

It is a task that its user advances once a duty cycle. It never blocks, except for the slice of
time that it is given to wait for a message. Each phase closes its resources however it ends.

Both images have positions of the same stream. Close to the end of the recording, the live stream
is subscribed to. Where it begins at a lower position than the replay, it is skipped up to the
replay's position; where it begins at a higher one, the replay is read up to that position. Once
both are at the same position, switching to the live stream neither loses nor duplicates a message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import Final

from aerotape import _native, errors
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.client.live.live_subscription import LiveSubscription, is_same_stream
from aerotape.client.live.persistent_types import (
    FROM_LIVE,
    FROM_START,
    PersistentEvent,
    PersistentOptions,
    PersistentState,
)
from aerotape.client.queries import list_recording, max_recorded_position
from aerotape.client.replay.stream import ReplayStream
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.exchange import exchange
from aerotape.client.session.reconnecting_session import ReconnectingSession
from aerotape.message import MessageBuffer
from aerotape.protocol import NULL_POSITION
from aerotape.waiting import Pause, Responses, Running, Task

# In a duty cycle that skips in the live stream.
_SKIPPED_FRAGMENTS: Final = 4096
# While there is other work than reading the stream.
BUSY_SLICE_NS: Final = 1_000_000
# Between two requests for how far the archive has recorded.
_RECORDER_LATE_NS: Final = 10_000_000

Reason = errors.PersistentSubscriptionError.Reason


@dataclass(eq=False)
class PersistentStateMachine:
    """The duty cycles of a persistent subscription, and its state.

    Attributes:
        position: how far the stream has been read, bytes; FROM_START or FROM_LIVE before.
        join_difference: how far the live stream was ahead of the replay when it was found, bytes.
        backlog: messages that were read and not returned yet.
        fragment_limit: how many fragments a duty cycle may read.
        slice_ns: how long a duty cycle may wait for a message.
    """

    aeron: _native.AeronClient
    connection: ReconnectingSession
    options: PersistentOptions
    timeout_ns: InitVar[int]
    on_state: Callable[[], None]
    on_event: Callable[[PersistentEvent], None]
    state: PersistentState = field(default=PersistentState.AWAIT_ARCHIVE_CONNECTION, init=False)
    join_difference: int | None = field(default=None, init=False)
    backlog: MessageBuffer = field(default_factory=MessageBuffer, init=False)
    fragment_limit: int = field(default=0, init=False)
    slice_ns: int = field(default=0, init=False)
    _reader: _native.MessageReader = field(default_factory=_native.MessageReader, init=False)
    # What FROM_START was at the last look-up.
    _begun_at: int = field(default=FROM_START, init=False)
    # The highest position of a publisher so far.
    _seen_live: int = field(default=NULL_POSITION, init=False)

    def __post_init__(self, timeout_ns: int) -> None:
        self.position = self.options.start
        self._live = LiveSubscription(
            self.aeron, self.options.live_channel, timeout_ns, self.report
        )

    def report(self, error: Exception) -> None:
        """Report an error that is retried."""
        self._emit("error", error)

    def fail(self, error: Exception) -> None:
        """Report the error that ends it."""
        self._enter(PersistentState.FAILED)
        self.report(error)

    # -- duty cycles ---------------------------------------------------------------------------

    def duty_cycles_after_interrupt(self) -> Task[None]:
        """As `duty_cycles`, after an exception of a signal handler ended the previous ones."""
        # All that was read is in the backlog, or part of an incomplete message.
        if self._reader.position >= 0:
            self.position = max(self.position, self._reader.position)
        return self.duty_cycles()

    def duty_cycles(self) -> Task[None]:
        """Run until a permanent error, which is raised; each yield ends a duty cycle."""
        try:
            while True:
                try:
                    image = yield from self._until_live()
                except (errors.ClosedError, errors.AeronTimeoutError) as error:
                    if self.aeron.is_closed:
                        raise
                    if isinstance(error, errors.AeronTimeoutError):
                        self.report(error)
                    yield Pause(BUSY_SLICE_NS)
                    continue
                if image is not None:
                    yield from self._read_live(image)
        finally:
            self._live.close()

    def _until_live(self) -> Task[_native.Image | None]:
        """Read from the recording until the live stream is joined; None: start again."""
        session = yield from self._connected()
        is_refused = False
        while True:
            recording = yield from self._look_up(session)
            stopped_at = recording.stop_position
            is_at_end = stopped_at != NULL_POSITION and self.position == stopped_at
            if self.position == FROM_LIVE or is_at_end:
                return (yield from self._join_live(session, recording))
            try:
                if stopped_at == NULL_POSITION and (yield from self._waits_for_recorder(session)):
                    return None
                return (yield from self._replay(session, recording))
            except errors.InvalidPositionError as error:
                # The recording may have changed since the look-up: stopped, lost segments, ...
                if is_refused:
                    raise self._terminal(Reason.INVALID_START_POSITION, str(error)) from error
                is_refused = True
            except errors.UnknownRecordingError as error:
                raise self._terminal(Reason.RECORDING_NOT_FOUND, str(error)) from error
            except errors.ReplayError as error:
                # It had started: another one may continue at its position.
                self.report(error)
                return None

    def _connected(self) -> Task[ClientSession]:
        while (session := self.connection.session) is None:
            if self.aeron.is_closed:
                raise errors.ClosedError("cannot continue: the Aeron client is closed")
            self._enter(PersistentState.AWAIT_ARCHIVE_CONNECTION)
            yield Pause(BUSY_SLICE_NS)
        return session

    def _look_up(self, session: ClientSession) -> Task[RecordingDescriptor]:
        self._enter(PersistentState.AWAIT_LIST_RECORDING_RESPONSE)
        recording_id = self.options.recording_id
        recording = yield from list_recording(session, recording_id)
        if recording is None:
            raise self._terminal(Reason.RECORDING_NOT_FOUND, "there is no such recording")
        live_stream_id = self.options.live_stream_id
        if live_stream_id not in (None, recording.stream_id):
            raise self._terminal(
                Reason.STREAM_ID_MISMATCH,
                f"the live stream has stream id {live_stream_id}, the recording "
                f"{recording.stream_id}",
            )
        start, stop = recording.start_position, recording.stop_position
        if stop != NULL_POSITION and self._seen_live > stop:
            raise self._terminal(
                Reason.INVALID_START_POSITION,
                f"the recording stopped at {stop}, but the live stream has reached "
                f"{self._seen_live}",
            )
        if self.options.start == FROM_START and self.position == self._begun_at:
            # Nothing has been read, and the start may have moved since the last look-up.
            self._begun_at = self.position = start
        if self.position >= 0:
            if self.position < start:
                raise self._terminal(
                    Reason.INVALID_START_POSITION,
                    f"position {self.position} is before its start position {start}",
                )
            if stop != NULL_POSITION and self.position > stop:
                raise self._terminal(
                    Reason.INVALID_START_POSITION,
                    f"position {self.position} is past its stop position {stop}",
                )
        return recording

    def _waits_for_recorder(self, session: ClientSession) -> Task[bool]:
        """Whether more has been read live than is recorded yet; waits a little if so.

        The archive would refuse a replay from there as an invalid position.
        """
        if not 0 <= self.position <= self._seen_live:
            return False
        end = yield from exchange(session, max_recorded_position(self.options.recording_id))
        if end >= self.position:
            return False
        yield Pause(_RECORDER_LATE_NS)
        return True

    # -- from the recording --------------------------------------------------------------------

    def _replay(
        self, session: ClientSession, recording: RecordingDescriptor
    ) -> Task[_native.Image | None]:
        self._enter(PersistentState.AWAIT_REPLAY_RESPONSE)
        self._set_join_difference(None)
        replay = ReplayStream(session, recording, self.position, None)
        yield from replay.open(self.options.replay_target)
        joined: _native.Image | None = None
        watch = Running(self._near_the_end(session, recording))
        try:
            self._enter(PersistentState.REPLAY)
            while (image := replay.image) is not None and not image.is_closed:
                self._ensure_connected(session)
                live = self._live.image()
                if live is not None and not is_same_stream(live, recording):
                    # The recording is read first; an unread subscription would block a publisher.
                    self._live.put_off()
                elif live is not None:
                    if (yield from self._switch(image, live, replay.recorded_as)):
                        joined = live
                        break
                    self._live.close()
                    watch = Running(self._near_the_end(session, recording))
                    self._enter(PersistentState.REPLAY)
                    continue
                self._read(image, None, BUSY_SLICE_NS, replay.recorded_as)
                yield Pause()
                self._ensure_connected(session)
                watch.advance()
                if watch.is_done and not self._live.is_wanted:
                    self._live.begin(recording)
        finally:
            watch.close()
            replay.abandon()
            if joined is None:
                self._live.close()
        return joined

    def _near_the_end(self, session: ClientSession, recording: RecordingDescriptor) -> Task[None]:
        """Wait until no more than a quarter of a term is left of the recording."""
        distance = recording.term_buffer_length // 4
        while True:
            try:
                asked = max_recorded_position(self.options.recording_id)
                end = yield from exchange(session, asked)
            except errors.AeronTimeoutError:
                continue
            if self.position >= end - distance:
                return
            while self.position < end:
                yield Responses(session, "follow the recording")

    def _switch(
        self,
        replay: _native.Image,
        live: _native.Image,
        recorded_as: tuple[int, int, int] | None,
    ) -> Task[bool]:
        """Return whether the live stream is joined; False when either of the two has ended."""
        self._enter(PersistentState.ATTEMPT_SWITCH)
        self._set_join_difference(live.position - replay.position)
        while True:
            if live.position < replay.position:
                live.skip_to(replay.position, _SKIPPED_FRAGMENTS)
            if live.position == replay.position:
                return True
            if replay.is_closed:
                self._see_live(live.position)
            if replay.is_closed or live.is_closed:
                return False
            limit = live.position if live.position > replay.position else None
            self._read(replay, limit, BUSY_SLICE_NS, recorded_as)
            yield Pause()

    # -- from the publisher --------------------------------------------------------------------

    def _join_live(
        self, session: ClientSession, recording: RecordingDescriptor
    ) -> Task[_native.Image | None]:
        """Wait for the live stream at the end of the recording."""
        joined = False
        try:
            while True:
                if not self._live.is_wanted:
                    self._live.begin(recording)
                    self._enter(PersistentState.AWAIT_LIVE)
                yield Pause(BUSY_SLICE_NS)
                self._ensure_connected(session)
                image = self._live.image()
                if image is None:
                    continue
                position = image.position
                self._see_live(position)
                if 0 <= position < self.position:
                    raise self._terminal(
                        Reason.GENERIC,
                        f"the live stream is at {position}, but it has been read up to "
                        f"{self.position} already",
                    )
                if self.position >= 0 and position != self.position:
                    return None  # the messages in between are in the recording
                if not is_same_stream(image, recording):
                    raise self._terminal(
                        Reason.GENERIC,
                        "the live stream is another one than was recorded: it has initial term id "
                        f"{image.initial_term_id} and terms of {image.term_buffer_length} bytes, "
                        f"the recording {recording.initial_term_id} and "
                        f"{recording.term_buffer_length}",
                    )
                self.position = position
                self._set_join_difference(0)
                joined = True
                return image
        finally:
            if not joined:
                self._live.close()

    def _read_live(self, image: _native.Image) -> Task[None]:
        self._enter(PersistentState.LIVE)
        self._emit("live-joined")
        yield Pause()
        try:
            while True:
                self._live.image()
                before = self.position
                self._read(image, None, self.slice_ns)
                if not self.backlog and self.position == before and image.is_closed:
                    break
                yield Pause()
        finally:
            self._live.close()
        self._see_live(self.position)
        self._emit("live-left")

    # -- common to all phases ------------------------------------------------------------------

    def _read(
        self,
        image: _native.Image,
        limit_position: int | None,
        slice_ns: int,
        recorded_as: tuple[int, int, int] | None = None,
    ) -> None:
        wait_ns = min(slice_ns, self.slice_ns)
        self.backlog.take(
            self._reader.poll, image, self.fragment_limit, limit_position, wait_ns, recorded_as
        )
        # The position of an image that was closed during a poll may be too low.
        self.position = max(self.position, image.position, self._reader.position)

    def _ensure_connected(self, session: ClientSession) -> None:
        if self.connection.session is not session:
            raise errors.ClosedError("the archive went away")

    def _see_live(self, position: int) -> None:
        self._seen_live = max(self._seen_live, position)

    def _terminal(self, reason: Reason, why: str) -> errors.PersistentSubscriptionError:
        recording_id = self.options.recording_id
        text = f"cannot read recording {recording_id}: {why}"
        return errors.PersistentSubscriptionError(text, reason, recording_id, self.position)

    def _enter(self, state: PersistentState) -> None:
        if state is not self.state:
            self.state = state
            self.on_state()

    def _set_join_difference(self, difference: int | None) -> None:
        self.join_difference = difference
        self.on_state()

    def _emit(self, kind: str, error: Exception | None = None) -> None:
        position = self.position if self.position >= 0 else -1
        self.on_event(PersistentEvent(kind, position, error))  # type: ignore[arg-type]
