"""The control requests that the archive answers: one handler each, in one table.

To add a request is to write its handler in the module of its subject and enter it in that module's
`HANDLERS`. A handler is called for a session that is active and that owns the image on which the
request came; it answers at once or has someone else answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerotape.archive.control.requests import (
    queries,
    recording,
    removal,
    replay,
    replication,
    segments,
    sessions,
)
from aerotape.archive.control.requests.handling import Handlers
from aerotape.errors import AerotapeError, ArchiveError
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services

HANDLERS: Handlers = {
    **sessions.HANDLERS,
    **recording.HANDLERS,
    **removal.HANDLERS,
    **queries.HANDLERS,
    **replay.HANDLERS,
    **replication.HANDLERS,
    **segments.HANDLERS,
}


def handle(services: Services, session: ControlSession, request: Any) -> None:
    """Answer one request; nothing that goes wrong with it gets past this."""
    try:
        HANDLERS[type(request)](services, session, request)
    except ArchiveError as error:
        session.send_error(request.correlation_id, error.error_code, str(error))
    except AerotapeError as error:
        # Counted, as by the reference: refusals that have a code are not, what has none is.
        services.errors.record(f"{type(request).__name__} failed", error)
        session.send_error(request.correlation_id, ErrorCode.GENERIC, str(error))
    except Exception as error:
        name = type(request).__name__
        services.errors.record(f"{name} failed", error, exception=error)
        session.send_error(request.correlation_id, ErrorCode.GENERIC, f"{name} failed: {error}")
