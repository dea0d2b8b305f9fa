"""Opening a control session: streams, connect request, challenge, archive id."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, TypeVar

from aerotape import __version__, _native
from aerotape.catalog.layout import version_string
from aerotape.client import channels
from aerotape.client.credentials import Login
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.exchange import exchange, perform, send_keep_alive
from aerotape.client.session.request import PendingRequest, get_archive_id
from aerotape.client.session.response_errors import error_of
from aerotape.codecs.generated import archive as codecs
from aerotape.control_address import with_signed_address
from aerotape.driver_tasks import (
    add_publication,
    add_subscription,
    bind_port,
)
from aerotape.errors import AeronTimeoutError, ArchiveError
from aerotape.protocol import (
    KNOWS_LEDGERS,
    PROTOCOL_MAJOR_VERSION,
    PROTOCOL_VERSION,
    VERSION_WITH_ARCHIVE_ID,
)
from aerotape.waiting import Task, Until, begin_in_thread

T = TypeVar("T")

_WHAT: Final = "connect"
_POLL_NS: Final = 100_000


def open_session(
    aeron: _native.AeronClient,
    *,
    request_channel: str,
    request_stream_id: int,
    response_channel: str,
    response_stream_id: int,
    timeout_ns: int,
    login: Login,
    client_name: str,
    stream_parameters: Mapping[str, str] = MappingProxyType({}),
) -> Task[ClientSession]:
    """Connect to an archive and return the session.

    Closing the task, or an error, closes the session and its streams. Arguments and errors as of
    `connect`.

    Args:
        timeout_ns: for the connect, and for each request of the session.
        stream_parameters: of channels that lack them; then the defaults of a client apply.
    """
    deadline_ns = time.monotonic_ns() + timeout_ns
    on_challenge, prove = login.on_challenge, login.prove
    given_channel = request_channel
    if prove is not None:
        # The numeric address is signed, so it is the one that requests are sent to.
        resolving = partial(with_signed_address, given_channel)
        request_channel, address = yield from _in_thread(
            resolving, deadline_ns, f"the endpoint of {given_channel} was not resolved in time"
        )
        on_challenge = partial(_proof, prove, address)
    request_channel = channels.with_parameters(request_channel, stream_parameters)
    response_channel = channels.with_parameters(response_channel, stream_parameters)
    subscription, publication = yield from _add_streams(
        aeron, request_channel, request_stream_id, response_channel, response_stream_id, timeout_ns
    )
    session = ClientSession(aeron, publication, subscription, timeout_ns)
    session.request_channel = given_channel
    try:
        yield from _await_request_stream(publication, timeout_ns)
        answer_channel = subscription.channel
        if channels.has_wildcard_port(answer_channel):
            remaining_ns = deadline_ns - time.monotonic_ns()
            answer_channel = yield from bind_port(subscription, answer_channel, remaining_ns)
        connect = codecs.AuthConnectRequest(
            correlation_id=aeron.next_correlation_id(),
            response_stream_id=response_stream_id,
            version=PROTOCOL_VERSION | KNOWS_LEDGERS,
            response_channel=answer_channel,
            encoded_credentials=login.credentials,
            client_info=f"name={client_name} version={__version__}",
        )
        answer = yield from _exchange(session, connect, deadline_ns)
        if isinstance(answer, codecs.Challenge):
            answer = yield from _answer_challenge(session, answer, on_challenge, deadline_ns)
        yield from _accept(session, answer)
        return session
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
) -> Task[tuple[_native.Subscription, _native.ExclusivePublication]]:
    """Add both streams, with one random session id.

    With a response channel, the request channel names the response subscription instead.
    """
    is_response = channels.is_response_channel(response_channel)
    session_id = None if is_response else random.getrandbits(32) - (1 << 31)
    response = channels.control_channel(response_channel, session_id)
    subscription = yield from add_subscription(aeron, response, response_stream_id, timeout_ns)
    try:
        if is_response:
            request = channels.request_channel_for(request_channel, subscription.registration_id)
        else:
            request = channels.control_channel(request_channel, session_id)
        publication = yield from add_publication(aeron, request, request_stream_id, timeout_ns)
    except BaseException:
        subscription.close()
        raise
    return subscription, publication


def _await_request_stream(publication: _native.ExclusivePublication, timeout_ns: int) -> Task[None]:
    connecting = Until(
        lambda: publication.is_connected or None, time.monotonic_ns() + timeout_ns, _POLL_NS
    )
    yield connecting
    if connecting.value is None:
        raise AeronTimeoutError(
            f"cannot {_WHAT}: no archive listens on {publication.channel} stream "
            f"{publication.stream_id} (waited {timeout_ns / 1e9:g} s): start one, or give the "
            "channel and stream of a running one (control_request_channel, "
            "control_request_stream_id)"
        ).naming("control_request_channel", "control_request_stream_id")


def _exchange(
    session: ClientSession,
    message: codecs.AuthConnectRequest | codecs.ChallengeResponse,
    deadline_ns: int,
) -> Task[codecs.ControlResponse | codecs.Challenge]:
    pending = session.expect(PendingRequest(message.correlation_id, _WHAT, message.encode()))
    try:
        yield from perform(session, pending, deadline_ns)
    finally:
        session.forget(pending)
    return pending.answer or pending.response()


def _answer_challenge(
    session: ClientSession,
    challenge: codecs.Challenge,
    on_challenge: Callable[[bytes], bytes] | None,
    deadline_ns: int,
) -> Task[codecs.ControlResponse]:
    if on_challenge is None:
        raise ArchiveError(
            "cannot connect: the archive responds with a challenge: connect with a user and its"
            " secret (credentials=aerotape.UserSecret(…), or on_challenge)",
            correlation_id=challenge.correlation_id,
        ).naming("credentials=aerotape.UserSecret(…), or on_challenge")
    # A proof takes long on purpose, and a user's function may wait.
    answering = partial(on_challenge, challenge.encoded_challenge)
    late = "the credentials were not computed in time"
    response = codecs.ChallengeResponse(
        control_session_id=challenge.control_session_id,
        correlation_id=session.aeron.next_correlation_id(),
        encoded_credentials=(yield from _in_thread(answering, deadline_ns, late)),
    )
    answer = yield from _exchange(session, response, deadline_ns)
    if isinstance(answer, codecs.Challenge):
        raise ArchiveError(
            "cannot connect: the archive sent a second challenge",
            correlation_id=answer.correlation_id,
        )
    return answer


def _proof(prove: Callable[[bytes, str], bytes], address: str, challenge: bytes) -> bytes:
    return prove(challenge, address)


def _accept(session: ClientSession, answer: codecs.ControlResponse) -> Task[None]:
    """Accept the granted session, and request the archive's id."""
    session.control_session_id = answer.control_session_id
    if answer.code != codecs.ControlResponseCode.OK:
        raise error_of(answer, f"cannot {_WHAT}")
    version = session.archive_version = (answer.version or 0) & ~KNOWS_LEDGERS
    session.knows_ledgers = bool((answer.version or 0) & KNOWS_LEDGERS)
    if version and version >> 16 != PROTOCOL_MAJOR_VERSION:
        raise ArchiveError(
            f"cannot {_WHAT}: the archive uses protocol version "
            f"{version_string(version)}, this client {PROTOCOL_MAJOR_VERSION}.x",
            correlation_id=answer.correlation_id,
        )
    # An archive repeats its response until it receives a request.
    if version < VERSION_WITH_ARCHIVE_ID:
        yield from send_keep_alive(session, _WHAT)
    else:
        session.archive_id = yield from exchange(session, get_archive_id())


def _in_thread(work: Callable[[], T], deadline_ns: int, problem: str) -> Task[T]:
    """Do work that may block, and return its result; it continues unobserved after the deadline.

    Raises:
        AeronTimeoutError: it has not ended by the deadline, of the monotonic clock; with the text
            `problem`.
    """
    future = begin_in_thread(work, "aerotape-connect")
    yield Until(future.done, deadline_ns)
    if not future.done():
        raise AeronTimeoutError(f"cannot connect: {problem}")
    return future.result()
