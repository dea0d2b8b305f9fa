"""One replication: a recording of another archive is copied to, or extends, one of this archive.

    (connect) -> describe -> REPLICATE -> (extend) -> EXTEND -> (replay)
                    |                                             |
                    |    without live destination: (follow) <-----+-----> (catch up)
                    |                                  |                      |
                    +--- in sync -----------------> SYNC                (join live stream)
                                                       |                      |
                                                       |                    MERGE
                                                       +-> REPLICATE_END <----+

In capitals: the signals that the client receives; SYNC only at the end of the source recording,
REPLICATE only for a new recording. An error, a stop or the end of the recording leads from any
step to REPLICATE_END, which `close` sends.

The session with the source is a client's (`client`): the replication is one task, which is
advanced in each duty cycle.
"""

from __future__ import annotations

from dataclasses import InitVar, asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from aerotape.archive.replication import live_join
from aerotape.archive.replication.request import (
    ReplicationRequest,
    recording_channel,
    replay_channel,
    replay_destination,
)
from aerotape.archive.replication.source_requests import (
    ReplicationError,
    connect,
    in_time,
    no_live_source,
    source_descriptor,
    source_position,
)
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.channel_uri import ChannelUri
from aerotape.client.replay.requests import exchange_over_response_channel, stop_replay
from aerotape.client.session.exchange import exchange
from aerotape.client.session.request import Call, relevant_id
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import RecordingSignal, SourceLocation
from aerotape.driver_tasks import wait_for
from aerotape.errors import ArchiveError, ClosedError, InvalidPositionError
from aerotape.frame_header import to_int32
from aerotape.protocol import NULL_POSITION, NULL_VALUE, ErrorCode
from aerotape.waiting import Pause, Running, Task

if TYPE_CHECKING:
    from aerotape._native import AeronClient, Image, Subscription
    from aerotape.archive.recording.observer import RecordingObserver
    from aerotape.archive.recording.recordings import Recordings
    from aerotape.archive.recording.subscriptions import RecordedSubscription
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.client.session.client_session import ClientSession


