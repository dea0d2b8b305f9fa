"""One replication: a recording of another archive becomes, or continues, one of this archive.

The source is asked for its descriptor, which a new recording here takes over, or which shows what
an existing one lacks. What is missing is replayed by the source into a subscription of ours and
recorded as an extension. Then either the end is reached, which is signalled as SYNC; or, with a
live destination, the live stream is joined as soon as the replay has come near it, the replay is
dropped and the recording goes on by itself, which is signalled as MERGE.

    (REPLICATE) EXTEND (SYNC | MERGE) REPLICATE_END, and of the recording STOP

What the source or the driver have to be waited for is written as one generator (see `steps`),
advanced once a turn. All that ends it, comes through `close`, which always signals REPLICATE_END.
"""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from aerotape.archive.replication import live_join
from aerotape.archive.replication.request import (
    ReplicationRequest,
    recording_channel,
    replay_channel,
    replay_destination,
)
from aerotape.archive.replication.source_client import SourceAddress, SourceArchive
from aerotape.archive.replication.steps import Step, wait_for
from aerotape.catalog.descriptor import RecordingDescriptor, describe_problem
from aerotape.channel_uri import ChannelUri
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import RecordingSignal, SourceLocation
from aerotape.errors import (
    AeronTimeoutError,
    AerotapeError,
    ArchiveError,
    ClosedError,
    ConfigurationError,
)
from aerotape.frame_header import to_int32
from aerotape.protocol import NULL_POSITION, NULL_VALUE, ErrorCode

if TYPE_CHECKING:
    from aerotape._native import AeronClient, Image, Subscription
    from aerotape.archive.recording.recordings import Recordings
    from aerotape.archive.recording.subscriptions import RecordingSubscription
    from aerotape.archive.requester import Requester
    from aerotape.catalog.file.catalog import Catalog


