"""Requests that start and stop replays.

A replay over a response channel is sent back along a request stream. That stream is created for
the one request, and its channel names the subscription that receives the replay. It belongs to no
control session, so the request carries a token that the session requests first.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from aerotape.client import arguments, channels
from aerotape.client.queries import check_scope
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.exchange import exchange
from aerotape.client.session.request import Call, relevant_id
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated import ledger_control
from aerotape.driver_tasks import add_publication
from aerotape.errors import ConfigurationError
from aerotape.protocol import NULL_POSITION, NULL_VALUE, REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP
from aerotape.units import MAX_LONG
from aerotape.waiting import Task

T = TypeVar("T")

_ReplayMessage = (
    codecs.ReplayRequest | codecs.BoundedReplayRequest | ledger_control.ScopedReplayRequest
)


@dataclass(frozen=True, slots=True)
class ReplayTarget:
    """The channel and the limits of a replay: arguments of `start_replay`."""

    channel: str
    stream_id: int
    limit_counter_id: int | None = None
    file_io_max_length: int | None = None
    scope_id: int | None = None


def start_replay(
    session: ClientSession,
    recording_id: int,
    target: ReplayTarget,
    *,
    position: int | None = None,
    length: int | None = None,
    subscription_id: int | None = None,
) -> Task[codecs.ControlResponse]:
    """Replay a recording; the replay is stopped again if the caller is interrupted meanwhile.

    Args:
        subscription_id: receives the replay if the channel is a response channel.
    """
    call = _call(session, recording_id, target, position, length)
    if not channels.is_response_channel(target.channel):
        return exchange(session, call)
    if subscription_id is None:
        raise ConfigurationError(
            f"a replay to {target.channel} goes to one subscription: give subscription_id",
            "subscription_id",
        ).naming("subscription_id")
    return exchange_over_response_channel(session, call, subscription_id)


def _call(
    session: ClientSession,
    recording_id: int,
    target: ReplayTarget,
    position: int | None,
    length: int | None,
) -> Call[codecs.ControlResponse]:
    position = NULL_POSITION if position is None else position
    length = REPLAY_ALL_AND_FOLLOW if length is None else length
    fields: dict[str, Any] = {
        "recording_id": arguments.natural("recording_id", recording_id),
        "position": arguments.integer("position", position, NULL_POSITION, MAX_LONG),
        "length": arguments.integer("length", length, REPLAY_ALL_AND_STOP, MAX_LONG),
        "replay_stream_id": arguments.any_int32("stream_id", target.stream_id),
        "file_io_max_length": arguments.optional_length(
            "file_io_max_length", target.file_io_max_length
        ),
        "replay_token": NULL_VALUE,
        # Aeron's own archive leaves a malformed one unanswered.
        "replay_channel": arguments.channel("channel", target.channel),
    }
    message: _ReplayMessage
    scope_id = check_scope(session, target.scope_id, target.limit_counter_id)
    if scope_id is not None:
        message = ledger_control.ScopedReplayRequest(scope_id=scope_id, **fields)
    elif target.limit_counter_id is None:
        message = codecs.ReplayRequest(**fields)
    else:
        limit = arguments.count("limit_counter_id", target.limit_counter_id)
        message = codecs.BoundedReplayRequest(limit_counter_id=limit, **fields)
    return Call(
        message,
        f"replay recording {recording_id} to {target.channel} stream {target.stream_id}",
        lambda answer: answer,
        undo=lambda answer: stop_replay(answer.relevant_id),
    )


def stop_replay(replay_session_id: int) -> Call[bool]:
    """Stop a replay; the result is False if the archive reports that none with this id ran."""
    request = codecs.StopReplayRequest(
        replay_session_id=arguments.any_int64("replay_session_id", replay_session_id)
    )
    what = f"stop replay {replay_session_id}"
    return Call(request, what, lambda answer: answer.relevant_id != NULL_VALUE)


def exchange_over_response_channel(
    session: ClientSession, call: Call[T], subscription_id: int
) -> Task[T]:
    """Perform a replay request whose replay is sent to the subscription with a registration id."""
    request = copy(call.message)
    assert isinstance(request, _ReplayMessage)
    token = codecs.ReplayTokenRequest(recording_id=request.recording_id)
    request.replay_token = yield from exchange(
        session, Call(token, f"get a token to {call.what}", relevant_id)
    )
    channel = channels.request_channel_for(session.publication.channel, subscription_id)
    stream_id, timeout_ns = session.publication.stream_id, session.timeout_ns
    publication = yield from add_publication(session.aeron, channel, stream_id, timeout_ns)
    try:
        return (yield from exchange(session, replace(call, message=request), publication))
    finally:
        publication.close()
