"""Requests for ledgers, of the schema of this package; all are answered by background tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from aerotape.archive.config.property_names import MIRROR_CHANNELS
from aerotape.archive.control.requests.handling import Handler, Handlers
from aerotape.archive.ledger.alias import with_alias
from aerotape.archive.ledger.metadata import LedgerMetadata, check_quorums, hash_of_token
from aerotape.archive.ledger.mirrors.follower import MirrorSource
from aerotape.archive.ledger.service import LedgerService
from aerotape.catalog.scopes.layout import imported_directory
from aerotape.clock import epoch_ms
from aerotape.codecs.generated import ledger_control as codecs
from aerotape.codecs.generated.archive import SourceLocation
from aerotape.errors import ArchiveError, ConfigurationError, LedgerExistsError
from aerotape.protocol import ErrorCode
from aerotape.qualified_id import MAX_UNSIGNED, QualifiedId

if TYPE_CHECKING:
    from aerotape.archive.background_tasks import Task
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services

_MAX_LISTED: Final = 1_000


def _ledger(request: Any) -> QualifiedId:
    """Return the ledger of a request (QualifiedIdError)."""
    return QualifiedId.from_signed(request.scope_id, request.ledger_id)


def _handler(method: Callable[..., Task[int]], *fields: str, changes: bool = False) -> Handler:
    """Return the handler of a request that is a task of a ledger and these fields.

    Args:
        changes: whether the task changes the ledger.
    """

    def handle(services: Services, session: ControlSession, request: Any) -> None:
        ledger = _ledger(request)
        task = method(services.ledgers, ledger, *(getattr(request, name) for name in fields))
        services.ledgers.requests.begin(
            session, request.correlation_id, task, changes=ledger if changes else None
        )

    return handle


def _check_mirrors(services: Services, session: ControlSession, mirrors: list[str]) -> None:
    """Refuse mirrors that neither the configuration nor a client that may replace them names.

    This archive connects to a mirror as a user of that archive, so not every client may choose it.
    """
    others = [each for each in mirrors if each not in services.mirror_channels]
    if others and not services.authorisation.is_authorised(
        codecs.SCHEMA_ID, codecs.ReplaceMirrorRequest.TEMPLATE_ID, session.principal
    ):
        raise ArchiveError(
            f"unauthorised action: mirror a ledger on {', '.join(others)}: not in"
            f" {MIRROR_CHANNELS}; add it there, or create the ledger as a user that may replace"
            " mirrors",
            ErrorCode.UNAUTHORISED_ACTION,
        )


def _create(
    services: Services, session: ControlSession, request: codecs.CreateLedgerRequest
) -> None:
    import json

    mirrors = json.loads(request.mirrors or "[]")
    if not isinstance(mirrors, list) or not all(isinstance(each, str) for each in mirrors):
        raise ConfigurationError(f"mirrors {mirrors!r} are not an array of channels", "mirrors")
    _check_mirrors(services, session, mirrors)
    ledger = _ledger(request)
    if imported_directory(services.archive_dir, ledger).exists():
        raise LedgerExistsError(f"{ledger} is the id of an imported recording", ledger)
    metadata = LedgerMetadata(
        ledger,
        request.ledger_type,
        request.digest_type,
        epoch_ms(),
        hash_of_token(ledger, request.password_token),
        request.write_quorum,
        request.ack_quorum,
        tuple(mirrors),
    )
    check_quorums(metadata)
    task = services.ledgers.create(metadata)
    services.ledgers.requests.begin(session, request.correlation_id, task)


def _info(services: Services, session: ControlSession, request: codecs.LedgerInfoRequest) -> None:
    correlation_id, ledger = request.correlation_id, _ledger(request)
    task = services.ledgers.info(session, correlation_id, ledger, request.password_token)
    services.ledgers.requests.begin(session, correlation_id, task)


def _list(services: Services, session: ControlSession, request: codecs.ListLedgersRequest) -> None:
    if not 0 < request.count <= _MAX_LISTED:
        raise ConfigurationError(f"count {request.count} is not from 1 to {_MAX_LISTED}", "count")
    task = services.ledgers.list_scope(
        session,
        request.correlation_id,
        request.scope_id & MAX_UNSIGNED,
        request.from_ledger_id & MAX_UNSIGNED,
        request.count,
    )
    services.ledgers.requests.begin(session, request.correlation_id, task)


def _attach(
    services: Services, session: ControlSession, request: codecs.AttachWriterRequest
) -> None:
    ledger = _ledger(request)
    is_local = request.location is codecs.WriterLocation.LOCAL
    task = services.ledgers.attach(
        session,
        request.correlation_id,
        ledger,
        stream_id=request.stream_id,
        source_location=SourceLocation.LOCAL if is_local else SourceLocation.REMOTE,
        channel=lambda metadata: with_alias(request.channel, metadata, request.session_id),
        password_token=request.password_token,
    )
    services.ledgers.requests.begin(session, request.correlation_id, task, changes=ledger)


def _close(services: Services, session: ControlSession, request: codecs.CloseLedgerRequest) -> None:
    ledger = _ledger(request)
    task = services.ledgers.close_ledger(session, ledger)
    services.ledgers.requests.begin(session, request.correlation_id, task, changes=ledger)


def _mirror(
    services: Services, session: ControlSession, request: codecs.MirrorLedgerRequest
) -> None:
    metadata = LedgerMetadata(
        _ledger(request),
        request.ledger_type,
        request.digest_type,
        request.created_ms,
        request.password_hash,
    )
    source = MirrorSource(
        request.source_channel,
        request.source_stream_id,
        request.source_recording_id,
        request.confirmed_position,
    )
    task = services.ledgers.mirror(metadata, source)
    services.ledgers.requests.begin(session, request.correlation_id, task, changes=metadata.ledger)


HANDLERS: Handlers = {
    codecs.CreateLedgerRequest: _create,
    codecs.LedgerInfoRequest: _info,
    codecs.ListLedgersRequest: _list,
    codecs.AttachWriterRequest: _attach,
    codecs.SyncLedgerRequest: _handler(LedgerService.sync),
    codecs.AwaitLedgerRequest: _handler(
        LedgerService.await_position, "position", "reach", "timeout_ns"
    ),
    codecs.CloseLedgerRequest: _close,
    codecs.RecoverLedgerRequest: _handler(LedgerService.recover, "password_token", changes=True),
    codecs.DeleteLedgerRequest: _handler(LedgerService.delete, changes=True),
    codecs.LocateEntryRequest: _handler(LedgerService.locate, "entry_id"),
    codecs.MirrorLedgerRequest: _mirror,
    codecs.ReplaceMirrorRequest: _handler(
        LedgerService.replace_mirror, "mirror", "replacement", changes=True
    ),
}