class ReplicationSession:
    """One replication. All methods are for the conductor's thread.

    Attributes:
        replication_id: by which clients know it; also the correlation id of what it sends them.
        dst_recording_id: the recording of this archive; -1 until there is one.
        is_done: whether there is nothing left but to `close` it.
        is_quiet: whether it follows a source that sends nothing at the moment.
        failure: what went wrong, None as long as nothing has.
    """

    def __init__(
        self,
        replication_id: int,
        request: ReplicationRequest,
        requester: Requester,
        address: SourceAddress,
        *,
        aeron: AeronClient,
        catalog: Catalog,
        recordings: Recordings,
    ) -> None:
        """Begin.

        Args:
            requester: the control session that asked; it is told of all that happens.
        """
        self.replication_id = replication_id
        self.dst_recording_id = request.dst_recording_id
        self.is_done = False
        self.is_quiet = False
        self.failure: Exception | None = None
        self._request = request
        self._requester = requester
        self._aeron = aeron
        self._catalog = catalog
        self._recordings = recordings
        self._source = SourceArchive(aeron, address)
        self._recording: RecordingSubscription | None = None
        self._src_stop_position = NULL_POSITION
        self._src_replay_id: int | None = None
        self._steps = self._replicate()

    def do_work(self) -> None:
        """Take a step. What goes wrong ends the session; only a lost driver is raised."""
        if self.is_done:
            return
        if self._recording is not None and self._recording.is_stopping:
            self.is_done = True
            return
        try:
            next(self._steps)
            self._source.poll()
        except StopIteration:
            self.is_done = True
        except ClosedError:
            self.is_done = True
            raise
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.is_done = True
        self.failure = error
        code = error.error_code if isinstance(error, ReplicationError) else ErrorCode.GENERIC
        self._requester.send_error(self.replication_id, code, str(error))

    def recording_stopped(self, position: int) -> None:
        """Take note that the recording has ended, before the client is told so.

        Args:
            position: the end of what has been recorded, bytes.
        """
        if self.is_done or self._recording is None:
            return
        self.is_done = True
        if self._request.live_destination and not self._recording.is_stopping:
            self._fail(ArchiveError("replication image closed unexpectedly"))
        elif self._is_synced(position):
            self._signal(position, RecordingSignal.SYNC)
        # Its subscription is closed with it.
        self._recording = None

    def close(self) -> None:
        """End it, at whatever point it is: the recording is stopped and stays as it is."""
        self.is_done = True
        self._steps.close()
        if self._recording is not None:
            self._recordings.stop_subscription(self._recording.registration_id)
            self._recording = None
        if self._src_replay_id is not None:
            self._source.stop_replay(self._src_replay_id)
            self._src_replay_id = None
        self._source.close()
        self._signal(NULL_POSITION, RecordingSignal.REPLICATE_END)

    # ---- the steps ----------------------------------------------------------------------------

    def _replicate(self) -> Step[None]:
        try:
            yield from self._source.connect()
        except (ClosedError, ConfigurationError):
            raise
        except AerotapeError as error:
            timeout = "Archive connect timeout: " if isinstance(error, AeronTimeoutError) else ""
            raise ReplicationError(
                f"Replication connection failed={timeout}{error}",
                ErrorCode.REPLICATION_CONNECTION_FAILURE,
            ) from error
        source = yield from self._source_descriptor()
        begin = self._prepare(source)
        if self._request.live_destination and not source.is_active:
            raise live_join.no_live_source()
        if self._is_in_sync(source):
            self._signal(source.stop_position, RecordingSignal.SYNC)
            return
        live_position = None
        if self._request.live_destination:
            live_position = yield from live_join.source_position(self._source, source.recording_id)
        session_id = self._replay_session_id(source)
        recording = self._recording = self._extend(source.stream_id, session_id)
        if recording is None:
            return  # the client has been told why
        subscription = yield from wait_for(
            lambda: recording.subscription, self._deadline_ns(), "to subscribe to the replay"
        )
        if self._request.has_destinations:
            yield from live_join.add_destination(
                subscription, replay_destination(self._request), self._source.address.timeout_ns
            )
        image = yield from self._replay(source, begin, session_id, subscription)
        try:
            if live_position is None:
                yield from self._follow(image)
            else:
                yield from live_join.catch_up(image, live_position)
                yield from self._join_live(image, subscription)
        finally:
            image.release()

    def _source_descriptor(self) -> Step[RecordingDescriptor]:
        recording_id = self._request.src_recording_id
        descriptor = yield from self._source.descriptor(recording_id)
        if descriptor is None:
            raise ReplicationError(
                f"unknown src recording id {recording_id}", ErrorCode.UNKNOWN_RECORDING
            )
        if problem := describe_problem(descriptor):
            raise ArchiveError(f"src recording {recording_id} has a damaged descriptor: {problem}")
        self._src_stop_position = descriptor.stop_position
        return descriptor

    def _prepare(self, source: RecordingDescriptor) -> int:
        """Have a recording to extend; return the position from which on it lacks something."""
        limit = self._request.file_io_max_length
        if limit != NULL_VALUE and limit < source.mtu_length:
            raise ArchiveError(
                # The word that comes twice does so in the reference.
                f"Replication fileIoMaxLength ({limit}) is less than than the recording mtuLength"
                f" ({source.mtu_length})"
            )
        # A replica that has all to come ends where it begins.
        empty = replace(
            source,
            recording_id=self.dst_recording_id,
            stop_position=source.start_position,
            stop_timestamp_ms=source.start_timestamp_ms,
        )
        if self.dst_recording_id == NULL_VALUE:
            fields = asdict(empty)
            del fields["recording_id"]
            self.dst_recording_id = self._catalog.add_recording(**fields)
            self._signal(source.start_position, RecordingSignal.REPLICATE)
            return source.start_position
        destination = stopped_destination(self._catalog, self._recordings, self.dst_recording_id)
        if destination.start_position == destination.stop_position:
            # It may begin elsewhere from now on, where nobody who is at work on it expects it.
            if self._recordings.are_segments_changing(self.dst_recording_id):
                raise ArchiveError(
                    f"cannot replicate to recording {self.dst_recording_id} while its segments are"
                    " being deleted or moved"
                )
            self._catalog.replace_recording(empty)
            return source.start_position
        return destination.stop_position

    def _is_in_sync(self, source: RecordingDescriptor) -> bool:
        return source.stop_position in (
            source.start_position,
            self._catalog.stop_position(self.dst_recording_id),
        )

    def _replay_session_id(self, source: RecordingDescriptor) -> int:
        wanted = self._request.replication_session_id
        if self._request.live_destination or wanted == NULL_VALUE:
            return source.session_id
        return wanted

    def _extend(self, stream_id: int, session_id: int) -> RecordingSubscription | None:
        """Have our recording extended by what the source will replay."""
        return self._recordings.start(
            self._requester,
            self.replication_id,
            extends=self.dst_recording_id,
            stream_id=stream_id,
            channel=recording_channel(self._request, self.replication_id, session_id),
            source_location=SourceLocation.REMOTE,
            auto_stop=True,
        )

    def _replay(
        self,
        source: RecordingDescriptor,
        begin: int,
        session_id: int,
        subscription: Subscription,
    ) -> Step[Image]:
        """Have the source replay from `begin` and wait for the stream."""
        request = self._request
        endpoint = None
        if ChannelUri.parse(request.replication_channel).get("endpoint") is not None:
            endpoint = yield from wait_for(
                subscription.resolved_endpoint,
                self._deadline_ns(),
                f"to resolve subscription endpoint: channel={subscription.channel}",
            )
        token, publication = NULL_VALUE, None
        if request.uses_response_channel:
            token = yield from self._source.ask(
                codecs.ReplayTokenRequest(recording_id=source.recording_id),
                "to get a replay token of the source",
            )
            publication = yield from self._source.add_replay_publication(
                subscription.registration_id
            )
        stop = request.stop_position
        replay_id = self._src_replay_id = yield from self._source.ask(
            codecs.ReplayRequest(
                recording_id=source.recording_id,
                position=begin,
                length=NULL_VALUE if stop == NULL_POSITION else stop - begin,
                replay_stream_id=source.stream_id,
                file_io_max_length=request.file_io_max_length,
                replay_token=token,
                replay_channel=replay_channel(
                    request,
                    resolved_endpoint=endpoint,
                    replay_session_id=session_id,
                    subscription_id=subscription.registration_id,
                ),
            ),
            f"get acknowledgement of replay request to: {request.replication_channel}",
            publication,
        )
        image_session_id = to_int32(replay_id)
        deadline_ns = self._deadline_ns()
        what = (
            f"get replay image for sessionId={image_session_id} on channel={subscription.channel}"
        )
        image = yield from wait_for(
            lambda: subscription.image_by_session_id(image_session_id), deadline_ns, what
        )
        # However short it is, the client is told of its begin before it is of its end.
        yield from wait_for(lambda: self._is_recorded() or None, deadline_ns, what)
        return image

    def _follow(self, image: Image) -> Step[None]:
        """Wait for the end of the replay."""
        stop = self._request.stop_position
        position = NULL_POSITION
        while True:
            has_ended = image.is_closed or image.is_end_of_stream
            before, position = position, image.position
            self.is_quiet = position == before
            if self._is_synced(position):
                self._signal(position, RecordingSignal.SYNC)
            elif not has_ended and not NULL_POSITION < stop <= position:
                yield
                continue
            # The source knows by itself that the replay has ended.
            self._src_replay_id = None
            return

    def _join_live(self, image: Image, subscription: Subscription) -> Step[None]:
        """Go over to the live stream; the recording is then nobody's but its own."""
        request = self._request
        position = yield from live_join.join(
            self._source, request.src_recording_id, image, subscription, request.live_destination
        )
        # The driver does it in its own time.
        subscription.async_remove_destination(replay_destination(request))
        self._recording = None
        self._signal(position, RecordingSignal.MERGE)

    # ---- within -------------------------------------------------------------------------------

    def _is_synced(self, position: int) -> bool:
        return NULL_POSITION < self._src_stop_position <= position

    def _is_recorded(self) -> bool:
        recording = self._recordings.session(self.dst_recording_id)
        return recording is not None and recording.counter is not None

    def _deadline_ns(self) -> int:
        return time.monotonic_ns() + self._source.address.timeout_ns

    def _signal(self, position: int, signal: RecordingSignal) -> None:
        subscription_id = NULL_VALUE if self._recording is None else self._recording.registration_id
        self._requester.send_signal(
            self.replication_id, self.dst_recording_id, subscription_id, position, signal
        )


def stopped_destination(
    catalog: Catalog, recordings: Recordings, recording_id: int
) -> RecordingDescriptor:
    """Return the descriptor of a recording that can be continued.

    Checked at the request, and again when the source has answered: things may have changed.

    Raises:
        ArchiveError: there is none, or it is being recorded; with the reference's error code.
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


class ReplicationError(ArchiveError):
    """A failure with an error code of its own; all others are GENERIC to the client."""
