"""How a client comes to a control session: streams, connect request, challenge, archive id."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from aerotape import __version__, _native
from aerotape.archive.client import channels
from aerotape.archive.client.blocking import await_pending, await_request
from aerotape.archive.client.outcome import error_of, result_of
from aerotape.archive.client.query_requests import get_archive_id
from aerotape.archive.client.session import ControlSession
from aerotape.archive.protocol import (
    NULL_VALUE,
    PROTOCOL_MAJOR_VERSION,
    PROTOCOL_VERSION,
    VERSION_WITH_ARCHIVE_ID,
)
from aerotape.catalog.layout import version_string
from aerotape.codecs import archive as codecs
from aerotape.errors import AeronError, AeronTimeoutError, ArchiveError
from aerotape.text import argument

_WHAT: Final = "connect"
_RETRY_SLEEP_S: Final = 0.001
_SESSION_ID_ATTEMPTS: Final = 3


def open_session(
    aeron: _native.AeronClient,
    *,
    request_channel: str,
    request_stream_id: int,
    response_channel: str,
    response_stream_id: int,
    timeout_ns: int,
    credentials: bytes,
    on_challenge: Callable[[bytes], bytes] | None,
    client_name: str,
) -> tuple[ControlSession, int]:
    """Connect to an archive and return the session and the archive's id.

    Raises:
        AeronTimeoutError: there is no archive, or it does not answer.
        ArchiveError: it refused: protocol version, credentials.
        AeronError: the media driver refused a channel.
    """
    deadline_ns = time.monotonic_ns() + timeout_ns
    subscription, publication = _add_streams(
        aeron, request_channel, request_stream_id, response_channel, response_stream_id, timeout_ns
    )
    session = ControlSession(aeron, publication, subscription, timeout_ns)
    try:
        _await_request_stream(publication, deadline_ns, timeout_ns)
        answer_channel = _resolved_channel(subscription, deadline_ns)
        connect = codecs.AuthConnectRequest(
            correlation_id=aeron.next_correlation_id(),
            response_stream_id=response_stream_id,
            version=PROTOCOL_VERSION,
            response_channel=answer_channel,
            encoded_credentials=credentials,
            client_info=f"name={client_name} version={__version__}",
        )
        answer = _exchange(session, connect, deadline_ns)
        if isinstance(answer, codecs.Challenge):
            answer = _answer_challenge(aeron, session, answer, on_challenge, deadline_ns)
        return session, _accept(session, answer)
    except BaseException:
        session.close()
        raise


def _add_streams(
    aeron: _native.AeronClient,
    request_channel: str,
    request_stream_id: int,
    response_channel: str,
    response_stream_id: int,
    timeout_ns: int,
) -> tuple[_native.Subscription, _native.ExclusivePublication]:
    """Add both streams with one session id; another one when it happens to be in use.

    On a response channel it is the request channel that says where to answer.
    """
    if channels.is_response_channel(response_channel):
        response = channels.control_channel(response_channel)
        subscription = aeron.add_subscription(response, response_stream_id, timeout_ns=timeout_ns)
        try:
            request = channels.request_channel_for(request_channel, subscription.registration_id)
            return subscription, aeron.add_exclusive_publication(
                request, request_stream_id, timeout_ns
            )
        except BaseException:
            subscription.close()
            raise
    for attempt in range(_SESSION_ID_ATTEMPTS):
        session_id = channels.random_session_id()
        response = channels.control_channel(response_channel, session_id)
        request = channels.control_channel(request_channel, session_id)
        subscription = aeron.add_subscription(response, response_stream_id, timeout_ns=timeout_ns)
        try:
            publication = aeron.add_exclusive_publication(request, request_stream_id, timeout_ns)
        except BaseException as error:
            subscription.close()
            is_last = attempt == _SESSION_ID_ATTEMPTS - 1
            if is_last or not isinstance(error, AeronError) or "session" not in str(error):
                raise
        else:
            return subscription, publication
    raise AssertionError("the last attempt returns or raises")


def _await_request_stream(
    publication: _native.ExclusivePublication, deadline_ns: int, timeout_ns: int
) -> None:
    while not publication.is_connected:
        if time.monotonic_ns() >= deadline_ns:
            raise AeronTimeoutError(
                f"cannot {_WHAT}: no archive listens on {publication.channel} stream "
                f"{publication.stream_id} (waited {timeout_ns / 1e9:g} s): start one, or give "
                "the channel and stream of one that runs "
                f"({argument('control_request_channel', '--control-channel')}, "
                f"{argument('control_request_stream_id', '--control-stream-id')})"
            )
        time.sleep(_RETRY_SLEEP_S)


def _resolved_channel(subscription: _native.Subscription, deadline_ns: int) -> str:
    """Return the response channel as the archive must know it: with the port really bound."""
    channel = subscription.channel
    if not channels.has_wildcard_port(channel):
        return channel
    return channels.with_endpoint(channel, resolve_endpoint(subscription, deadline_ns))


def resolve_endpoint(subscription: _native.Subscription, deadline_ns: int) -> str:
    """Wait for the driver to tell which port a subscription with port 0 has got.

    Raises:
        AeronTimeoutError: it does not by the deadline.
    """
    while (endpoint := subscription.resolved_endpoint()) is None:
        if time.monotonic_ns() >= deadline_ns:
            raise AeronTimeoutError(
                f"the media driver has not bound a port for {subscription.channel} in time"
            )
        time.sleep(_RETRY_SLEEP_S)
    return endpoint


def _exchange(
    session: ControlSession,
    message: codecs.AuthConnectRequest | codecs.ChallengeResponse,
    deadline_ns: int,
) -> codecs.ControlResponse | codecs.Challenge:
    pending = session.expect(message.correlation_id, _WHAT)
    try:
        session.send(message.encode(), _WHAT)
        await_pending(session, pending, deadline_ns)
    finally:
        session.forget(pending)
    if pending.answer is None:
        return pending.response()
    return pending.answer


def _answer_challenge(
    aeron: _native.AeronClient,
    session: ControlSession,
    challenge: codecs.Challenge,
    on_challenge: Callable[[bytes], bytes] | None,
    deadline_ns: int,
) -> codecs.ControlResponse:
    if on_challenge is None:
        raise ArchiveError(
            "cannot connect: the archive answers with a challenge: connect with a user and its"
            f" secret ({argument('aerotape.UserSecret', '--user, --secret-file')})"
            f"{argument(', or give on_challenge', '')}",
            correlation_id=challenge.correlation_id,
        )
    response = codecs.ChallengeResponse(
        control_session_id=challenge.control_session_id,
        correlation_id=aeron.next_correlation_id(),
        encoded_credentials=on_challenge(challenge.encoded_challenge),
    )
    answer = _exchange(session, response, deadline_ns)
    if isinstance(answer, codecs.Challenge):
        raise ArchiveError(
            "cannot connect: the archive challenges a second time",
            correlation_id=answer.correlation_id,
        )
    return answer


def _accept(session: ControlSession, answer: codecs.ControlResponse) -> int:
    """Take the session that was granted; return the archive's id."""
    session.control_session_id = answer.control_session_id
    if answer.code != codecs.ControlResponseCode.OK:
        raise error_of(answer, f"cannot {_WHAT}")
    version = session.archive_version = answer.version or 0
    if version and version >> 16 != PROTOCOL_MAJOR_VERSION:
        raise ArchiveError(
            f"cannot {_WHAT}: the archive speaks protocol version "
            f"{version_string(version)}, this client {PROTOCOL_MAJOR_VERSION}.x",
            correlation_id=answer.correlation_id,
        )
    # An archive keeps repeating its answer until the client has said something.
    keep_alive = codecs.KeepAliveRequest(
        control_session_id=answer.control_session_id, correlation_id=NULL_VALUE
    )
    if version < VERSION_WITH_ARCHIVE_ID:
        session.send(keep_alive.encode(), _WHAT)
        return NULL_VALUE
    ask = get_archive_id()
    return result_of(ask, await_request(session, ask))
