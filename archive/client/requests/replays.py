"""Requests that start and stop replays."""

from __future__ import annotations

from typing import Any, Final

from aerotape.archive.client import arguments, channels
from aerotape.archive.client.requests.scopes import check_scope
from aerotape.archive.client.session.client_session import ClientSession
from aerotape.archive.client.session.exchange import exchange
from aerotape.archive.client.session.request import Call, Request, relevant_id
from aerotape.archive.client.session.response_channel import exchange_over_response_channel
from aerotape.archive.waiting import Task
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated import ledger_control
from aerotape.errors import ConfigurationError
from aerotape.formatting import argument
from aerotape.protocol import NULL_POSITION, NULL_VALUE, REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP

_LONGEST: Final = (1 << 63) - 1


def start_replay(
    session: ClientSession,
    recording_id: int,
    channel: str,
    stream_id: int,
    *,
    position: int | None = None,
    length: int | None = None,
    limit_counter_id: int | None = None,
    file_io_max_length: int | None = None,
    subscription_id: int | None = None,
    scope_id: int | None = None,
) -> Task[int]:
    """Replay a recording to a channel and stream of the caller."""
    scope_id = check_scope(session, scope_id, limit_counter_id)
    request = replay_request(
        recording_id,
        channel,
        stream_id,
        NULL_POSITION if position is None else position,
        REPLAY_ALL_AND_FOLLOW if length is None else length,
        limit_counter_id,
        file_io_max_length,
        scope_id,
    )
    call = Call(request, _what(recording_id, channel, stream_id), relevant_id)
    if not channels.is_response_channel(channel):
        return exchange(session, call)
    if subscription_id is None:
        raise ConfigurationError(
            f"a replay to {channel} goes to one subscription: "
            f"{argument('give subscription_id', 'use --print or --out')}",
            "subscription_id",
        )
    return exchange_over_response_channel(session, call, subscription_id)


def stop_replay(replay_session_id: int) -> Call[bool]:
    """Stop a replay, if it has not ended already.

    Returns:
        False when no replay with this id was running. The Java archive does not report that: then
        the result is True.
    """
    request = codecs.StopReplayRequest(
        replay_session_id=arguments.any_int64("replay_session_id", replay_session_id)
    )
    what = f"stop replay {replay_session_id}"
    return Call(request, what, lambda answer: answer.relevant_id != NULL_VALUE)


def replay_request(
    recording_id: int,
    channel: str,
    stream_id: int,
    position: int,
    length: int,
    limit_counter_id: int | None,
    file_io_max_length: int | None,
    scope_id: int | None = None,
) -> Request:
    """Return the message that starts a replay, bounded when there is a counter."""
    fields: dict[str, Any] = {
        "recording_id": arguments.natural("recording_id", recording_id),
        "position": arguments.integer("position", position, NULL_POSITION, _LONGEST),
        "length": arguments.integer("length", length, REPLAY_ALL_AND_STOP, _LONGEST),
        "replay_stream_id": arguments.any_int32("stream_id", stream_id),
        "file_io_max_length": arguments.optional_length("file_io_max_length", file_io_max_length),
        "replay_token": NULL_VALUE,
        # Aeron's own archive leaves a malformed one unanswered.
        "replay_channel": arguments.channel("channel", channel),
    }
    if scope_id is not None:
        return ledger_control.ScopedReplayRequest(scope_id=scope_id, **fields)
    if limit_counter_id is None:
        return codecs.ReplayRequest(**fields)
    limit = arguments.count("limit_counter_id", limit_counter_id)
    return codecs.BoundedReplayRequest(limit_counter_id=limit, **fields)


def _what(recording_id: int, channel: str, stream_id: int) -> str:
    return f"replay recording {recording_id} to {channel} stream {stream_id}"


def start_replay_for_reader(
    request: Request,
    recording_id: int,
    channel: str,
    stream_id: int,
) -> Call[codecs.ControlResponse]:
    """Start a replay that is stopped again if its reader was interrupted."""
    return Call(
        request,
        _what(recording_id, channel, stream_id),
        lambda answer: answer,
        undo=lambda answer: stop_replay(answer.relevant_id),
    )
