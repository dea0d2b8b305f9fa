"""Opening a replay for a reader: its bounds, the request, its stream."""

from __future__ import annotations

from dataclasses import dataclass, replace

from aerotape import _native
from aerotape.archive.client import arguments, channels
from aerotape.archive.client.executors.driver_steps import subscribed, with_bound_port
from aerotape.archive.client.replay.stream import ReplayParameters, ReplayStream
from aerotape.archive.client.requests.queries import (
    list_recording,
    max_recorded_position,
)
from aerotape.archive.client.requests.replays import replay_request, start_replay_for_reader
from aerotape.archive.client.requests.request import Steps, performed
from aerotape.archive.client.requests.scopes import check_replay, check_scope
from aerotape.archive.client.requests.scopes import replay_request as scoped_replay_request
from aerotape.archive.client.session.control_session import ControlSession
from aerotape.archive.client.session.response_channel import sent_back
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.errors import AerotapeError, ConfigurationError, UnknownRecordingError
from aerotape.frame_header import to_int32
from aerotape.protocol import (
    NULL_POSITION,
    REPLAY_ALL_AND_FOLLOW,
    REPLAY_ALL_AND_STOP,
    ErrorCode,
)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options of a replay; the attributes are the arguments of `replay`.

    The channel may be "" for the client's.
    """

    recording_id: int
    position: int | None = None
    length: int | None = None
    channel: str = ""
    stream_id: int = channels.DEFAULT_REPLAY_STREAM_ID
    follow: bool = True
    limit_counter_id: int | None = None
    file_io_max_length: int | None = None
    timeout_ns: int | None = None
    scope_id: int | None = None


def replay(
    recording_id: int,
    position: int | None = None,
    length: int | None = None,
    *,
    channel: str | None = None,
    stream_id: int = channels.DEFAULT_REPLAY_STREAM_ID,
    follow: bool = True,
    limit_counter_id: int | None = None,
    file_io_max_length: int | None = None,
    timeout_ns: int | None = None,
    scope_id: int | None = None,
) -> ReplayOptions:
    """Replay a recording and return its messages.

    >>> with client.replay(recording_id) as messages:
    ...     for message in messages:
    ...         print(message.position, len(message.payload))

    Args:
        position: the start, bytes: the beginning of a frame. None: the start of the recording.
        length: the length, bytes. None (or Aeron's -1), or more than there is: to the end.
            Aeron's -2 is -1 with `follow` off.
        channel: where the archive replays to. Default: as the control responses.
        stream_id: stream on that channel.
        follow: whether a live recording is followed until it stops (or to `length`); else
            the replay ends where the recording is now.
        limit_counter_id: replay up to the value of this counter of the media driver;
            the replay then ends at `length` or when the counter is closed.
        file_io_max_length: the longest single read of the archive, bytes.
        timeout_ns: how long to wait for the next message. Default: the client's timeout
            when one must arrive, no limit when following.
        scope_id: replay a recording of this scope, which the archive has imported; None or 0:
            one of its own.

    Raises:
        ArchiveError: UNKNOWN_RECORDING, MAX_REPLAYS, INVALID_POSITION, …
        IllegalOperationError: the archive knows no other scope than its own.
        ConfigurationError: the channel is invalid.
    """
    return ReplayOptions(
        recording_id,
        position,
        length,
        channel or "",
        stream_id,
        follow,
        limit_counter_id,
        file_io_max_length,
        timeout_ns,
        scope_id,
    )


def open_replay(
    aeron: _native.AeronClient,
    session: ControlSession,
    options: ReplayOptions,
    default_channel: str,
) -> Steps[ReplayStream]:
    """Request a replay and return its stream.

    Args:
        default_channel: where the archive replays to if the options name no channel.

    Raises:
        ArchiveError: the archive refuses: UNKNOWN_RECORDING, MAX_REPLAYS, INVALID_POSITION, …
        AeronTimeoutError: the archive or the media driver does not respond.
        ConfigurationError: an argument is invalid.
        AerotapeError: the recording has an invalid start position.
    """
    if not options.channel:
        options = replace(options, channel=default_channel)
    start = None
    if options.position not in (None, NULL_POSITION):
        start = arguments.position("position", options.position)
    length, follow = options.length, options.follow
    if length in (REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP):
        follow = follow and length == REPLAY_ALL_AND_FOLLOW
        length = None
    if length is not None and arguments.any_int64("length", length) < 0:
        raise ConfigurationError(f"a replay cannot have a length of {length} bytes", "length")
    options = replace(options, scope_id=(yield from check_scope(options.scope_id)))
    if options.scope_id is not None:
        check_replay(channels.is_response_channel(options.channel), options.limit_counter_id)
    recording = yield from list_recording(options.recording_id, scope_id=options.scope_id)
    if recording is None:
        unknown = ErrorCode.UNKNOWN_RECORDING
        raise UnknownRecordingError(
            f"cannot replay recording {options.recording_id}: there is no such recording "
            f"(error code {unknown} {unknown.name})",
            options.recording_id,
        )
    if start is None:
        start = recording.start_position
        if start < 0:
            raise AerotapeError(
                f"cannot replay recording {options.recording_id}: the archive reports the invalid "
                f"start position {start}; its catalog entry is damaged"
            )
    stop = recording.stop_position
    is_live = stop == NULL_POSITION
    if is_live and not follow:
        stop, is_live = (yield max_recorded_position(options.recording_id)), False
    end = None if length is None else start + length
    if not is_live:
        end = stop if end is None else min(end, stop)
        if start == end:
            # An empty replay of the reference never ends, so it is not requested.
            return ReplayStream.empty(session, options.recording_id, start)
    timeout_ns = options.timeout_ns
    if timeout_ns is None and not is_live and options.limit_counter_id is None:
        timeout_ns = session.timeout_ns
    stream = yield from start_stream(aeron, session, options, recording, start, end, timeout_ns)
    try:
        yield from stream.await_image()
    except BaseException:
        stream.abandon()
        raise
    return stream


def start_stream(
    aeron: _native.AeronClient,
    session: ControlSession,
    options: ReplayOptions,
    recording: RecordingDescriptor,
    start: int,
    end: int | None,
    timeout_ns: int | None,
) -> Steps[ReplayStream]:
    """Request a replay of known bounds and return its stream, possibly without an image yet.

    Args:
        recording: the descriptor of the recording.
        start: where it begins, bytes.
        end: where it ends, bytes; None: with the recording.
        timeout_ns: how long its reader waits for the next message; None: no limit.

    Raises:
        ArchiveError: the archive refuses.
        AeronError: the media driver refuses the subscription.
        AeronTimeoutError: the archive or the media driver does not respond.
    """
    channel, stream_id = arguments.channel("channel", options.channel), options.stream_id
    subscription = None
    archive_channel = channel
    reply_to: int | None = None
    if channels.is_response_channel(channel):
        subscription = yield from subscribed(aeron, channel, stream_id, session.timeout_ns)
        reply_to = subscription.registration_id
    elif channels.has_wildcard_port(channel):
        # The request needs the bound port, so the subscription comes first.
        subscription = yield from subscribed(aeron, channel, stream_id, session.timeout_ns)
        archive_channel = yield from with_bound_port(subscription, channel, session.timeout_ns)
    try:
        length = REPLAY_ALL_AND_FOLLOW if end is None else max(end - start, 0)
        id, io_length = options.recording_id, options.file_io_max_length
        if options.scope_id is not None:
            scope_id = options.scope_id
            request = scoped_replay_request(
                scope_id, id, archive_channel, stream_id, start, length, io_length
            )
        else:
            limit = options.limit_counter_id
            request = replay_request(
                id, archive_channel, stream_id, start, length, limit, io_length
            )
        call = start_replay_for_reader(request, options.recording_id, archive_channel, stream_id)
        if reply_to is None:
            answer = yield from performed(call)
        else:
            answer = yield from sent_back(session, call, reply_to)
        parameters = ReplayParameters(
            recording_id=options.recording_id,
            start_position=start,
            end_position=end,
            is_bounded=options.limit_counter_id is not None,
            correlation_id=answer.correlation_id,
            replay_session_id=answer.relevant_id,
            session_id=to_int32(answer.relevant_id),
            recorded_as=(recording.session_id, recording.stream_id),
        )
        stream = ReplayStream(parameters, session, timeout_ns)
        try:
            if subscription is None:
                own = channels.with_session_id(channel, parameters.session_id)
                subscription = yield from subscribed(aeron, own, stream_id, session.timeout_ns)
        except BaseException:
            stream.abandon()
            raise
    except BaseException:
        if subscription is not None:
            subscription.close()
        raise
    stream.attach(subscription)
    return stream
