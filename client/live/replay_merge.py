"""Replay merge: a recording from a position on, followed by the live stream without a gap.

One subscription, with destinations added and removed manually, receives both. The archive
replays with the session id of the live stream, so that the driver merges the two in one image:
once the live stream arrives as well, the replay is stopped, and no message is lost or duplicated.
"""

from __future__ import annotations

import contextlib
import enum
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from aerotape import _native, errors
from aerotape.aeron import Aeron, Subscription
from aerotape.channel_uri import ChannelUri
from aerotape.client import channels
from aerotape.client.live.join_rule import is_joined, is_near_live
from aerotape.client.queries import list_recording, max_recorded_position
from aerotape.client.replay.requests import ReplayTarget, start_replay, stop_replay
from aerotape.client.replay.stream import ImageReader
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.exchange import exchange
from aerotape.context import Closing
from aerotape.driver_tasks import add_subscription
from aerotape.formatting import shown
from aerotape.frame_header import to_int32
from aerotape.message import Message, MessageBuffer
from aerotape.protocol import NULL_POSITION
from aerotape.waiting import Responses, Running, Task

DEFAULT_PROGRESS_TIMEOUT_NS: Final = 5_000_000_000

_FRAGMENT_LIMIT: Final = 256
# Between two requests for the position of the recording.
_FIRST_ASK_AGAIN_NS: Final = 8_000_000
_LAST_ASK_AGAIN_NS: Final = 500_000_000
_MERGING_SLICE_NS: Final = 1_000_000
_MERGED_SLICE_NS: Final = 100_000_000


class MergeState(enum.Enum):
    """The state of a replay merge.

    Attributes:
        RESOLVE_REPLAY_PORT: the replay's destination is being added.
        GET_RECORDING_POSITION: the position of the recording is requested.
        REPLAY: the replay is requested.
        CATCHUP: the replay is read.
        ATTEMPT_LIVE_JOIN: the replay is near the end of the recording: the live stream is added.
        MERGED: only the live stream is left.
        FAILED: an error ended it.
        CLOSED: it was closed.
    """

    RESOLVE_REPLAY_PORT = 0
    GET_RECORDING_POSITION = 1
    REPLAY = 2
    CATCHUP = 3
    ATTEMPT_LIVE_JOIN = 4
    MERGED = 5
    FAILED = 6
    CLOSED = 7


@dataclass(frozen=True, slots=True)
class ReplayMergeOptions:
    """The options of a replay merge.

    Attributes:
        position: the start, bytes: the beginning of a frame.
        is_from_start: whether that is the recording's start, which may move before the replay.
        replay_channel: the channel of the replay; the endpoint is filled in.
        replay_destination: where the subscription receives the replay; may have port 0.
        live_destination: where it receives the live stream.
        progress_timeout_ns: how long there may be no progress.
    """

    recording_id: int
    position: int
    is_from_start: bool
    replay_channel: str
    replay_destination: str
    live_destination: str
    progress_timeout_ns: int

    def check(self, subscription_channel: str) -> None:
        """Raise ConfigurationError for options that cannot be merged."""
        given = {
            "replay_channel": self.replay_channel,
            "replay_destination": self.replay_destination,
            "live_destination": self.live_destination,
            "subscription": subscription_channel,
        }
        for name, channel in given.items():
            if ChannelUri.parse(channel).is_ipc:
                raise errors.ConfigurationError(
                    f"cannot merge with {channel}: only UDP streams can be merged; for IPC use a "
                    "persistent subscription",
                    name,
                )
        if ChannelUri.parse(subscription_channel).get("control-mode") != "manual":
            raise errors.ConfigurationError(
                f"cannot merge into {subscription_channel}: it needs control-mode=manual",
                "subscription",
            )
        if ChannelUri.parse(self.replay_destination).get("endpoint") is None:
            raise errors.ConfigurationError(
                f"cannot replay to {self.replay_destination}: it has no endpoint",
                "replay_destination",
            )


