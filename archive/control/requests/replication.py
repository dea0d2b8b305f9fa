"""Requests that start and stop replications."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from aerotape.archive.control.feature import Handlers
from aerotape.archive.control.requests.handling import check_unprotected
from aerotape.archive.control.requests.recording import ClientObserver
from aerotape.archive.replication.request import ReplicationRequest
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ArchiveError
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services


_FIELDS = tuple(field.name for field in fields(ReplicationRequest))


def _replicate(
    services: Services,
    session: ControlSession,
    request: codecs.ReplicateRequest | codecs.TaggedReplicateRequest | codecs.ReplicateRequest2,
) -> None:
    # Fields are absent in the other requests, and None in requests of older clients.
    values = {name: getattr(request, name, None) for name in _FIELDS}
    replication = ReplicationRequest(
        **{name: value for name, value in values.items() if value is not None}
    )
    if services.catalog.has_recording(replication.dst_recording_id):
        check_unprotected(services, replication.dst_recording_id)
    replication_id = services.next_id()
    observer = ClientObserver(session, replication_id)
    services.replications.start(replication_id, observer, replication)
    session.send_ok(request.correlation_id, replication_id)


def _stop_replication(
    services: Services, session: ControlSession, request: codecs.StopReplicationRequest
) -> None:
    if not services.replications.stop(request.replication_id):
        raise ArchiveError(
            f"unknown replication id {request.replication_id}", ErrorCode.UNKNOWN_REPLICATION
        )
    session.send_ok(request.correlation_id)


HANDLERS: Handlers = {
    codecs.ReplicateRequest: _replicate,
    codecs.TaggedReplicateRequest: _replicate,
    codecs.ReplicateRequest2: _replicate,
    codecs.StopReplicationRequest: _stop_replication,
}
