"""Replays over response channels: the archive sends them back along a request stream.

That stream is created for the one request, and its channel names the subscription that receives
the replay. It belongs to no control session, so the request carries a token that the session
requests first.
"""

from __future__ import annotations

import time
from typing import TypeVar

from aerotape.archive.client import channels
from aerotape.archive.client.executors.driver_steps import published
from aerotape.archive.client.requests.request import Call, Steps, relevant_id
from aerotape.archive.client.requests.response_errors import result_of
from aerotape.archive.client.session.control_session import ControlSession
from aerotape.archive.client.session.exchange import exchange
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.ledger_control import ScopedReplayRequest
from aerotape.errors import AeronTimeoutError

T = TypeVar("T")


def sent_back(session: ControlSession, call: Call[T], subscription_id: int) -> Steps[T]:
    """Perform a replay request whose replay is sent to the subscription with a registration id."""
    request = call.message
    assert isinstance(
        request, codecs.ReplayRequest | codecs.BoundedReplayRequest | ScopedReplayRequest
    )
    token = codecs.ReplayTokenRequest(recording_id=request.recording_id)
    request.replay_token = yield Call(token, f"get a token to {call.what}", relevant_id)
    channel = channels.request_channel_for(session.publication.channel, subscription_id)
    stream_id, timeout_ns = session.publication.stream_id, session.timeout_ns
    publication = yield from published(session.aeron, channel, stream_id, timeout_ns)
    try:
        pending, data = session.begin(call)
        try:
            yield from exchange(
                session,
                pending,
                lambda: publication.offer(data) > 0,
                AeronTimeoutError(
                    f"cannot {call.what}: the archive does not read requests on {channel} "
                    f"stream {stream_id} within {timeout_ns / 1e9:g} s"
                ),
                time.monotonic_ns() + timeout_ns,
            )
        except BaseException:
            session.abandon(pending, call)
            raise
    finally:
        publication.close()
    return result_of(call, pending)
