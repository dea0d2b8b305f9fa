"""The recordings of scopes, as a feature: the archive's own, and those imported from others.

Each imported recording has a directory with a catalog, which a dedicated thread reads: a store may
have many, and they may be on another disk than the archive's own recordings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from aerotape.archive.control import responses
from aerotape.archive.control.feature import Feature, Handlers
from aerotape.archive.control.requests import queries
from aerotape.archive.control.requests.handling import send_failure
from aerotape.archive.replay.request import ImportedRecording, RequestedReplay
from aerotape.catalog.scope_layout import (
    imported_directory,
    imported_ids,
    scope_of_archive,
    unsigned,
)
from aerotape.catalog.scopes.placing import imported_descriptor
from aerotape.codecs.generated import archive, ledger_control
from aerotape.codecs.runtime import Message, SchemaCodecs
from aerotape.errors import ArchiveError, StorageError
from aerotape.protocol import KNOWS_LEDGERS
from aerotape.qualified_id import QualifiedId
from aerotape.waiting import Task, await_future

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services
    from aerotape.catalog.descriptor import RecordingDescriptor

T = TypeVar("T")

_MAX_LISTED: Final = 1_000
# Of requests for a disk that stands still, so that clients do not fill the memory.
_MAX_WAITING: Final = 1_000


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
    find = partial(
        _find, services.archive_dir, scope_id, request.from_recording_id, request.record_count
    )

    def send(found: tuple[list[RecordingDescriptor], list[Exception], int]) -> None:
        descriptors, errors, next_id = found
        for error in errors:
            # As a damaged recording of the archive's own, it is left out.
            services.errors.record("imported recording not listed", error)
        for each in descriptors:
            session.send(
                responses.descriptor(session.session_id, request.correlation_id, each.encode())
            )
        if len(descriptors) < request.record_count:
            session.send_recording_unknown(request.correlation_id, next_id)

    _read(services, session, request, find, send)


def _find(
    archive_dir: Path, scope_id: int, from_recording_id: int, count: int
) -> tuple[list[RecordingDescriptor], list[Exception], int]:
    """Return up to `count` descriptors from an id on, why others have none, and the next id."""
    found: list[RecordingDescriptor] = []
    errors: list[Exception] = []
    next_id = from_recording_id
    for qualified_id in imported_ids(archive_dir, scope_id):
        if qualified_id.ledger_id < from_recording_id:
            continue
        if len(found) == count:
            break
        next_id = qualified_id.ledger_id + 1
        try:
            found.append(imported_descriptor(archive_dir, qualified_id))
        except (ArchiveError, StorageError) as error:
            errors.append(error)
    return found, errors, next_id


def _replay(
    services: Services, session: ControlSession, request: ledger_control.ScopedReplayRequest
) -> None:
    scope_id = unsigned(request.scope_id)
    if _is_own(services, scope_id):
        services.replays.start(session, request.correlation_id, RequestedReplay.of(request))
        return
    qualified_id = QualifiedId.from_signed(request.scope_id, request.recording_id)
    directory = imported_directory(services.archive_dir, qualified_id)

    def start(descriptor: RecordingDescriptor) -> None:
        imported = ImportedRecording(scope_id, directory, descriptor)
        services.replays.start(
            session, request.correlation_id, RequestedReplay.of(request, imported=imported)
        )

    find = partial(imported_descriptor, services.archive_dir, qualified_id)
    _read(services, session, request, find, start)


def _read(
    services: Services,
    session: ControlSession,
    request: ledger_control.ListScopedRecordingsRequest | ledger_control.ScopedReplayRequest,
    read: Callable[[], T],
    respond: Callable[[T], None],
) -> None:
    """Have the directories of imported recordings read, and respond with what that returns."""
    if len(services.tasks) >= _MAX_WAITING:
        raise ArchiveError(
            f"the disk does not respond: {_MAX_WAITING} requests wait for it; try again"
        )

    def task() -> Task[None]:
        try:
            found = yield from await_future(services.imports.submit(read))
            if not session.is_done:
                respond(found)
        except Exception as error:
            name = type(request).__name__
            send_failure(session, request.correlation_id, name, error, services.errors)

    services.tasks.start(task())


def _is_own(services: Services, scope_id: int) -> bool:
    return scope_id in (0, scope_of_archive(services.archive_id))


_HANDLERS: Handlers = {
    ledger_control.ListScopedRecordingsRequest: _list,
    ledger_control.ScopedReplayRequest: _replay,
}


class ScopesFeature(Feature):
    """The requests for recordings of scopes."""

    messages: ClassVar[SchemaCodecs | None] = ledger_control
    capability = KNOWS_LEDGERS
    roles: ClassVar[Mapping[str, Collection[type[Message]]]] = {"read": tuple(_HANDLERS)}

    @property
    def handlers(self) -> Handlers:
        return _HANDLERS
