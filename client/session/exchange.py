"""Exchanges with an archive: a request is sent, and its response is awaited."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final, TypeVar

from aerotape import _native
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.request import Call, Item, Listing, PendingRequest
from aerotape.client.session.response_errors import items_of, result_of
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import AeronTimeoutError
from aerotape.protocol import NULL_VALUE
from aerotape.waiting import Pause, Responses, Task

T = TypeVar("T")

_POLL_NS: Final = 100_000


def exchange(
    session: ClientSession,
    call: Call[T],
    publication: _native.ExclusivePublication | None = None,
) -> Task[T]:
    """Perform a request and return its result.

    If it is cancelled after the request was sent, what the archive may have granted is undone.

    Args:
        publication: another request stream than the session's.
    """
    pending = session.begin(call)
    try:
        yield from perform(session, pending, publication=publication)
    except BaseException:
        session.abandon(pending, call)
        raise
    return result_of(call, pending)


def list_items(session: ClientSession, listing: Listing) -> Task[list[Item]]:
    """Perform a listing and return its items."""
    pending = session.begin(listing)
    try:
        while (active := session.take_turn(pending)) is not None:
            # One that was cancelled may never end.
            with suppress(AeronTimeoutError):
                yield from _await_done(session, active, session.timeout_ns)
            session.forget(active)
        yield from perform(session, pending)
    except BaseException:
        session.abandon(pending, listing)
        raise
    return items_of(listing, pending)


def perform(
    session: ClientSession,
    pending: PendingRequest,
    deadline_ns: int | None = None,
    publication: _native.ExclusivePublication | None = None,
) -> Task[None]:
    """Send a request and wait until it is done.

    Args:
        deadline_ns: for both, of the monotonic clock. None: each has the session's timeout.
    """
    yield from send(session, pending, deadline_ns, publication)
    timeout_ns = session.timeout_ns if deadline_ns is None else deadline_ns - time.monotonic_ns()
    yield from _await_done(session, pending, timeout_ns)


def send(
    session: ClientSession,
    message: PendingRequest,
    deadline_ns: int | None = None,
    publication: _native.ExclusivePublication | None = None,
) -> Task[None]:
    """Send a message, waiting for room until the deadline or for the session's timeout."""
    if session.offer(message, publication):
        return
    if deadline_ns is None:
        deadline_ns = time.monotonic_ns() + session.timeout_ns
    while not session.offer(message, publication):
        if time.monotonic_ns() >= deadline_ns:
            raise session.back_pressure(message.what, publication)
        yield Pause(_POLL_NS)


def _await_done(session: ClientSession, pending: PendingRequest, timeout_ns: int) -> Task[None]:
    """Wait until a request is done. Listed items restart the timeout."""
    seen = -1
    while not pending.is_done:
        if len(pending.items) == seen:
            raise session.no_answer(pending)
        seen = len(pending.items)
        yield Responses(session, pending.what, timeout_ns, lambda: pending.is_done)


def send_keep_alive(
    session: ClientSession, what: str, deadline_ns: int | None = None
) -> Task[None]:
    """Send a keep-alive, waiting for room (AeronTimeoutError)."""
    assert session.control_session_id is not None, "after the handshake"
    message = codecs.KeepAliveRequest(
        control_session_id=session.control_session_id, correlation_id=NULL_VALUE
    )
    yield from send(session, PendingRequest(NULL_VALUE, what, message.encode()), deadline_ns)


def poll(session: ClientSession, what: str) -> Task[None]:
    """Read the response stream once."""
    yield Responses(session, what)