class ReplayMerge(ImageReader, Closing):
    """A replay that continues as the live stream. Created by `ArchiveClient.replay_merge`.

    Iterate it for messages: first those of the recording, then the live ones, until the live
    stream ends. Or call `poll` (or `do_work`, and read `image`) in your own loop.
    For one thread.
    """

    def __init__(
        self,
        session: ClientSession,
        options: ReplayMergeOptions,
        subscription: Subscription,
        owns_subscription: bool,
    ) -> None:
        """Start. Raises ConfigurationError for options that cannot be merged."""
        options.check(subscription.channel)
        super().__init__(options.position)
        self._session = session
        self._options = options
        self._subscription = subscription
        self._owns_subscription = owns_subscription
        self._reader = _native.MessageReader()
        self._backlog = MessageBuffer()
        self._replay_session_id: int | None = None
        self._has_replay_destination = False
        self._is_live_added = False
        self._state = MergeState.RESOLVE_REPLAY_PORT
        self._target = NULL_POSITION
        self._progress_ns = time.monotonic_ns()
        self._progress_position = options.position
        self._running = Running(self._merge())

    @property
    def state(self) -> MergeState:
        """The step of the merge: from the replay to the live stream."""
        return self._state

    @property
    def is_merged(self) -> bool:
        """Whether the replay has been stopped and only the live stream is left."""
        return self._state is MergeState.MERGED

    @property
    def has_failed(self) -> bool:
        """Whether an error ended it; `poll` raised it."""
        return self._state is MergeState.FAILED

    @property
    def is_live_added(self) -> bool:
        """Whether the subscription has the live destination."""
        return self._is_live_added

    @property
    def subscription(self) -> Subscription:
        """The subscription that receives both."""
        return self._subscription

    # -- reading -------------------------------------------------------------------------------

    def do_work(self) -> bool:
        """Do one duty cycle of merging, without blocking; return whether there was work.

        Raises:
            AeronError: the media driver refuses a destination.
            AeronTimeoutError: no progress for the timeout; reading is progress.
            ArchiveError: the archive refuses: UNKNOWN_RECORDING, MAX_REPLAYS, INVALID_POSITION, …
            ReplayError: the replay ended before the live stream arrived.
            ClosedError: the archive went away.
        """
        if self._running.is_done or self.has_failed:
            return False
        try:
            has_worked = self._running.advance()
            if not self._running.is_done:
                self._check_progress()
            return has_worked
        except BaseException:
            self._state = MergeState.FAILED
            raise

    def poll(self, fragment_limit: int = _FRAGMENT_LIMIT, timeout_ns: int = 0) -> list[Message]:
        """Do one duty cycle of merging and return the messages read.

        Args:
            fragment_limit: the most fragments to read.
            timeout_ns: how long to wait for the first message. Default: do not wait.

        Raises:
            AerotapeError: as `do_work`.
        """
        if not self._backlog:
            self._fetch(fragment_limit, timeout_ns)
        return self._backlog.messages()

    def _fetch(self, fragment_limit: int, timeout_ns: int) -> None:
        """As `poll`, into the backlog."""
        deadline_ns = time.monotonic_ns() + timeout_ns
        while True:
            has_worked = self.do_work()
            slice_ns = min(
                max(deadline_ns - time.monotonic_ns(), 0),
                _MERGED_SLICE_NS if self.is_merged else _MERGING_SLICE_NS,
            )
            self._read(fragment_limit, 0 if has_worked else slice_ns)
            if self._backlog or self.has_ended or time.monotonic_ns() >= deadline_ns:
                return

    def __iter__(self) -> Iterator[Message]:
        # Messages left in it by an earlier iteration come first.
        backlog = self._backlog
        while self._state is not MergeState.CLOSED:
            if not backlog:
                self._fetch(_FRAGMENT_LIMIT, _MERGED_SLICE_NS)
                if not backlog and self.has_ended:
                    return
            yield from backlog.drain()

    def _read(self, fragment_limit: int, timeout_ns: int) -> None:
        image = self._image
        if image is not None:
            self._backlog.take(self._reader.poll, image, fragment_limit, None, timeout_ns)
        elif timeout_ns > 0:
            time.sleep(timeout_ns / 1e9)

    @property
    def has_ended(self) -> bool:
        """Whether there will be no further message: failed, closed, or the live stream ended."""
        if self._state in (MergeState.FAILED, MergeState.CLOSED):
            return True
        return self.is_merged and self._image is not None and self._image.is_closed

    # -- merging -------------------------------------------------------------------------------

    def _merge(self) -> Task[None]:
        channel = yield from self._ready_to_receive()
        self._enter(MergeState.GET_RECORDING_POSITION)
        yield from self._ask_target(0)
        self._enter(MergeState.REPLAY)
        image = yield from self._replay(channel)
        self._enter(MergeState.CATCHUP)
        ask_again_ns = 0
        while True:
            while self.position < self._target:
                self._check_image(image)
                yield Responses(self._session, self._what())
            self._enter(MergeState.ATTEMPT_LIVE_JOIN)
            ask_again_ns = yield from self._ask_target(ask_again_ns)
            self._check_image(image)
            missing = self._target - self.position
            if not self._is_live_added:
                if is_near_live(image, missing):
                    yield from self._add_destination(self._options.live_destination)
                    self._is_live_added = True
                    ask_again_ns = 0
            elif is_joined(image, missing):
                break
            self._enter(MergeState.CATCHUP)
        self._end_replay()
        self._enter(MergeState.MERGED)

    def _ready_to_receive(self) -> Task[ChannelUri]:
        """Add the replay's destination and return the channel that reaches it."""
        destination = self._options.replay_destination
        channel = ChannelUri.parse(self._options.replay_channel)
        # The end of the replay is not the end of the stream.
        channel.put("linger", "0")
        channel.put("eos", "false")
        yield from self._add_destination(destination)
        self._has_replay_destination = True
        endpoint = ChannelUri.parse(destination).get("endpoint")
        if channels.has_wildcard_port(destination):
            while (endpoint := self._subscription.resolved_endpoint()) is None:
                yield Responses(self._session, self._what())
        assert endpoint is not None, "checked at the beginning"
        channel.put("endpoint", endpoint)
        return channel

    def _add_destination(self, destination: str) -> Task[None]:
        pending = self._subscription.native.async_add_destination(destination)
        while not pending.poll():
            yield Responses(self._session, self._what())

    def _ask_target(self, wait_ns: int) -> Task[int]:
        """Request the position of the recording; return how long to wait before the next time."""
        while True:
            if wait_ns:
                yield Responses(self._session, self._what(), wait_ns)
            asked = max_recorded_position(self._options.recording_id)
            self._target = yield from exchange(self._session, asked)
            self._progress_ns = time.monotonic_ns()
            wait_ns = min(max(2 * wait_ns, _FIRST_ASK_AGAIN_NS), _LAST_ASK_AGAIN_NS)
            if self._target != NULL_POSITION:
                return wait_ns

    def _replay(self, channel: ChannelUri) -> Task[_native.Image]:
        recording_id, stream_id = self._options.recording_id, self._subscription.stream_id
        target = ReplayTarget(str(channel), stream_id)
        position = None if self._options.is_from_start else self._options.position
        answer = yield from start_replay(self._session, recording_id, target, position=position)
        self._replay_session_id = answer.relevant_id
        self._progress_ns = time.monotonic_ns()
        session_id = to_int32(answer.relevant_id)
        native = self._subscription.native
        while (image := native.image_by_session_id(session_id)) is None:
            yield Responses(self._session, self._what())
        self._image = image
        return image

    def _enter(self, state: MergeState) -> None:
        self._state = state
        self._progress_ns = time.monotonic_ns()

    def _check_image(self, image: _native.Image) -> None:
        if image.is_closed:
            replay_session_id = -1 if self._replay_session_id is None else self._replay_session_id
            raise errors.ReplayError(
                f"{self._what()}: the replay ended before the live stream arrived",
                recording_id=self._options.recording_id,
                replay_session_id=replay_session_id,
                position=self.position,
            )

    def _check_progress(self) -> None:
        if self.position > self._progress_position:
            self._progress_position = self.position
            self._progress_ns = time.monotonic_ns()
            return
        if time.monotonic_ns() - self._progress_ns <= self._options.progress_timeout_ns:
            return
        transports = 0 if self._image is None else self._image.active_transport_count
        raise errors.AeronTimeoutError(
            f"{self._what()}: no progress for {self._options.progress_timeout_ns / 1e9:g} s in "
            f"state {self._state.name} at position {self.position} of {self._target} "
            f"({transports} active transports)"
        )

    def _what(self) -> str:
        return (
            f"merge the replay of recording {self._options.recording_id} with "
            f"{self._options.live_destination}"
        )

    # -- the end -------------------------------------------------------------------------------

    def _end_replay(self) -> None:
        """Stop the replay and remove its destination, without waiting."""
        if self._has_replay_destination:
            self._has_replay_destination = False
            with contextlib.suppress(errors.ClosedError, errors.AeronError):  # it is gone already
                self._subscription.native.async_remove_destination(self._options.replay_destination)
        replay_session_id, self._replay_session_id = self._replay_session_id, None
        if replay_session_id is not None:
            self._session.send_unanswered(stop_replay(replay_session_id))

    def close(self) -> None:
        """Stop the replay if it is running, and close the subscription unless it is the caller's.

        A subscription of the caller retains the live destination. Idempotent.
        """
        if self._state is MergeState.CLOSED:
            return
        with contextlib.suppress(errors.AerotapeError):
            self._running.close()
        self._end_replay()
        self._state = MergeState.CLOSED
        self._detach_image()
        if self._owns_subscription:
            self._subscription.close()

    def __repr__(self) -> str:
        options = ("_options.recording_id", "_options.live_destination")
        return shown(self, *options, "state", "position")


