"""Requests about the archive itself and the control session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.archive.control.requests.handling import Handlers
from aerotape.codecs.generated import archive as codecs

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services


def _archive_id(
    services: Services, session: ControlSession, request: codecs.ArchiveIdRequest
) -> None:
    session.send_ok(request.correlation_id, services.archive_id)


def _keep_alive(
    services: Services, session: ControlSession, request: codecs.KeepAliveRequest
) -> None:
    """Has no response: receiving it has activated the session."""


HANDLERS: Handlers = {
    codecs.ArchiveIdRequest: _archive_id,
    codecs.KeepAliveRequest: _keep_alive,
}
