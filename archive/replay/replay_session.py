"""Replays: requests checked, publications added, and sessions of the native replayer.

A replay request is checked against the catalog, then an exclusive publication is added that begins
at the replay's position, with the recording's term length and MTU. Once the driver has added it,
the native replayer takes over: it checks that a frame begins at the position, reports the replay as
ready, streams the recording, and reports the end.

The client is sent OK when the replay is ready, before its publication is connected. The replayer
sends it, in the order of the session's responses (`deferred_ok`), so the client need not wait for a
duty cycle of the conductor. The conductor sends it (`on_ready`) if responses were queued when the
replay was handed over, or the replayer met back pressure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from aerotape.archive.replay.request import (
    ReplayPlan,
    RequestedReplay,
    check_deletion,
    check_descriptor,
    plan,
    replay_channel,
    replay_session_id,
)
from aerotape.catalog.descriptor import segment_base
from aerotape.catalog.segment_files import segment_file_name
from aerotape.channel_uri import ChannelUri
from aerotape.counter_keys import replay_alias
from aerotape.driver_tasks import add_publication
from aerotape.errors import (
    AerotapeError,
    ArchiveError,
    ClosedError,
    ConfigurationError,
)
from aerotape.protocol import NULL_VALUE, ErrorCode
from aerotape.waiting import SOON_NS, Running
from aerotape.worker_arguments import ReplayArguments

if TYPE_CHECKING:
    from aerotape._native import (
        AeronClient,
        Counter,
        CountersReader,
        ExclusivePublication,
        ReplayProgress,
        SessionWorker,
    )
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.recording.recordings import Recordings
    from aerotape.archive.replay.requester import ReplayRequester
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.catalog.file.catalog import Catalog

_COUNTER_ALLOCATED = 1


class BoundingCounter(NamedTuple):
    """A counter of another client that bounds a replay."""

    counter_id: int
    registration_id: int


@dataclass(slots=True, eq=False)
class ReplaySession:
    """One replay: waits for its publication, then belongs to the native replayer.

    Attributes:
        session_id: of the publication, once the replayer has it.
        is_ok_sent: whether the client was sent OK.
    """

    requester: ReplayRequester
    correlation_id: int
    request: RequestedReplay
    plan: ReplayPlan
    descriptor: RecordingDescriptor
    channel: str
    limit_counter: Counter | BoundingCounter | None
    pending: Running[ExclusivePublication]
    session_id: int = NULL_VALUE
    progress: ReplayProgress | None = None
    is_ok_sent: bool = False

    @property
    def recording_id(self) -> int:
        return self.request.recording_id

    @property
    def key(self) -> int:
        """Id of the recording, which no other recording has, imported or not."""
        return self.request.key

    @property
    def state(self) -> str:
        """The reference's name of its state."""
        return "REPLAY" if self.is_ok_sent else "INIT"

    @property
    def position(self) -> int:
        """Position of the next frame to be replayed, bytes."""
        return self.plan.position if self.progress is None else self.progress.position


