"""Requests for the recordings of a scope: the archive's own, or those imported from others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aerotape.archive.control import responses
from aerotape.archive.control.requests import queries
from aerotape.archive.extensions import Handlers
from aerotape.archive.replay.request import ImportedRecording, RequestedReplay
from aerotape.catalog.scope_layout import (
    imported_directory,
    imported_ids,
    scope_of_archive,
    unsigned,
)
from aerotape.catalog.scopes.placing import imported_descriptor
from aerotape.codecs.generated import archive, ledger_control
from aerotape.errors import ArchiveError, StorageError
from aerotape.qualified_id import QualifiedId

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services

_MAX_LISTED: Final = 1_000


def _list(
    services: Services,
    session: ControlSession,
    request: ledger_control.ListScopedRecordingsRequest,
) -> None:
    scope_id = unsigned(request.scope_id)
    if _is_own(services, scope_id):
        plain = archive.ListRecordingsRequest(
            request.control_session_id,
            request.correlation_id,
            request.from_recording_id,
            request.record_count,
        )
        queries.HANDLERS[archive.ListRecordingsRequest](services, session, plain)
        return
    if not 0 < request.record_count <= _MAX_LISTED:
        raise ArchiveError(f"recordCount={request.record_count} is not from 1 to {_MAX_LISTED}")
    sent = 0
    next_id = request.from_recording_id
    for qualified_id in imported_ids(services.archive_dir, scope_id):
        if qualified_id.ledger_id < request.from_recording_id:
            continue
        if sent == request.record_count:
            return
        next_id = qualified_id.ledger_id + 1
        try:
            descriptor = imported_descriptor(services.archive_dir, qualified_id)
        except (ArchiveError, StorageError) as error:
            # As a damaged recording of the archive's own, it is left out.
            services.errors.record("imported recording not listed", error)
            continue
        session.pass_on(
            responses.descriptor(session.session_id, request.correlation_id, descriptor.encode())
        )
        sent += 1
    if sent < request.record_count:
        session.send_recording_unknown(request.correlation_id, next_id)


def _replay(
    services: Services, session: ControlSession, request: ledger_control.ScopedReplayRequest
) -> None:
    scope_id = unsigned(request.scope_id)
    imported = None
    if not _is_own(services, scope_id):
        qualified_id = QualifiedId.from_signed(request.scope_id, request.recording_id)
        imported = ImportedRecording(
            scope_id,
            imported_directory(services.archive_dir, qualified_id),
            imported_descriptor(services.archive_dir, qualified_id),
        )
    services.replays.start(
        session, request.correlation_id, RequestedReplay.of(request, imported=imported)
    )


def _is_own(services: Services, scope_id: int) -> bool:
    return scope_id in (0, scope_of_archive(services.archive_id))


HANDLERS: Handlers = {
    ledger_control.ListScopedRecordingsRequest: _list,
    ledger_control.ScopedReplayRequest: _replay,
}
