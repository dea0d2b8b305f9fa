"""Handlers of the requests for ledgers; background tasks of `Ledgers` send the responses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from aerotape.archive.config.property_table import MIRROR_CHANNELS
from aerotape.archive.extensions import Handler, Handlers
from aerotape.archive.ledger.alias import with_alias
from aerotape.archive.ledger.metadata import LedgerMetadata, check_quorums, hash_of_token
from aerotape.archive.ledger.mirrors.followers import MirrorSource
from aerotape.catalog.scopes.layout import imported_directory, unsigned
from aerotape.clock import epoch_ms
from aerotape.codecs.generated import ledger_control as codecs
from aerotape.codecs.generated.archive import SourceLocation
from aerotape.errors import ArchiveError, ConfigurationError, LedgerExistsError
from aerotape.protocol import ErrorCode
from aerotape.qualified_id import MAX_UNSIGNED, QualifiedId

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services
    from aerotape.archive.ledger.mirrors.mirroring_ledgers import MirroringLedgers

_MAX_LISTED: Final = 1_000


def _ledger(request: Any) -> QualifiedId:
    """Return the ledger of a request (QualifiedIdError)."""
    return QualifiedId.from_signed(request.scope_id, request.ledger_id)


def _passing(method: Callable[..., None], *fields: str) -> Handler:
    """Return the handler of a request that passes a ledger and these fields to a method."""

    def handle(services: Services, session: ControlSession, request: Any) -> None:
        values = (getattr(request, name) for name in fields)
        method(session, request.correlation_id, _ledger(request), *values)

    return handle


def _check_mirrors(
    services: Services, session: ControlSession, mirrors: list[str], known: frozenset[str]
) -> None:
    """Refuse mirrors that neither the configuration nor a client that may replace them names.

    This archive connects to a mirror as a user of that archive, so not every client may choose it.
    """
    others = [each for each in mirrors if each not in known]
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
    ledgers: MirroringLedgers,
    mirror_channels: frozenset[str],
    services: Services,
    session: ControlSession,
    request: codecs.CreateLedgerRequest,
) -> None:
    import json

    mirrors = json.loads(request.mirrors or "[]")
    if not isinstance(mirrors, list) or not all(isinstance(each, str) for each in mirrors):
        raise ConfigurationError(f"mirrors {mirrors!r} are not an array of channels", "mirrors")
    _check_mirrors(services, session, mirrors, mirror_channels)
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
    ledgers.create(session, request.correlation_id, metadata)


def _list(
    ledgers: MirroringLedgers,
    services: Services,
    session: ControlSession,
    request: codecs.ListLedgersRequest,
) -> None:
    if not 0 < request.count <= _MAX_LISTED:
        raise ConfigurationError(f"count {request.count} is not from 1 to {_MAX_LISTED}", "count")
    ledgers.list(
        session,
        request.correlation_id,
        request.scope_id & MAX_UNSIGNED,
        request.from_ledger_id & MAX_UNSIGNED,
        request.count,
    )


def _attach(
    ledgers: MirroringLedgers,
    services: Services,
    session: ControlSession,
    request: codecs.AttachWriterRequest,
) -> None:
    ledger = _ledger(request)
    is_local = request.location is codecs.WriterLocation.LOCAL
    ledgers.attach(
        session,
        request.correlation_id,
        ledger,
        stream_id=request.stream_id,
        source_location=SourceLocation.LOCAL if is_local else SourceLocation.REMOTE,
        channel=lambda metadata: with_alias(request.channel, metadata, request.session_id),
        password_token=request.password_token,
    )


def _mirror(
    ledgers: MirroringLedgers,
    services: Services,
    session: ControlSession,
    request: codecs.MirrorLedgerRequest,
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
    ledgers.mirror(session, request.correlation_id, metadata, source)


def _next_scope(
    ledgers: MirroringLedgers,
    services: Services,
    session: ControlSession,
    request: codecs.NextScopeRequest,
) -> None:
    ledgers.next_scope(session, request.correlation_id, unsigned(request.scope_id))


def handlers_of(ledgers: MirroringLedgers, mirror_channels: frozenset[str]) -> Handlers:
    """Return the handlers of the requests for these ledgers.

    Args:
        mirror_channels: control channels of archives that any client may name as mirrors.
    """
    return {
        codecs.CreateLedgerRequest: partial(_create, ledgers, mirror_channels),
        codecs.LedgerInfoRequest: _passing(ledgers.info, "password_token"),
        codecs.ListLedgersRequest: partial(_list, ledgers),
        codecs.AttachWriterRequest: partial(_attach, ledgers),
        codecs.SyncLedgerRequest: _passing(ledgers.sync),
        codecs.AwaitLedgerRequest: _passing(
            ledgers.await_position, "position", "reach", "timeout_ns"
        ),
        codecs.CloseLedgerRequest: _passing(ledgers.close_ledger),
        codecs.RecoverLedgerRequest: _passing(ledgers.recover, "password_token"),
        codecs.DeleteLedgerRequest: _passing(ledgers.delete),
        codecs.LocateEntryRequest: _passing(ledgers.locate, "entry_id"),
        codecs.MirrorLedgerRequest: partial(_mirror, ledgers),
        codecs.ReplaceMirrorRequest: _passing(ledgers.replace_mirror, "mirror", "replacement"),
        codecs.NextScopeRequest: partial(_next_scope, ledgers),
    }
