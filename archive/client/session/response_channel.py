"""Replays over response channels: the archive sends them back along a request stream.

That stream is created for the one request, and its channel names the subscription that receives
the replay. It belongs to no control session, so the request carries a token that the session
requests first.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TypeVar

from aerotape.archive.client import channels
from aerotape.archive.client.session.client_session import ClientSession
from aerotape.archive.client.session.exchange import exchange
from aerotape.archive.client.session.request import Call, relevant_id
from aerotape.archive.driver_tasks import add_publication
from aerotape.archive.waiting import Task
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.ledger_control import ScopedReplayRequest

T = TypeVar("T")


def exchange_over_response_channel(
    session: ClientSession, call: Call[T], subscription_id: int
) -> Task[T]:
    """Perform a replay request whose replay is sent to the subscription with a registration id."""
    request = copy(call.message)
    assert isinstance(
        request, codecs.ReplayRequest | codecs.BoundedReplayRequest | ScopedReplayRequest
    )
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
