"""How a replay for a reader begins: where it starts and ends, its stream, the archive's consent."""

from __future__ import annotations

from aerotape import _native
from aerotape.archive.client import arguments, channels
from aerotape.archive.client.call import Steps
from aerotape.archive.client.driver_steps import subscribed, with_bound_port
from aerotape.archive.client.query_requests import (
    list_recording,
    max_recorded_position,
)
from aerotape.archive.client.replay_requests import replay_request, start_replay_for_reader
from aerotape.archive.client.replay_stream import ReplayOrder, ReplayStream
from aerotape.archive.client.session import ControlSession
from aerotape.archive.protocol import (
    NULL_POSITION,
    REPLAY_ALL_AND_FOLLOW,
    REPLAY_ALL_AND_STOP,
    ErrorCode,
)
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.errors import AerotapeError, ConfigurationError, UnknownRecordingError
from aerotape.records import record, replace


@record(frozen=True, slots=True)
class ReplayWish:
    """What a caller of `replay` has asked for; the attributes are its arguments.

    The channel may be "" for the client's.
    """

    recording_id: int
    position: int | None
    length: int | None
    channel: str
    stream_id: int
    follow: bool
    limit_counter_id: int | None
    file_io_max_length: int | None
    timeout_ns: int | None


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
) -> ReplayWish:
    """Replay a recording and return its messages.

    >>> with client.replay(recording_id) as messages:
    ...     for message in messages:
    ...         print(message.position, len(message.payload))

    Args:
        position: from where, bytes: the beginning of a frame. None: from the start.
        length: how much, bytes. None (or Aeron's -1), or more than there is: to the end.
            Aeron's -2 is -1 with `follow` off.
        channel: where the archive shall replay to. Default: as the control responses.
        stream_id: stream on that channel.
        follow: whether a live recording is followed until it stops (or to `length`); else
            the replay ends where the recording is now.
        limit_counter_id: do not go beyond the value of this counter of the media driver;
            the replay then ends at `length` or when the counter is closed.
        file_io_max_length: the archive reads at most so much at a time, bytes.
        timeout_ns: how long to wait for the next message. Default: the client's timeout
            when it must come, for ever when following.

    Raises:
        ArchiveError: UNKNOWN_RECORDING, MAX_REPLAYS, INVALID_POSITION, …
        ConfigurationError: the channel cannot be used.
    """
    return ReplayWish(
        recording_id,
        position,
        length,
        channel or "",
        stream_id,
        follow,
        limit_counter_id,
        file_io_max_length,
        timeout_ns,
    )


def open_replay(
    aeron: _native.AeronClient, session: ControlSession, wish: ReplayWish, default_channel: str
) -> Steps[ReplayStream]:
    """Ask for a replay and return its stream.

    Args:
        default_channel: where the archive replays to when the wish does not say.

    Raises:
        ArchiveError: the archive refuses: UNKNOWN_RECORDING, MAX_REPLAYS, INVALID_POSITION, …
        AeronTimeoutError: the archive or the media driver does not answer.
        ConfigurationError: an argument cannot be used.
        AerotapeError: the recording has a start position that cannot be.
    """
    if not wish.channel:
        wish = replace(wish, channel=default_channel)
    start = None
    if wish.position not in (None, NULL_POSITION):
        start = arguments.position("position", wish.position)
    length, follow = wish.length, wish.follow
    if length in (REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP):
        follow = follow and length == REPLAY_ALL_AND_FOLLOW
        length = None
    if length is not None and arguments.any_int64("length", length) < 0:
        raise ConfigurationError(f"a replay cannot have a length of {length} bytes", "length")
    recording = yield from list_recording(wish.recording_id)
    if recording is None:
        unknown = ErrorCode.UNKNOWN_RECORDING
        raise UnknownRecordingError(
            f"cannot replay recording {wish.recording_id}: there is no such recording "
            f"(error code {unknown} {unknown.name})",
            wish.recording_id,
        )
    if start is None:
        start = recording.start_position
        if start < 0:
            raise AerotapeError(
                f"cannot replay recording {wish.recording_id}: the archive says that it starts at "
                f"position {start}, which cannot be; its entry in the catalog is damaged"
            )
    stop = recording.stop_position
    is_live = stop == NULL_POSITION
    if is_live and not follow:
        stop, is_live = (yield max_recorded_position(wish.recording_id)), False
    end = None if length is None else start + length
    if not is_live:
        end = stop if end is None else min(end, stop)
        if start == end:
            # The reference's replay of nothing never ends; there is no need to ask for it.
            return ReplayStream.empty(session, wish.recording_id, start)
    timeout_ns = wish.timeout_ns
    if timeout_ns is None and not is_live and wish.limit_counter_id is None:
        timeout_ns = session.timeout_ns
    stream = yield from start_stream(aeron, session, wish, recording, start, end, timeout_ns)
    try:
        yield from stream.await_image()
    except BaseException:
        stream.abandon()
        raise
    return stream


def start_stream(
    aeron: _native.AeronClient,
    session: ControlSession,
    wish: ReplayWish,
    recording: RecordingDescriptor,
    start: int,
    end: int | None,
    timeout_ns: int | None,
) -> Steps[ReplayStream]:
    """Ask for a replay of known bounds and return its stream, whose image may not be there yet.

    Args:
        recording: what is replayed.
        start: where it begins, bytes.
        end: where it ends; None: with the recording.
        timeout_ns: how long its reader waits for the next message; None: for ever.

    Raises:
        ArchiveError: the archive refuses.
        AeronError: the media driver refuses the subscription.
        AeronTimeoutError: the archive or the media driver does not answer.
    """
    channel, stream_id = arguments.channel("channel", wish.channel), wish.stream_id
    subscription = None
    archive_channel = channel
    reply_to: int | None = None
    if channels.is_response_channel(channel):
        subscription = yield from subscribed(aeron, channel, stream_id, session.timeout_ns)
        reply_to = subscription.registration_id
    elif channels.has_wildcard_port(channel):
        # The port must be known before the archive can be told, and is ours alone.
        subscription = yield from subscribed(aeron, channel, stream_id, session.timeout_ns)
        archive_channel = yield from with_bound_port(subscription, channel, session.timeout_ns)
    try:
        request = replay_request(
            wish.recording_id,
            archive_channel,
            stream_id,
            start,
            REPLAY_ALL_AND_FOLLOW if end is None else max(end - start, 0),
            wish.limit_counter_id,
            wish.file_io_max_length,
        )
        answer = yield start_replay_for_reader(
            request, wish.recording_id, archive_channel, stream_id, reply_to
        )
        order = ReplayOrder(
            recording_id=wish.recording_id,
            start_position=start,
            end_position=end,
            is_bounded=wish.limit_counter_id is not None,
            correlation_id=answer.correlation_id,
            replay_session_id=answer.relevant_id,
            session_id=channels.to_int32(answer.relevant_id),
            recorded_as=(recording.session_id, recording.stream_id),
        )
        stream = ReplayStream(order, session, timeout_ns)
        try:
            if subscription is None:
                own = channels.with_session_id(channel, order.session_id)
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
