"""Handlers of the requests for ledgers: each begins a task, which is or sends the response."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from aerotape.archive.control.feature import Handler, Handlers
from aerotape.archive.features.ledger.alias import with_alias
from aerotape.archive.features.ledger.metadata import LedgerMetadata, check_quorums, hash_of_token
from aerotape.archive.features.ledger.mirrors.follower import MirrorSource
from aerotape.archive.features.ledger.properties import MIRROR_CHANNELS
from aerotape.archive.features.ledger.protocol.member_record import MemberRecord, MirrorStep
from aerotape.archive.features.ledger.service import LedgerService
from aerotape.catalog.scope_layout import unsigned
from aerotape.clock import epoch_ms
from aerotape.codecs.generated import ledger_control as codecs
from aerotape.codecs.generated.archive import SourceLocation
from aerotape.errors import ArchiveError, CodecError, ConfigurationError
from aerotape.protocol import ErrorCode
from aerotape.qualified_id import MAX_UNSIGNED, QualifiedId

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.control.services import Services
    from aerotape.waiting import Task

_MAX_LISTED: Final = 1_000
# Characters of a refused text in an error.
_SHOWN: Final = 100


def _ledger(request: Any) -> QualifiedId:
    """Return the ledger of a request (QualifiedIdError)."""
    return QualifiedId.from_signed(request.scope_id, request.ledger_id)


def _handler(
    ledgers: LedgerService,
    method: Callable[..., Task[int]],
    *fields: str,
    changes: bool = False,
) -> Handler:
    """Return the handler of a request that is a task of a ledger and these fields.

    Args:
        changes: whether the task changes the ledger.
    """

    def handle(services: Services, session: ControlSession, request: Any) -> None:
        ledger = ledgers.of(_ledger(request))
        task = method(ledger, *(getattr(request, name) for name in fields))
        ledgers.requests.begin(
            session, request.correlation_id, task, changes=ledger if changes else None
        )

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


def _mirrors_of(text: str) -> list[str]:
    """Return the channels in the JSON of a request (ConfigurationError)."""
    import json

    try:
        mirrors = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"mirrors are not JSON: {error}: {text[:_SHOWN]!r}; send an array of channels",
            "mirrors",
        ) from error
    if not isinstance(mirrors, list) or not all(isinstance(each, str) for each in mirrors):
        raise ConfigurationError(
            f"mirrors {text[:_SHOWN]!r} are not an array of channels", "mirrors"
        )
    return mirrors


def _create(
    ledgers: LedgerService,
    mirror_channels: frozenset[str],
    services: Services,
    session: ControlSession,
    request: codecs.CreateLedgerRequest,
) -> None:
    mirrors = _mirrors_of(request.mirrors or "[]")
    _check_mirrors(services, session, mirrors, mirror_channels)
    ledger = _ledger(request)
    metadata = LedgerMetadata(
        ledger,
        request.ledger_type,
        request.digest_type,
        epoch_ms(),
        hash_of_token(ledger, request.password_token),
        request.write_quorum,
        request.ack_quorum,
        MemberRecord(groups=(("", *mirrors),)) if mirrors else MemberRecord(),
    )
    check_quorums(metadata)
    task = ledgers.create(metadata)
    ledgers.requests.begin(session, request.correlation_id, task)


def _info(
    ledgers: LedgerService,
    services: Services,
    session: ControlSession,
    request: codecs.LedgerInfoRequest,
) -> None:
    correlation_id, ledger = request.correlation_id, ledgers.of(_ledger(request))
    task = ledgers.info(session, correlation_id, ledger, request.password_token)
    ledgers.requests.begin(session, correlation_id, task)


def _list(
    ledgers: LedgerService,
    services: Services,
    session: ControlSession,
    request: codecs.ListLedgersRequest,
) -> None:
    if not 0 < request.count <= _MAX_LISTED:
        raise ConfigurationError(f"count {request.count} is not from 1 to {_MAX_LISTED}", "count")
    task = ledgers.list_scope(
        session,
        request.correlation_id,
        request.scope_id & MAX_UNSIGNED,
        request.from_ledger_id & MAX_UNSIGNED,
        request.count,
    )
    ledgers.requests.begin(session, request.correlation_id, task)


def _prepare(
    ledgers: LedgerService,
    services: Services,
    session: ControlSession,
    request: codecs.PrepareWriterRequest,
) -> None:
    ledger = ledgers.of(_ledger(request))
    task = ledgers.prepare(
        session,
        request.correlation_id,
        ledger,
        takes_over=bool(request.takes_over),
        password_token=request.password_token,
    )
    ledgers.requests.begin(session, request.correlation_id, task, changes=ledger)


def _attach(
    ledgers: LedgerService,
    services: Services,
    session: ControlSession,
    request: codecs.AttachWriterRequest,
) -> None:
    ledger = ledgers.of(_ledger(request))
    is_local = request.location is codecs.WriterLocation.LOCAL
    task = ledgers.attach(
        session,
        request.correlation_id,
        ledger,
        stream_id=request.stream_id,
        source_location=SourceLocation.LOCAL if is_local else SourceLocation.REMOTE,
        channel=lambda metadata: with_alias(request.channel, metadata, request.session_id),
        password_token=request.password_token,
    )
    ledgers.requests.begin(session, request.correlation_id, task, changes=ledger)


def _await(
    ledgers: LedgerService,
    services: Services,
    session: ControlSession,
    request: codecs.AwaitLedgerRequest,
) -> None:
    task = ledgers.await_position(
        session,
        ledgers.of(_ledger(request)),
        request.position,
        request.reach,
        request.timeout_ns,
        request.attach_id,
    )
    ledgers.requests.begin(session, request.correlation_id, task)


def _recover(
    ledgers: LedgerService,
    services: Services,
    session: ControlSession,
    request: codecs.RecoverLedgerRequest,
) -> None:
    task = ledgers.recover(session, ledgers.of(_ledger(request)), request.password_token)
    ledgers.requests.begin(session, request.correlation_id, task)


def _close(
    ledgers: LedgerService,
    services: Services,
    session: ControlSession,
    request: codecs.CloseLedgerRequest,
) -> None:
    ledger = ledgers.of(_ledger(request))
    task = ledgers.close_ledger(session, ledger)
    ledgers.requests.begin(session, request.correlation_id, task, changes=ledger)


def _mirror(
    ledgers: LedgerService,
    services: Services,
    session: ControlSession,
    request: codecs.MirrorLedgerRequest,
) -> None:
    """Begin a step of another archive that stores the same ledger."""
    correlation_id, ledger = request.correlation_id, _ledger(request)
    try:
        step = MirrorStep(request.step)  # type: ignore[arg-type]
        member_record = MemberRecord.decode(request.member_record)
    except (CodecError, ValueError) as error:
        raise ArchiveError(f"cannot mirror ledger {ledger}: {error}") from error
    theirs = LedgerMetadata(
        ledger,
        request.ledger_type,
        request.digest_type,
        request.created_ms,
        request.password_hash,
        request.write_quorum or 1,
        request.ack_quorum or 1,
        member_record,
    )
    position = request.recorded_position or 0
    first: Task[None] | None = None
    if step in (MirrorStep.PROMISE, MirrorStep.FOLLOW, MirrorStep.ADOPT, MirrorStep.CLOSE):
        first = ledgers.members.promise(theirs, is_stored=step is MirrorStep.PROMISE)
    task: Task[int] | Task[None]
    match step:
        case MirrorStep.QUERY:
            task = ledgers.members.send_state(session, correlation_id, theirs)
        case MirrorStep.CREATE:
            task = ledgers.members.create_mirror(session, correlation_id, theirs)
        case MirrorStep.DISCARD:
            task = ledgers.members.discard_mirror(session, correlation_id, theirs)
        case MirrorStep.PROMISE:
            task = ledgers.members.send_settled_state(session, correlation_id, theirs)
        case MirrorStep.FOLLOW:
            source = MirrorSource(
                request.source_channel,
                request.source_stream_id,
                request.source_recording_id,
                position,
                member_record,
            )
            task = ledgers.members.follow(session, correlation_id, theirs, source)
        case _:
            task = ledgers.members.adopt(theirs, position, is_closed=step is MirrorStep.CLOSE)
    changes = None if step is MirrorStep.QUERY else ledgers.of(ledger)
    ledgers.requests.begin(session, correlation_id, task, changes=changes, first=first)


def _next_scope(
    ledgers: LedgerService,
    services: Services,
    session: ControlSession,
    request: codecs.NextScopeRequest,
) -> None:
    task = ledgers.next_scope(unsigned(request.scope_id))
    ledgers.requests.begin(session, request.correlation_id, task)


def handlers_of(ledgers: LedgerService, mirror_channels: frozenset[str]) -> Handlers:
    """Return the handlers of the requests for these ledgers.

    Args:
        mirror_channels: control channels of archives that any client may name as mirrors.
    """
    handler = partial(_handler, ledgers)
    return {
        codecs.CreateLedgerRequest: partial(_create, ledgers, mirror_channels),
        codecs.LedgerInfoRequest: partial(_info, ledgers),
        codecs.ListLedgersRequest: partial(_list, ledgers),
        codecs.PrepareWriterRequest: partial(_prepare, ledgers),
        codecs.AttachWriterRequest: partial(_attach, ledgers),
        codecs.SyncLedgerRequest: handler(ledgers.sync),
        codecs.AwaitLedgerRequest: partial(_await, ledgers),
        codecs.CloseLedgerRequest: partial(_close, ledgers),
        codecs.RecoverLedgerRequest: partial(_recover, ledgers),
        codecs.DeleteLedgerRequest: handler(ledgers.delete, changes=True),
        codecs.LocateEntryRequest: handler(ledgers.locate, "entry_id"),
        codecs.MirrorLedgerRequest: partial(_mirror, ledgers),
        codecs.ReplaceMirrorRequest: handler(
            ledgers.replace_mirror, "mirror", "replacement", "is_lost", changes=True
        ),
        codecs.NextScopeRequest: partial(_next_scope, ledgers),
    }