@dataclass(eq=False)
class ReplicationSession:
    """One replication. All methods are for the conductor's thread.

    It starts with the first `do_work`.

    Attributes:
        observer: is notified of signals and errors, also of those of the recording.
        opening: the task that opens the session with the source archive.
        replication_id: the id for clients.
        dst_recording_id: the recording of this archive; -1 until there is one.
        is_done: whether only `close` is left to do.
        is_quiet: whether it follows a source that sends nothing at the moment.
        failure: the error that ended it, or None.
    """

    replication_id: int
    request: ReplicationRequest
    observer: RecordingObserver
    opening: InitVar[Task[ClientSession]]
    aeron: AeronClient
    catalog: Catalog
    recordings: Recordings
    is_done: bool = field(default=False, init=False)
    is_quiet: bool = field(default=False, init=False)
    failure: Exception | None = field(default=None, init=False)
    _recording: RecordedSubscription | None = field(default=None, init=False)
    _src_stop_position: int = field(default=NULL_POSITION, init=False)
    _src_replay_id: int | None = field(default=None, init=False)
    # The session with the source, and what follows the connect.
    _source: ClientSession | None = field(default=None, init=False)
    _replicating: Running[None] | None = field(default=None, init=False)

    def __post_init__(self, opening: Task[ClientSession]) -> None:
        self.dst_recording_id = self.request.dst_recording_id
        self._opening = Running(connect(opening))

    def do_work(self) -> None:
        """Advance by one step. An error ends the session; only a lost driver is raised."""
        if self.is_done:
            return
        if self._recording is not None and self._recording.is_stopping:
            self.is_done = True
            return
        try:
            self._advance()
        except Exception as error:
            self.is_done = True
            if isinstance(error, ClosedError) and self.aeron.is_closed:
                raise
            self._fail(error)

    def _advance(self) -> None:
        if self._source is None or self._replicating is None:
            self._opening.advance()
            if self._opening.is_done:
                self._source = self._opening.result
                self._replicating = Running(self._replicate(self._source))
            return
        self._source.service(what="continue")
        self._replicating.advance()
        self.is_done = self._replicating.is_done
        if not self.is_done:
            for error in self._source.take_errors():
                raise error

    def _fail(self, error: Exception) -> None:
        self.is_done = True
        self.failure = error
        code = error.error_code if isinstance(error, ReplicationError) else ErrorCode.GENERIC
        self.observer.on_failed(code, str(error))

    def recording_stopped(self, position: int) -> None:
        """Handle the end of the recording, before its STOP signal is sent.

        Args:
            position: the stop position, bytes.
        """
        if self.is_done or self._recording is None:
            return
        self.is_done = True
        if self.request.live_destination and not self._recording.is_stopping:
            self._fail(ArchiveError("replication image closed unexpectedly"))
        elif self._is_synced(position):
            self._signal(position, RecordingSignal.SYNC)
        # Its subscription is closed with it.
        self._recording = None

    def close(self) -> None:
        """End the replication in any state: the recording is stopped and stays as it is."""
        self.is_done = True
        self._opening.close()
        if self._replicating is not None:
            self._replicating.close()
        self._stop_recording()
        if self._source is not None:
            if self._src_replay_id is not None:
                self._source.send_unanswered(stop_replay(self._src_replay_id))
            self._source.close()
        self._signal(NULL_POSITION, RecordingSignal.REPLICATE_END)

    # ---- the task -----------------------------------------------------------------------------

    def _replicate(self, session: ClientSession) -> Task[None]:
        try:
            begun = yield from self._begin(session)
        except InvalidPositionError:
            # The source may have changed since it was described: stopped, lost segments, ...
            self._stop_recording()
            begun = yield from self._begin(session)
        if begun is None:
            return
        subscription, image, live_position = begun
        try:
            if live_position is None:
                yield from self._follow(image)
            else:
                yield from live_join.catch_up(image, live_position)
                yield from self._join_live(session, image, subscription)
        finally:
            image.release()

    def _begin(self, session: ClientSession) -> Task[tuple[Subscription, Image, int | None] | None]:
        """Describe the source, and record a replay of what is missing; None: nothing is.

        Returns:
            The recording's subscription and image, and the position of the live stream to join.
        """
        source = yield from source_descriptor(session, self.request.src_recording_id)
        self._src_stop_position = source.stop_position
        yield from self.recordings.changes.await_disk()
        begin = self._prepare(source)
        if self.request.live_destination and not source.is_active:
            raise no_live_source()
        if source.stop_position in (
            source.start_position,
            self.catalog.stop_position(self.dst_recording_id),
        ):
            self._signal(source.stop_position, RecordingSignal.SYNC)
            return None
        live_position = None
        if self.request.live_destination:
            live_position = yield from source_position(session, source.recording_id)
        session_id = self.request.replication_session_id
        if self.request.live_destination or session_id == NULL_VALUE:
            session_id = source.session_id
        try:
            recording = self._recording = self.recordings.start(
                self.observer,
                extends=self.dst_recording_id,
                stream_id=source.stream_id,
                channel=recording_channel(self.request, self.replication_id, session_id),
                source_location=SourceLocation.REMOTE,
                auto_stop=True,
                durability=self.request.durability,
            )
        except ArchiveError as error:
            raise ReplicationError(str(error), error.error_code) from error
        subscription = yield from wait_for(
            lambda: recording.subscription,
            "failed to subscribe to the replay: timeout",
            session.timeout_ns,
        )
        if self.request.has_destinations:
            yield from live_join.add_destination(
                subscription, replay_destination(self.request), session.timeout_ns
            )
        image = yield from self._replay(session, source, begin, session_id, subscription)
        return subscription, image, live_position

    def _prepare(self, source: RecordingDescriptor) -> int:
        """Create or check the recording to extend; return the position where it continues."""
        limit = self.request.file_io_max_length
        if limit != NULL_VALUE and limit < source.mtu_length:
            raise ArchiveError(
                # The word that comes twice does so in the reference.
                f"Replication fileIoMaxLength ({limit}) is less than than the recording mtuLength"
                f" ({source.mtu_length})"
            )
        # An empty replica ends at its start position.
        empty = replace(
            source,
            recording_id=self.dst_recording_id,
            stop_position=source.start_position,
            stop_timestamp_ms=source.start_timestamp_ms,
        )
        if self.dst_recording_id == NULL_VALUE:
            fields = asdict(empty)
            del fields["recording_id"]
            self.dst_recording_id = self.catalog.add_recording(**fields)
            self._signal(source.start_position, RecordingSignal.REPLICATE)
            return source.start_position
        destination = stopped_destination(self.catalog, self.recordings, self.dst_recording_id)
        if destination.start_position == destination.stop_position:
            # Its start position may change, which work on its segments does not expect.
            if self.recordings.locks.is_locked(self.dst_recording_id):
                raise ArchiveError(
                    f"cannot replicate to recording {self.dst_recording_id} while its segments are"
                    " being deleted or moved"
                )
            self.catalog.replace_recording(empty)
            return source.start_position
        return destination.stop_position

    def _replay(
        self,
        session: ClientSession,
        source: RecordingDescriptor,
        begin: int,
        session_id: int,
        subscription: Subscription,
    ) -> Task[Image]:
        """Request a replay from `begin` and wait for its image and recording."""
        request, timeout_ns = self.request, session.timeout_ns
        endpoint = None
        if ChannelUri.parse(request.replication_channel).get("endpoint") is not None:
            endpoint = yield from wait_for(
                subscription.resolved_endpoint,
                f"failed to resolve subscription endpoint: channel={subscription.channel}: timeout",
                timeout_ns,
            )
        stop = request.stop_position
        call = Call(
            codecs.ReplayRequest(
                recording_id=source.recording_id,
                position=begin,
                length=NULL_VALUE if stop == NULL_POSITION else stop - begin,
                replay_stream_id=source.stream_id,
                file_io_max_length=request.file_io_max_length,
                replay_token=NULL_VALUE,
                replay_channel=replay_channel(
                    request,
                    resolved_endpoint=endpoint,
                    replay_session_id=session_id,
                    subscription_id=subscription.registration_id,
                ),
            ),
            f"replay recording {source.recording_id}",
            relevant_id,
        )
        asked = exchange(session, call)
        if request.uses_response_channel:
            asked = exchange_over_response_channel(session, call, subscription.registration_id)
        what = f"get acknowledgement of replay request to: {request.replication_channel}"
        replay_id = self._src_replay_id = yield from in_time(asked, what)
        image_session_id = to_int32(replay_id)
        late = (
            f"failed get replay image for sessionId={image_session_id} on"
            f" channel={subscription.channel}: timeout"
        )
        image = yield from wait_for(
            lambda: subscription.image_by_session_id(image_session_id), late, timeout_ns
        )
        # The client receives EXTEND before SYNC, however short the recording is.
        yield from wait_for(lambda: self._is_recorded() or None, late, timeout_ns)
        return image

    def _follow(self, image: Image) -> Task[None]:
        """Wait for the end of the replay."""
        stop = self.request.stop_position
        position = NULL_POSITION
        while True:
            has_ended = image.is_closed or image.is_end_of_stream
            before, position = position, image.position
            self.is_quiet = position == before
            if self._is_synced(position):
                self._signal(position, RecordingSignal.SYNC)
            elif not has_ended and not NULL_POSITION < stop <= position:
                yield Pause()
                continue
            # The source ends the replay without a request.
            self._src_replay_id = None
            return

    def _join_live(
        self, session: ClientSession, image: Image, subscription: Subscription
    ) -> Task[None]:
        """Join the live stream; the recording then continues without the replication."""
        request = self.request
        position = yield from live_join.join(
            session, request.src_recording_id, image, subscription, request.live_destination
        )
        # Not awaited: the driver removes it whether it is polled or not.
        subscription.async_remove_destination(replay_destination(request))
        self._recording = None
        self._signal(position, RecordingSignal.MERGE)

    # ---- within -------------------------------------------------------------------------------

    def _stop_recording(self) -> None:
        if self._recording is not None:
            # What the source has not sent yet is replicated another time.
            self.recordings.stop_subscription(self._recording.registration_id, settle_ns=0)
            self._recording = None

    def _is_synced(self, position: int) -> bool:
        return NULL_POSITION < self._src_stop_position <= position

    def _is_recorded(self) -> bool:
        recording = self.recordings.session(self.dst_recording_id)
        return recording is not None and recording.counter is not None

    def _signal(self, position: int, signal: RecordingSignal) -> None:
        subscription_id = NULL_VALUE if self._recording is None else self._recording.registration_id
        self.observer.on_signal(self.dst_recording_id, subscription_id, position, signal)


def stopped_destination(
    catalog: Catalog, recordings: Recordings, recording_id: int
) -> RecordingDescriptor:
    """Return the descriptor of a recording that can be extended.

    Checked at the request and again when the source has responded: it may have changed since.

    Raises:
        ReplicationError: the recording is unknown or active.
    """
    if not catalog.has_recording(recording_id):
        raise ReplicationError(
            f"unknown destination recording id {recording_id}", ErrorCode.UNKNOWN_RECORDING
        )
    descriptor = catalog.descriptor(recording_id)
    if descriptor.is_active or recordings.session(recording_id) is not None:
        raise ReplicationError(
            f"cannot replicate to active recording {recording_id}", ErrorCode.ACTIVE_RECORDING
        )
    return descriptor