def default_destination(replay_channel: str) -> str:
    """Return the channel of a subscription to a replay to the default channel."""
    is_ipc = ChannelUri.parse(replay_channel).is_ipc
    return "aeron:udp?endpoint=localhost:0" if is_ipc else replay_channel


def open_replay_merge(
    session: ClientSession,
    aeron: Aeron,
    recording_id: int,
    live_destination: str,
    position: int | None,
    *,
    subscription: Subscription | None,
    replay_channel: str | None,
    replay_destination: str,
    progress_timeout_ns: int,
) -> Task[ReplayMerge]:
    """Look up a recording and start to merge a replay of it."""
    descriptor = yield from list_recording(session, recording_id)
    if descriptor is None:
        raise errors.UnknownRecordingError(
            f"cannot merge a replay of recording {recording_id}: there is no such recording",
            recording_id,
        )
    session_id = descriptor.session_id
    options = ReplayMergeOptions(
        recording_id,
        descriptor.start_position if position is None else position,
        position is None,
        replay_channel or f"aeron:udp?session-id={session_id}",
        replay_destination,
        live_destination,
        progress_timeout_ns,
    )
    if subscription is not None:
        return ReplayMerge(session, options, subscription, False)
    channel = f"aeron:udp?control-mode=manual|session-id={session_id}"
    options.check(channel)
    added = yield from add_subscription(
        aeron.native, channel, descriptor.stream_id, session.timeout_ns
    )
    return ReplayMerge(session, options, Subscription(added), True)
