"""Converts the responses of an archive to results and to this package's exceptions."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from aerotape.archive.client.requests.request import Call, Item
from aerotape.archive.client.session.pending_request import PendingRequest
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import (
    ActiveListingError,
    ActiveRecordingError,
    ActiveSubscriptionError,
    ArchiveError,
    AuthenticationError,
    EmptyRecordingError,
    InvalidExtensionError,
    InvalidPositionError,
    LedgerError,
    LimitError,
    QualifiedIdError,
    ReplicationConnectionError,
    StorageSpaceError,
    UnauthorisedError,
    UnknownRecordingError,
    UnknownReplayError,
    UnknownReplicationError,
    UnknownSubscriptionError,
)
from aerotape.protocol import NULL_VALUE, ErrorCode
from aerotape.qualified_id import QualifiedId

T = TypeVar("T")

# Codes that end a listing.
_LISTING_ENDS: Final = (
    codecs.ControlResponseCode.RECORDING_UNKNOWN,
    codecs.ControlResponseCode.SUBSCRIPTION_UNKNOWN,
)

_CLASSES: Final[dict[int, type[ArchiveError]]] = {
    ErrorCode.ACTIVE_LISTING: ActiveListingError,
    ErrorCode.ACTIVE_RECORDING: ActiveRecordingError,
    ErrorCode.ACTIVE_SUBSCRIPTION: ActiveSubscriptionError,
    ErrorCode.UNKNOWN_SUBSCRIPTION: UnknownSubscriptionError,
    ErrorCode.UNKNOWN_REPLAY: UnknownReplayError,
    ErrorCode.MAX_REPLAYS: LimitError,
    ErrorCode.MAX_RECORDINGS: LimitError,
    ErrorCode.INVALID_EXTENSION: InvalidExtensionError,
    ErrorCode.AUTHENTICATION_REJECTED: AuthenticationError,
    ErrorCode.STORAGE_SPACE: StorageSpaceError,
    ErrorCode.UNKNOWN_REPLICATION: UnknownReplicationError,
    ErrorCode.UNAUTHORISED_ACTION: UnauthorisedError,
    ErrorCode.REPLICATION_CONNECTION_FAILURE: ReplicationConnectionError,
    ErrorCode.EMPTY_RECORDING: EmptyRecordingError,
    ErrorCode.INVALID_POSITION: InvalidPositionError,
}

_LEDGER_CLASSES: Final = {kind.code: kind for kind in LedgerError.__subclasses__()}


def error_of(response: codecs.ControlResponse, what: str) -> ArchiveError:
    """Return the exception for a response that is not OK, of the class for its code."""
    if response.code != codecs.ControlResponseCode.ERROR:
        if response.code == codecs.ControlResponseCode.RECORDING_UNKNOWN:
            return UnknownRecordingError(
                f"{what}: there is no such recording",
                response.relevant_id,
                response.correlation_id,
            )
        text = f"{what}: unexpected response code {response.code.name}"
        return ArchiveError(text, ErrorCode.GENERIC, response.correlation_id)
    code = response.relevant_id
    if code in _LEDGER_CLASSES:
        text = f"{what}: {response.error_message}"
        return _LEDGER_CLASSES[code](text, correlation_id=response.correlation_id)
    name = ErrorCode(code).name if code in ErrorCode.__members__.values() else "unknown"
    text = f"{what}: {response.error_message} (error code {code} {name})"
    if code == ErrorCode.UNKNOWN_RECORDING:
        return UnknownRecordingError(text, correlation_id=response.correlation_id)
    return _CLASSES.get(code, ArchiveError)(text, code, response.correlation_id)


def result_of(call: Call[T], pending: PendingRequest) -> T:
    """Return the result of a request.

    Raises:
        ArchiveError: the archive refused the request.
        ClosedError: the session ended before the response.
    """
    answer = pending.response()
    if answer.code == codecs.ControlResponseCode.OK:
        return call.result(answer)
    is_error = answer.code == codecs.ControlResponseCode.ERROR
    if is_error and answer.relevant_id in call.allowed:
        return call.allowed[answer.relevant_id]
    raise _refusal(answer, call)


def items_of(pending: PendingRequest) -> list[Item]:
    """Return the items of a listing. Raises as `result_of`."""
    if len(pending.items) < pending.count:
        answer = pending.response()
        if answer.code not in _LISTING_ENDS:
            raise error_of(answer, f"cannot {pending.what}")
    return pending.items[: pending.count]


def _refusal(answer: codecs.ControlResponse, call: Call[Any]) -> Exception:
    """Return the exception for a refused request, with the id of its recording."""
    error = error_of(answer, f"cannot {call.what}")
    if isinstance(error, LedgerError):
        error.ledger = _ledger_of(call.message)
    if isinstance(error, UnknownRecordingError):
        error.recording_id = getattr(call.message, "recording_id", NULL_VALUE)
    return error


def _ledger_of(message: Any) -> QualifiedId | None:
    try:
        return QualifiedId.from_signed(message.scope_id, message.ledger_id)
    except (AttributeError, QualifiedIdError):
        return None
