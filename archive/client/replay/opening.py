"""Opening a replay for a reader: its bounds, the request, its stream."""

from __future__ import annotations

from aerotape.archive.client import arguments, channels
from aerotape.archive.client.replay.stream import ReplayParameters, ReplayStream
from aerotape.archive.client.requests.queries import list_recording, max_recorded_position
from aerotape.archive.client.requests.replays import replay_request, start_replay_for_reader
from aerotape.archive.client.requests.scopes import check_scope
from aerotape.archive.client.session.client_session import ClientSession
from aerotape.archive.client.session.exchange import exchange
from aerotape.archive.client.session.response_channel import exchange_over_response_channel
from aerotape.archive.driver_tasks import add_subscription, bind_port
from aerotape.archive.waiting import Task
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.errors import AerotapeError, ConfigurationError, UnknownRecordingError
from aerotape.frame_header import to_int32
from aerotape.protocol import NULL_POSITION, REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP, ErrorCode


def replay(
    session: ClientSession,
    recording_id: int,
    position: int | None,
    length: int | None,
    *,
    channel: str,
    stream_id: int,
    follow: bool,
    limit_counter_id: int | None,
    file_io_max_length: int | None,
    timeout_ns: int | None,
    scope_id: int | None,
) -> Task[ReplayStream]:
    """Replay a recording."""
    start = None
    if position not in (None, NULL_POSITION):
        start = arguments.natural("position", position)
    if length in (REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP):
        follow = follow and length == REPLAY_ALL_AND_FOLLOW
        length = None
    if length is not None and arguments.any_int64("length", length) < 0:
        raise ConfigurationError(f"a replay cannot have a length of {length} bytes", "length")
    scope_id = check_scope(session, scope_id, limit_counter_id)
    recording = yield from list_recording(session, recording_id, scope_id)
    if recording is None:
        unknown = ErrorCode.UNKNOWN_RECORDING
        raise UnknownRecordingError(
            f"cannot replay recording {recording_id}: there is no such recording "
            f"(error code {unknown} {unknown.name})",
            recording_id,
        )
    if start is None:
        start = recording.start_position
        if start < 0:
            raise AerotapeError(
                f"cannot replay recording {recording_id}: the archive reports the invalid "
                f"start position {start}; its catalog entry is damaged"
            )
    stop = recording.stop_position
    is_live = stop == NULL_POSITION
    if is_live and not follow:
        stop = yield from exchange(session, max_recorded_position(recording_id))
        is_live = False
    end = None if length is None else start + length
    if not is_live:
        end = stop if end is None else min(end, stop)
        if start == end:
            # An empty replay of the reference never ends, so it is not requested.
            return ReplayStream.empty(session, recording_id, start)
    if timeout_ns is None and not is_live and limit_counter_id is None:
        timeout_ns = session.timeout_ns
    stream = yield from start_stream(
        session,
        recording,
        start,
        end,
        channel=channel,
        stream_id=stream_id,
        limit_counter_id=limit_counter_id,
        file_io_max_length=file_io_max_length,
        timeout_ns=timeout_ns,
        scope_id=scope_id,
    )
    return stream


def start_stream(
    session: ClientSession,
    recording: RecordingDescriptor,
    start: int,
    end: int | None,
    *,
    channel: str,
    stream_id: int,
    limit_counter_id: int | None = None,
    file_io_max_length: int | None = None,
    timeout_ns: int | None = None,
    scope_id: int | None = None,
) -> Task[ReplayStream]:
    """Request a replay of known bounds, and wait for its stream.

    Args:
        start: where it begins, bytes.
        end: where it ends, bytes; None: with the recording.
        channel: this and the others as of `replay`; `check_scope` returned the scope.
        timeout_ns: how long its reader waits for the next message; None: no limit.
    """
    aeron, id = session.aeron, recording.recording_id
    arguments.channel("channel", channel)
    subscription = None
    archive_channel = channel
    reply_to: int | None = None
    try:
        if channels.is_response_channel(channel):
            subscription = yield from add_subscription(
                aeron, channel, stream_id, session.timeout_ns
            )
            reply_to = subscription.registration_id
        elif channels.has_wildcard_port(channel):
            # The request needs the bound port, so the subscription comes first.
            subscription = yield from add_subscription(
                aeron, channel, stream_id, session.timeout_ns
            )
            archive_channel = yield from bind_port(subscription, channel, session.timeout_ns)
        length = REPLAY_ALL_AND_FOLLOW if end is None else max(end - start, 0)
        request = replay_request(
            id,
            archive_channel,
            stream_id,
            start,
            length,
            limit_counter_id,
            file_io_max_length,
            scope_id,
        )
        call = start_replay_for_reader(request, id, archive_channel, stream_id)
        if reply_to is None:
            answer = yield from exchange(session, call)
        else:
            answer = yield from exchange_over_response_channel(session, call, reply_to)
        parameters = ReplayParameters(
            recording_id=id,
            start_position=start,
            end_position=end,
            is_bounded=limit_counter_id is not None,
            correlation_id=answer.correlation_id,
            replay_session_id=answer.relevant_id,
            session_id=to_int32(answer.relevant_id),
            recorded_as=(recording.session_id, recording.stream_id),
        )
    except BaseException:
        if subscription is not None:
            subscription.close()
        raise
    stream = ReplayStream(parameters, session, timeout_ns, subscription)
    try:
        if subscription is None:
            own = channels.with_session_id(channel, parameters.session_id)
            stream.subscription = yield from add_subscription(
                aeron, own, stream_id, session.timeout_ns
            )
        yield from stream.await_image()
    except BaseException:
        stream.abandon()
        raise
    return stream
