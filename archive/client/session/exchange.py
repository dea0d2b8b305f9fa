"""Exchanges that no executor can perform as a `Call`, as steps that only pause.

Those of the handshake, and requests on a request stream other than the session's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from aerotape.archive.client.requests.request import Pause, Steps
from aerotape.archive.client.session.control_session import ControlSession
from aerotape.archive.client.session.pending_request import PendingRequest
from aerotape.errors import AeronTimeoutError

_POLL_NS: Final = 100_000


def exchange(
    session: ControlSession,
    pending: PendingRequest,
    offer: Callable[[], bool],
    no_room: AeronTimeoutError,
    deadline_ns: int,
) -> Steps[None]:
    """Send a request and wait until it is done, polling the response stream.

    Args:
        offer: tries once to send the request; False when there is no room yet.
        no_room: the error to raise when there is no room by the deadline.
    """
    yield from send(offer, no_room, deadline_ns, pending.what)
    while True:
        session.service(what=pending.what)
        if pending.is_done:
            return
        if time.monotonic_ns() >= deadline_ns:
            raise session.no_answer(pending)
        yield Pause(_POLL_NS, pending.what)


def send(
    offer: Callable[[], bool], no_room: AeronTimeoutError, deadline_ns: int, what: str
) -> Steps[None]:
    """Wait until an offer succeeds."""
    while not offer():
        if time.monotonic_ns() >= deadline_ns:
            raise no_room
        yield Pause(_POLL_NS, what)
