"""Handlers of control requests, one for each, in one table; those of extensions are in theirs.

A handler is called for an active session that owns the image of the request; it responds at once,
or a part of `Services` responds later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerotape.archive.control.requests import (
    queries,
    recording,
    removal,
    replay,
    replication,
    scopes,
)
from aerotape.archive.control.requests.handling import send_failure
from aerotape.archive.extensions import Handlers

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services

HANDLERS: Handlers = {
    **recording.HANDLERS,
    **removal.HANDLERS,
    **queries.HANDLERS,
    **replay.HANDLERS,
    **replication.HANDLERS,
    **scopes.HANDLERS,
}

CHANGES = frozenset({**recording.HANDLERS, **removal.HANDLERS, **replication.HANDLERS})
"""Requests that change the catalog, or have it changed."""


def handle(services: Services, session: ControlSession, request: Any) -> None:
    """Respond to a request; whatever fails becomes an error response."""
    try:
        handlers = HANDLERS if type(request) in HANDLERS else services.extensions.handlers
        handlers[type(request)](services, session, request)
    except Exception as error:
        name = type(request).__name__
        send_failure(session, request.correlation_id, name, error, services.errors)
