"""The life of a persistent subscription: replay, join the live stream, fall back, and again.

It is written down as a generator that is advanced once a turn of its user's loop and never waits
itself, but for the moments that it is given to wait for a message. Each phase gives up what it
has asked for when it is left, whichever way.

Both images show positions of the same stream. Close to the end of the recording, the live stream
is subscribed to. Where it begins behind the replay, it is passed over up to there, and where it
begins ahead, the replay is read up to there and not further. Where both stand at the same
position, nothing is lost and nothing doubled by going on with the other.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Generator
from typing import Final, TypeVar

from aerotape import _native
from aerotape.aeron import RESOURCE_TEMPORARILY_UNAVAILABLE
from aerotape.archive.client.archive_link import ArchiveLink
from aerotape.archive.client.call import Pause, Steps
from aerotape.archive.client.live_side import LiveSide, is_same_stream
from aerotape.archive.client.persistent_terms import (
    FROM_LIVE,
    FROM_START,
    PersistentEvent,
    PersistentOrder,
    PersistentState,
)
from aerotape.archive.client.query_requests import list_recording, max_recorded_position
from aerotape.archive.client.replay_opening import ReplayWish, start_stream
from aerotape.archive.client.replay_stream import ReplayStream
from aerotape.archive.client.session import ControlSession
from aerotape.archive.client.stepping import Stepper
from aerotape.archive.protocol import NULL_POSITION
from aerotape.backlog import Backlog
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.errors import (
    AeronError,
    AeronTimeoutError,
    ClosedError,
    InvalidPositionError,
    PersistentSubscriptionError,
    ReplayError,
    UnknownRecordingError,
)

T = TypeVar("T")
Turns = Generator[None, None, T]

# At a turn that skips in the live stream.
_SKIPPED_FRAGMENTS: Final = 4096
# While there is something else to look after than the stream that is read.
_BUSY_SLICE_NS: Final = 1_000_000
# Until the archive is asked again whether it has recorded what was read live.
_RECORDER_LATE_NS: Final = 10_000_000

Reason = PersistentSubscriptionError.Reason


class _Switch(enum.Enum):
    """How an attempt to join the live stream has ended."""

    JOINED = 1
    REPLAY_ENDED = 2
    LIVE_LOST = 3


class PersistentLife:
    """What a persistent subscription does, turn by turn, and what it knows.

    Attributes:
        state: how far it has come.
        position: how far the stream has been read, bytes; FROM_START or FROM_LIVE before.
        join_difference: how far the live stream was ahead of the replay when it was found, bytes.
        backlog: messages that were read, for the user to take.
        fragment_limit: how many fragments a turn may take.
        slice_ns: how long a turn may wait for a message.
    """

    def __init__(
        self,
        aeron: _native.AeronClient,
        link: ArchiveLink,
        order: PersistentOrder,
        timeout_ns: int,
        on_state: Callable[[], None],
        on_event: Callable[[PersistentEvent], None],
    ) -> None:
        self.state = PersistentState.AWAIT_ARCHIVE_CONNECTION
        self.position = order.start
        self.join_difference: int | None = None
        self.backlog = Backlog()
        self.fragment_limit = 0
        self.slice_ns = 0
        self._aeron = aeron
        self._link = link
        self._order = order
        self._on_state = on_state
        self._on_event = on_event
        self._reader = _native.MessageReader()
        self._live = LiveSide(aeron, order.live_channel, timeout_ns, self.report)
        self._timeout_ns = timeout_ns
        # When it is told of that the recording does not come to where the live stream was read.
        self._late_at_ns: int | None = None
        # The furthest that a publisher was seen to be.
        self._seen_live = NULL_POSITION
        # The image that was told of last for not being of the recorded stream.
        self._other_id = NULL_POSITION

    def report(self, error: Exception) -> None:
        """Tell of something that did not work."""
        self._tell("error", error)

    def fail(self, error: Exception) -> None:
        """Tell of the error that ends it."""
        self._enter(PersistentState.FAILED)
        self.report(error)

    # -- turns ---------------------------------------------------------------------------------

    def turns_after_interrupt(self) -> Turns[None]:
        """As `turns`, where an exception from elsewhere has ended those before."""
        # All that was read is in the backlog, or of a message that is not whole yet.
        if self._reader.position >= 0:
            self.position = max(self.position, self._reader.position)
        return self.turns()

    def turns(self) -> Turns[None]:
        """Live until an error ends it, which is raised; each yield ends a turn."""
        try:
            while True:
                try:
                    image = yield from self._until_live()
                except (ClosedError, AeronTimeoutError) as error:
                    if self._aeron.is_closed:
                        raise
                    if isinstance(error, AeronTimeoutError):
                        self.report(error)
                    yield from self._wait_a_turn()
                    continue
                if image is not None:
                    yield from self._read_live(image)
        finally:
            self._live.close()

    def _until_live(self) -> Turns[_native.Image | None]:
        """Read from the recording until the live stream is joined; None: look at it all again.

        Raises:
            ClosedError: the archive went away.
            AeronTimeoutError: the archive does not answer in time.
            PersistentSubscriptionError: there is no way to go on.
        """
        session = yield from self._connected()
        recording = yield from self._look_up(session)
        stopped_at = recording.stop_position
        is_at_end = stopped_at != NULL_POSITION and self.position == stopped_at
        if self.position == FROM_LIVE or is_at_end:
            return (yield from self._join_live(session, recording))
        if stopped_at == NULL_POSITION and (yield from self._waits_for_recorder(session)):
            return None
        try:
            return (yield from self._replay(session, recording))
        except InvalidPositionError as error:
            raise self._terminal(Reason.INVALID_START_POSITION, str(error)) from error
        except UnknownRecordingError as error:
            raise self._terminal(Reason.RECORDING_NOT_FOUND, str(error)) from error
        except ReplayError as error:  # it had begun: from where it was left another one may do
            self.report(error)
            return None
        except AeronError as error:
            if error.code != RESOURCE_TEMPORARILY_UNAVAILABLE:
                raise
            self.report(error)
            return None

    def _connected(self) -> Turns[ControlSession]:
        while (session := self._link.session) is None:
            if self._aeron.is_closed:
                raise ClosedError("cannot read on: the Aeron client is closed")
            self._enter(PersistentState.AWAIT_ARCHIVE_CONNECTION)
            yield from self._wait_a_turn()
        return session

    def _look_up(self, session: ControlSession) -> Turns[RecordingDescriptor]:
        self._enter(PersistentState.AWAIT_LIST_RECORDING_RESPONSE)
        recording_id = self._order.recording_id
        recording = yield from self._perform(session, list_recording(recording_id))
        if recording is None:
            raise self._terminal(Reason.RECORDING_NOT_FOUND, "there is no such recording")
        live_stream_id = self._order.live_stream_id
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
                f"the recording has stopped at {stop}, before {self._seen_live}, where the live "
                "stream has been",
            )
        if self.position == FROM_START:
            self.position = start
        if self.position >= 0:
            if self.position < start:
                raise self._terminal(
                    Reason.INVALID_START_POSITION,
                    f"position {self.position} is before its start, {start}",
                )
            if stop != NULL_POSITION and self.position > stop:
                raise self._terminal(
                    Reason.INVALID_START_POSITION,
                    f"position {self.position} is after its stop, {stop}",
                )
        return recording

    def _waits_for_recorder(self, session: ControlSession) -> Turns[bool]:
        """Whether more has been read live than is recorded yet; a while has passed if so.

        The archive would refuse a replay from there, as if there were no such position.
        """
        if not 0 <= self.position <= self._seen_live:
            return False
        end = yield from self._perform(session, self._ask_end())
        now_ns = time.monotonic_ns()
        if end >= self.position:
            self._late_at_ns = None
            return False
        if self._late_at_ns is None:
            self._late_at_ns = now_ns + self._timeout_ns
        elif now_ns >= self._late_at_ns:
            self._late_at_ns = now_ns + self._timeout_ns
            self.report(
                AeronTimeoutError(
                    f"recording {self._order.recording_id} is at {end}, before {self.position}, up "
                    f"to where the live stream has been read, for {self._timeout_ns / 1e9:g} s: "
                    "still waiting"
                )
            )
        while time.monotonic_ns() < now_ns + _RECORDER_LATE_NS:
            yield from self._wait_a_turn()
        return True

    def _ask_end(self) -> Steps[int]:
        end: int = yield max_recorded_position(self._order.recording_id)
        return end

    # -- from the recording --------------------------------------------------------------------

    def _replay(
        self, session: ControlSession, recording: RecordingDescriptor
    ) -> Turns[_native.Image | None]:
        self._enter(PersistentState.AWAIT_REPLAY_RESPONSE)
        self._set_join_difference(None)
        replay = yield from self._perform(session, self._opened(session, recording))
        joined: _native.Image | None = None
        watch = self._watch(session, recording)
        try:
            self._enter(PersistentState.REPLAY)
            while (image := replay.image) is not None and not image.is_closed:
                self._ensure_connected(session)
                live = self._live.image()
                if live is not None and not is_same_stream(live, recording):
                    # What was recorded is read first; nobody shall be held up by who does not read.
                    self._tell_of_other(live, recording)
                    self._live.put_off()
                elif live is not None:
                    outcome = yield from self._switch(image, live, replay.order.recorded_as)
                    if outcome is _Switch.JOINED:
                        joined = live
                        break
                    if outcome is _Switch.REPLAY_ENDED:
                        break
                    self._live.close()
                    watch = self._watch(session, recording)
                    self._enter(PersistentState.REPLAY)
                self._read(image, None, _BUSY_SLICE_NS, replay.order.recorded_as)
                yield
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

    def _opened(
        self, session: ControlSession, recording: RecordingDescriptor
    ) -> Steps[ReplayStream]:
        order = self._order
        wish = ReplayWish(
            order.recording_id,
            self.position,
            None,
            order.replay_channel,
            order.replay_stream_id,
            True,
            None,
            None,
            None,
        )
        replay = yield from start_stream(
            self._aeron, session, wish, recording, self.position, None, None
        )
        try:
            yield from replay.await_image()
        except BaseException:
            replay.abandon()
            raise
        return replay

    def _watch(self, session: ControlSession, recording: RecordingDescriptor) -> Stepper[None]:
        return Stepper(session, self._near_the_end(recording.term_buffer_length // 4))

    def _near_the_end(self, distance: int) -> Steps[None]:
        """Come to an end when no more than `distance` bytes are left of the recording."""
        while True:
            try:
                end: int = yield max_recorded_position(self._order.recording_id)
            except AeronTimeoutError:
                continue
            if self.position >= end - distance:
                return
            while self.position < end:
                yield Pause(0, "follow the recording")

    def _switch(
        self,
        replay: _native.Image,
        live: _native.Image,
        recorded_as: tuple[int, int] | None,
    ) -> Turns[_Switch]:
        self._enter(PersistentState.ATTEMPT_SWITCH)
        self._set_join_difference(live.position - replay.position)
        while True:
            if live.position < replay.position:
                live.skip_to(replay.position, _SKIPPED_FRAGMENTS)
            if live.position == replay.position:
                return _Switch.JOINED
            if replay.is_closed:
                self._see_live(live.position)
                return _Switch.REPLAY_ENDED
            if live.is_closed:
                return _Switch.LIVE_LOST
            limit = live.position if live.position > replay.position else None
            self._read(replay, limit, _BUSY_SLICE_NS, recorded_as)
            yield

    # -- from the publisher --------------------------------------------------------------------

    def _join_live(
        self, session: ControlSession, recording: RecordingDescriptor
    ) -> Turns[_native.Image | None]:
        """Wait for the live stream where the recording has nothing more."""
        joined = False
        try:
            while True:
                if not self._live.is_wanted:
                    self._live.begin(recording)
                    self._enter(PersistentState.AWAIT_LIVE)
                yield from self._wait_a_turn()
                self._ensure_connected(session)
                image = self._live.image()
                if image is None:
                    continue
                position = image.position
                self._see_live(position)
                if 0 <= position < self.position:
                    raise self._terminal(
                        Reason.GENERIC,
                        f"the live stream is at {position}, before {self.position}, up to where it "
                        "has been read",
                    )
                if self.position >= 0 and position != self.position:
                    return None  # the recording will have what is missing
                if not is_same_stream(image, recording):
                    raise self._other_stream(image, recording)
                self.position = position
                self._set_join_difference(0)
                joined = True
                return image
        finally:
            if not joined:
                self._live.close()

    def _other_stream(
        self, image: _native.Image, recording: RecordingDescriptor
    ) -> PersistentSubscriptionError:
        return self._terminal(
            Reason.GENERIC,
            f"the live stream is another one than was recorded: it has initial term id "
            f"{image.initial_term_id} and terms of {image.term_buffer_length} bytes, the "
            f"recording {recording.initial_term_id} and {recording.term_buffer_length}",
        )

    def _tell_of_other(self, image: _native.Image, recording: RecordingDescriptor) -> None:
        if image.correlation_id != self._other_id:
            self._other_id = image.correlation_id
            self.report(self._other_stream(image, recording))

    def _read_live(self, image: _native.Image) -> Turns[None]:
        self._enter(PersistentState.LIVE)
        self._tell("live-joined")
        yield
        try:
            while True:
                self._live.image()
                before = self.position
                self._read(image, None, self.slice_ns)
                if not self.backlog and self.position == before and image.is_closed:
                    break
                yield
        finally:
            self._live.close()
        self._see_live(self.position)
        self._tell("live-left")

    # -- what all phases need ------------------------------------------------------------------

    def _read(
        self,
        image: _native.Image,
        limit_position: int | None,
        slice_ns: int,
        recorded_as: tuple[int, int] | None = None,
    ) -> None:
        wait_ns = min(slice_ns, self.slice_ns)
        self.backlog.take(
            self._reader.poll, image, self.fragment_limit, limit_position, wait_ns, recorded_as
        )
        # An image that was closed in the middle of a poll does not show all that was taken.
        self.position = max(self.position, image.position, self._reader.position)

    def _wait_a_turn(self) -> Turns[None]:
        if self.slice_ns > 0:
            time.sleep(min(self.slice_ns, _BUSY_SLICE_NS) / 1e9)
        yield

    def _perform(self, session: ControlSession, steps: Steps[T]) -> Turns[T]:
        stepper = Stepper(session, steps)
        try:
            while not stepper.is_done:
                if not stepper.advance():
                    yield from self._wait_a_turn()
            return stepper.result
        finally:
            stepper.close()

    def _ensure_connected(self, session: ControlSession) -> None:
        if self._link.session is not session:
            raise ClosedError("the archive went away")

    def _see_live(self, position: int) -> None:
        self._seen_live = max(self._seen_live, position)

    def _terminal(self, reason: Reason, why: str) -> PersistentSubscriptionError:
        what = f"cannot read recording {self._order.recording_id}"
        text = f"{what}: {why}"
        return PersistentSubscriptionError(text, reason, self._order.recording_id, self.position)

    def _enter(self, state: PersistentState) -> None:
        if state is not self.state:
            self.state = state
            self._on_state()

    def _set_join_difference(self, difference: int | None) -> None:
        self.join_difference = difference
        self._on_state()

    def _tell(self, kind: str, error: Exception | None = None) -> None:
        position = self.position if self.position >= 0 else -1
        self._on_event(PersistentEvent(kind, position, error))  # type: ignore[arg-type]
