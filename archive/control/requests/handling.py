"""What the handlers of control requests have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from aerotape.codecs.runtime import Message
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services

Handler = Callable[["Services", "ControlSession", Any], None]
Handlers = Mapping[type[Message], Handler]


def is_known(
    services: Services, session: ControlSession, correlation_id: int, recording_id: int
) -> bool:
    """Return whether there is such a recording; the client is told when there is none."""
    if services.catalog.has_recording(recording_id):
        return True
    session.send_error(
        correlation_id, ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}"
    )
    return False


def may_list(session: ControlSession, correlation_id: int) -> bool:
    """Return whether a listing may begin; the client is told when one is under way."""
    if not session.is_listing:
        return True
    session.send_error(
        correlation_id,
        ErrorCode.ACTIVE_LISTING,
        "active listing already in progress: read it to its end first",
    )
    return False
