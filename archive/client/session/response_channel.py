"""Replays over response channels: the archive sends them back along a stream of requests.

That stream is made for the one request, and tells the driver which subscription the answer is for.
Since it belongs to no control session, the request carries a token, which the session asks for.
"""

from __future__ import annotations

import time
from typing import Final, TypeVar

from aerotape.archive.client import channels
from aerotape.archive.client.executors.driver_steps import added
from aerotape.archive.client.requests.request import Call, Pause, Steps, relevant_id
from aerotape.archive.client.requests.response_errors import result_of
from aerotape.archive.client.session.control_session import ControlSession
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import AeronTimeoutError

T = TypeVar("T")

_POLL_NS: Final = 100_000


def sent_back(session: ControlSession, call: Call[T], subscription_id: int) -> Steps[T]:
    """Perform a replay request so that the replay comes to a subscription.

    Args:
        call: its message is a ReplayRequest or BoundedReplayRequest.
        subscription_id: registration id of the subscription, which is on a response channel.

    Raises:
        ArchiveError: the archive refuses the replay, or gives no token.
        AeronError: the driver knows no such subscription.
        AeronTimeoutError: the archive or the driver does not answer.
    """
    request = call.message
    assert isinstance(request, codecs.ReplayRequest | codecs.BoundedReplayRequest)
    token = codecs.ReplayTokenRequest(recording_id=request.recording_id)
    request.replay_token = yield Call(token, f"get a token to {call.what}", relevant_id)
    channel = channels.request_channel_for(session.publication.channel, subscription_id)
    stream_id, timeout_ns = session.publication.stream_id, session.timeout_ns
    publication = yield from added(
        session.aeron.async_add_exclusive_publication(channel, stream_id),
        f"a publication to {channel} stream {stream_id}",
        timeout_ns,
    )
    try:
        pending, data = session.begin(request, call.what)
        deadline_ns = time.monotonic_ns() + timeout_ns
        try:
            while publication.offer(data) <= 0:
                if time.monotonic_ns() >= deadline_ns:
                    raise AeronTimeoutError(
                        f"cannot {call.what}: the archive does not take requests on {channel} "
                        f"stream {stream_id} within {timeout_ns / 1e9:g} s"
                    )
                yield Pause(_POLL_NS, call.what)
            while not pending.is_done:
                if time.monotonic_ns() >= deadline_ns:
                    raise session.no_answer(pending)
                yield Pause(_POLL_NS, call.what)
        except BaseException:
            session.abandon(pending, call)
            raise
    finally:
        publication.close()
    return result_of(call, pending)