@dataclass(eq=False, kw_only=True)
class Replays:
    """All replays of the archive.

    Attributes:
        deleted_up_to: base position of the last segment of a recording that is being deleted.
    """

    config: ArchiveConfig
    archive_id: int
    client: AeronClient
    catalog: Catalog
    recordings: Recordings
    replayer: SessionWorker
    session_counter: Counter
    errors: ErrorLog
    deleted_up_to: Callable[[int], int | None]
    _next_replay_id: int = field(default=1, init=False)
    # Requests for recordings whose position counter the driver has not added yet.
    _waiting: deque[tuple[ReplayRequester, int, RequestedReplay]] = field(
        default_factory=deque, init=False
    )
    _pending: list[ReplaySession] = field(default_factory=list, init=False)
    _sessions: dict[int, ReplaySession] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._counters: CountersReader = self.client.counters()

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: responses of the driver are pending."""
        return SOON_NS if self._pending or self._waiting else None

    def __len__(self) -> int:
        return len(self._pending) + len(self._sessions)

    def start(
        self, requester: ReplayRequester, correlation_id: int, request: RequestedReplay
    ) -> None:
        """Check a request and request its publication, or respond with an error."""
        try:
            self._start(requester, correlation_id, request)
        except ArchiveError as error:
            requester.send_error(correlation_id, error.error_code, str(error))
        except ConfigurationError as error:
            what = f"failed to process replayChannel - {error}"
            self.errors.record("replay not started", what)
            requester.send_error(correlation_id, ErrorCode.GENERIC, what)
        except ClosedError:
            raise
        except AerotapeError as error:
            self.errors.record("replay not started", error)
            requester.send_error(correlation_id, ErrorCode.GENERIC, str(error))

    def _start(
        self, requester: ReplayRequester, correlation_id: int, request: RequestedReplay
    ) -> None:
        limit_counter: Counter | BoundingCounter | None = None
        if request.limit_counter_id is not None:
            limit_counter = self._bound(request.limit_counter_id)
        limit = self.config.max_concurrent_replays
        if len(self) >= limit:
            raise ArchiveError(
                f"max concurrent replays reached {limit}: stop one, or raise"
                " aeron.archive.max.concurrent.replays",
                ErrorCode.MAX_REPLAYS,
            )
        recording_id = request.recording_id
        if request.imported is not None:
            self._add(requester, correlation_id, request, request.imported.descriptor, None, None)
            return
        if not self.catalog.has_recording(recording_id):
            raise ArchiveError(f"unknown recording id: {recording_id}", ErrorCode.UNKNOWN_RECORDING)
        limit_position: int | None = None
        if request.limit_counter_id is not None:
            limit_position = self._counters.value(request.limit_counter_id)
        elif (recording := self.recordings.session(recording_id)) is not None:
            if recording.is_starting:
                self._waiting.append((requester, correlation_id, request))
                return
            limit_counter = recording.counter
            limit_position = recording.position
        descriptor = self.catalog.descriptor(recording_id)
        self._add(requester, correlation_id, request, descriptor, limit_counter, limit_position)

    def _add(
        self,
        requester: ReplayRequester,
        correlation_id: int,
        request: RequestedReplay,
        descriptor: RecordingDescriptor,
        limit_counter: Counter | BoundingCounter | None,
        limit_position: int | None,
    ) -> None:
        """Check a request against its recording, and request a publication (ArchiveError)."""
        is_own = request.imported is None
        recording = self.recordings.session(request.recording_id) if is_own else None
        check_descriptor(descriptor, is_live=recording is not None)
        replay_plan = plan(request, descriptor, limit_position, self.config.file_io_max_length)
        deleted_up_to = self.deleted_up_to(request.recording_id) if is_own else None
        check_deletion(replay_plan, descriptor, deleted_up_to)
        channel = replay_channel(
            request.channel,
            descriptor,
            replay_plan.position,
            self.config.replay_linger_timeout_ns,
        )
        # Errors have the channel as clients of the reference know it, without our alias.
        named = ChannelUri.parse(channel)
        if is_own and named.get("alias") is None:
            named.put("alias", replay_alias(self.archive_id, request.recording_id))
        session = ReplaySession(
            requester,
            correlation_id,
            request,
            replay_plan,
            descriptor,
            channel,
            limit_counter,
            Running(
                add_publication(
                    self.client, str(named), request.stream_id, self.config.connect_timeout_ns
                )
            ),
        )
        session.pending.advance()
        self._pending.append(session)

    def _bound(self, counter_id: int) -> BoundingCounter:
        if not 0 <= counter_id <= self._counters.max_counter_id or (
            self._counters.state(counter_id) != _COUNTER_ALLOCATED
        ):
            raise ArchiveError(
                f"unable to create replay limit counter id= {counter_id} because of: Counter id is"
                f" not allocated: {counter_id}"
            )
        return BoundingCounter(counter_id, self._counters.registration_id(counter_id))

    def do_work(self) -> None:
        """Start the requests that waited, and poll the driver for publications."""
        for _ in range(len(self._waiting)):
            self.start(*self._waiting.popleft())
        for session in list(self._pending):
            try:
                session.pending.advance()
            except AerotapeError as error:
                self._pending.remove(session)
                self._fail(session, error)
                continue
            if session.pending.is_done:
                self._pending.remove(session)
                self._begin(session, session.pending.result)

    def _fail(self, session: ReplaySession, error: AerotapeError) -> None:
        what = f"failed to create replay publication: {error}"
        self.errors.record("replay not started", what)
        session.requester.send_error(session.correlation_id, ErrorCode.GENERIC, what)

    def _begin(self, session: ReplaySession, publication: ExclusivePublication) -> None:
        replay_id = replay_session_id(self._next_replay_id, publication.session_id)
        self._next_replay_id += 1
        session.session_id = publication.session_id
        descriptor, limit_counter = session.descriptor, session.limit_counter
        position, length = session.plan.position, session.plan.length
        stop_position = session.plan.stop_position
        if (
            limit_counter is not None
            and not isinstance(limit_counter, BoundingCounter)
            and limit_counter.is_closed
        ):
            # The recording has ended since the request. Its stop position is -1 if it could not
            # be written: then nothing is left to replay.
            limit_counter = None
            stop_position = max(self.catalog.stop_position(session.recording_id), position)
            length = min(length, stop_position - position)
        self._sessions[replay_id] = session
        self.session_counter.add(1)
        request = session.request
        file_io_max_length = request.file_io_max_length or 0
        try:
            arguments = ReplayArguments(
                replay_session_id=replay_id,
                recording_id=session.recording_id,
                replay_position=position,
                replay_length=length,
                start_position=descriptor.start_position,
                stop_position=stop_position,
                segment_length=descriptor.segment_file_length,
                term_length=descriptor.term_buffer_length,
                stream_id=descriptor.stream_id,
                channel=session.channel,
                connect_timeout_ns=self.config.connect_timeout_ns,
                limit_counter=limit_counter,
                file_io_max_length=file_io_max_length if file_io_max_length > 0 else None,
                answer=session.requester.deferred_ok(session.correlation_id, replay_id),
                archive_dir=None if request.imported is None else request.imported.directory,
            )
            session.progress = self.replayer.replay(publication, arguments)
        except AerotapeError as error:
            publication.revoke()
            self.on_done(replay_id, position, ErrorCode.GENERIC, str(error))

    def on_ready(self, replay_id: int, *, is_ok_sent: bool) -> None:
        """Send the client OK with the replay id, unless the replayer has sent it."""
        session = self._sessions.get(replay_id)
        if session is None:
            return
        session.is_ok_sent = True
        if not is_ok_sent:
            session.requester.send_ok(session.correlation_id, replay_id)

    def on_done(self, replay_id: int, position: int, error_code: int, message: str | None) -> None:
        """Remove a replay that has ended; send the client an error if it failed."""
        session = self._sessions.pop(replay_id, None)
        if session is None:
            return
        self.session_counter.add(-1)
        if message is not None:
            base = segment_base(session.descriptor, position)
            detail = (
                f"{message}, recordingId={session.recording_id}, replaySessionId={replay_id},"
                f" segmentFile={segment_file_name(session.recording_id, base)}"
            )
            self.errors.record("replay failed", detail)
            session.requester.send_error(session.correlation_id, error_code, detail)
        elif not session.is_ok_sent:
            session.requester.send_error(
                session.correlation_id,
                ErrorCode.GENERIC,
                f"the replay of recording {session.recording_id} was stopped before it began",
            )

    def stop(self, replay_id: int) -> bool:
        """Stop a replay; False when none with this id is running."""
        is_running = replay_id in self._sessions
        if is_running:
            self.replayer.stop_replay(replay_id)
        return is_running

    def stop_all(self, recording_id: int = NULL_VALUE) -> None:
        """Stop all replays, or all of one recording."""
        for replay_id, session in self._sessions.items():
            if recording_id in (NULL_VALUE, session.key):
                self.replayer.stop_replay(replay_id)

    def end_all(self, recording_id: int) -> Callable[[], bool]:
        """Stop all replays of a recording that will lose data.

        Those that have not begun fail with an error.

        Returns:
            A function that returns whether they have all ended; later replays do not count.
        """
        for session in list(self._pending):
            if session.key == recording_id:
                self._pending.remove(session)
                session.pending.close()
                # A client looks the recording up once more after this code.
                session.requester.send_error(
                    session.correlation_id,
                    ErrorCode.INVALID_POSITION,
                    f"recording {recording_id} has been changed before its replay began",
                )
        ending = [
            replay_id
            for replay_id, session in self._sessions.items()
            if session.key == recording_id
        ]
        self.stop_all(recording_id)
        return lambda: self._sessions.keys().isdisjoint(ending)

    def lowest(self, recording_id: int) -> ReplaySession | None:
        """Return the replay of a recording at the lowest position; None without replays."""
        sessions = (*self._pending, *self._sessions.values())
        of_recording = (session for session in sessions if session.key == recording_id)
        return min(of_recording, key=lambda session: session.position, default=None)

    def lowest_positions(self) -> dict[int, int]:
        """Return the lowest position of its replays, by the key of the recording."""
        lowest: dict[int, int] = {}
        for session in (*self._pending, *self._sessions.values()):
            position = session.position
            lowest[session.key] = min(position, lowest.get(session.key, position))
        return lowest

    def is_replayed(self, recording_id: int) -> bool:
        """Whether a recording has replays, also such as wait for their publication."""
        return self.lowest(recording_id) is not None

    def close(self) -> None:
        """Cancel the publications that the replayer does not own."""
        for session in self._pending:
            session.pending.close()
        self._pending.clear()
        self._sessions.clear()
