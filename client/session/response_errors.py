"""Converts the responses of an archive to results and to this package's exceptions."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from aerotape import errors
from aerotape.client.session.request import Call, Item, Listing, PendingRequest
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.ledger_control import ListLedgersRequest
from aerotape.protocol import NULL_VALUE, ErrorCode
from aerotape.qualified_id import QualifiedId

T = TypeVar("T")

# Codes that end a listing.
_LISTING_ENDS: Final = (
    codecs.ControlResponseCode.RECORDING_UNKNOWN,
    codecs.ControlResponseCode.SUBSCRIPTION_UNKNOWN,
)

_CLASSES: Final[dict[int, type[errors.ArchiveError]]] = {
    ErrorCode.ACTIVE_LISTING: errors.ActiveListingError,
    ErrorCode.ACTIVE_RECORDING: errors.ActiveRecordingError,
    ErrorCode.ACTIVE_SUBSCRIPTION: errors.ActiveSubscriptionError,
    ErrorCode.UNKNOWN_SUBSCRIPTION: errors.UnknownSubscriptionError,
    ErrorCode.UNKNOWN_REPLAY: errors.UnknownReplayError,
    ErrorCode.MAX_REPLAYS: errors.LimitError,
    ErrorCode.MAX_RECORDINGS: errors.LimitError,
    ErrorCode.INVALID_EXTENSION: errors.InvalidExtensionError,
    ErrorCode.AUTHENTICATION_REJECTED: errors.AuthenticationError,
    ErrorCode.STORAGE_SPACE: errors.StorageSpaceError,
    ErrorCode.UNKNOWN_REPLICATION: errors.UnknownReplicationError,
    ErrorCode.UNAUTHORISED_ACTION: errors.UnauthorisedError,
    ErrorCode.REPLICATION_CONNECTION_FAILURE: errors.ReplicationConnectionError,
    ErrorCode.EMPTY_RECORDING: errors.EmptyRecordingError,
    ErrorCode.INVALID_POSITION: errors.InvalidPositionError,
}

_LEDGER_CLASSES: Final[dict[int, type[errors.LedgerError]]] = {
    **{kind.code: kind for kind in errors.LedgerError.__subclasses__()},
    errors.LedgerFencedError.code: errors.LedgerFencedError,
}


def error_of(response: codecs.ControlResponse, what: str) -> errors.ArchiveError:
    """Return the exception for a response that is not OK, of the class for its code."""
    if response.code != codecs.ControlResponseCode.ERROR:
        if response.code == codecs.ControlResponseCode.RECORDING_UNKNOWN:
            return errors.UnknownRecordingError(
                f"{what}: there is no such recording",
                response.relevant_id,
                response.correlation_id,
            )
        text = f"{what}: unexpected response code {response.code.name}"
        return errors.ArchiveError(text, ErrorCode.GENERIC, response.correlation_id)
    code = response.relevant_id
    if code in _LEDGER_CLASSES:
        text = f"{what}: {response.error_message}"
        return _LEDGER_CLASSES[code](text, correlation_id=response.correlation_id)
    name = ErrorCode(code).name if code in ErrorCode.__members__.values() else "unknown"
    text = f"{what}: {response.error_message} (error code {code} {name})"
    if code == ErrorCode.UNKNOWN_RECORDING:
        return errors.UnknownRecordingError(text, correlation_id=response.correlation_id)
    return _CLASSES.get(code, errors.ArchiveError)(text, code, response.correlation_id)


def result_of(call: Call[T], pending: PendingRequest) -> T:
    """Return the result of a request, or raise the archive's error."""
    answer = pending.response()
    if answer.code == codecs.ControlResponseCode.OK:
        return call.result(answer)
    raise _refusal(answer, call)


def items_of(listing: Listing, pending: PendingRequest) -> list[Item]:
    """Return the items of a listing, or raise the archive's error."""
    if len(pending.items) < pending.count:
        answer = pending.response()
        if answer.code not in _LISTING_ENDS:
            raise _refusal(answer, listing)
    return pending.items[: pending.count]


def _refusal(answer: codecs.ControlResponse, call: Call[Any] | Listing) -> Exception:
    """Return the exception for a refused request, with the id of its recording or ledger."""
    error = error_of(answer, f"cannot {call.what}")
    ledger = _ledger_of(call.message)
    is_for_ledgers = ledger is not None or isinstance(call.message, ListLedgersRequest)
    if is_for_ledgers and error.error_code == ErrorCode.GENERIC:
        error = errors.LedgerError(str(error), ledger, error.correlation_id)
    if isinstance(error, errors.LedgerError):
        error.ledger = ledger
    if isinstance(error, errors.UnknownRecordingError):
        error.recording_id = getattr(call.message, "recording_id", NULL_VALUE)
    return error


def _ledger_of(message: Any) -> QualifiedId | None:
    try:
        return QualifiedId.from_signed(message.scope_id, message.ledger_id)
    except (AttributeError, errors.QualifiedIdError):
        return None
