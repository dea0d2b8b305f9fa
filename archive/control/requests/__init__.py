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
from aerotape.archive.extensions import Handlers
from aerotape.errors import AerotapeError, ArchiveError
from aerotape.protocol import ErrorCode

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


def handle(services: Services, session: ControlSession, request: Any) -> None:
    """Respond to a request; whatever fails becomes an error response."""
    try:
        handlers = HANDLERS if type(request) in HANDLERS else services.extensions.handlers
        handlers[type(request)](services, session, request)
    except ArchiveError as error:
        session.send_error(request.correlation_id, error.error_code, str(error))
    except AerotapeError as error:
        # As in the reference, refusals with an error code are not counted as errors, others are.
        services.errors.record(f"{type(request).__name__} failed", error)
        session.send_error(request.correlation_id, ErrorCode.GENERIC, str(error))
    except Exception as error:
        name = type(request).__name__
        services.errors.record(f"{name} failed", error, exception=error)
        session.send_error(request.correlation_id, ErrorCode.GENERIC, f"{name} failed: {error}")
