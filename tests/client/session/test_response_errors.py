"""The exceptions for the error responses of an archive."""

from __future__ import annotations

import pytest
from support.daemon.scripted_session import (
    SESSION,
    ScriptedStreams,
    ask,
    list_ids,
    refusal,
    session_over,
)

from aerotape import errors
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ArchiveError
from aerotape.protocol import ErrorCode

CLASSES = {
    ErrorCode.GENERIC: errors.ArchiveError,
    ErrorCode.ACTIVE_LISTING: errors.ActiveListingError,
    ErrorCode.ACTIVE_RECORDING: errors.ActiveRecordingError,
    ErrorCode.ACTIVE_SUBSCRIPTION: errors.ActiveSubscriptionError,
    ErrorCode.UNKNOWN_SUBSCRIPTION: errors.UnknownSubscriptionError,
    ErrorCode.UNKNOWN_RECORDING: errors.UnknownRecordingError,
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


@pytest.mark.parametrize("code", ErrorCode)
def test_each_code_has_its_class(code: ErrorCode) -> None:
    """The class of an error fits its code; the error has the code and the ids."""
    streams = ScriptedStreams(lambda request: [refusal(request.correlation_id, code, "no")])
    with pytest.raises(ArchiveError, match=f"cannot ask: no .error code {code:d} {code.name}") as e:
        ask(session_over(streams))
    assert type(e.value) is CLASSES[code]
    assert (e.value.error_code, e.value.correlation_id) == (code, 101)
    if isinstance(e.value, errors.UnknownRecordingError):
        assert e.value.recording_id == 3


def test_an_unknown_code() -> None:
    """The code of a newer archive is reported as it is."""
    streams = ScriptedStreams(lambda request: [refusal(request.correlation_id, 99, "new")])
    with pytest.raises(ArchiveError, match="error code 99 unknown"):
        ask(session_over(streams))


def test_unexpected_code() -> None:
    """A code that does not belong to the request raises an error with the code."""
    response = codecs.ControlResponse(
        control_session_id=SESSION,
        correlation_id=101,
        code=codecs.ControlResponseCode.SUBSCRIPTION_UNKNOWN,
    )
    with pytest.raises(ArchiveError, match="SUBSCRIPTION_UNKNOWN"):
        ask(session_over(ScriptedStreams(lambda request: [response])))


def test_listing_that_is_refused() -> None:
    """An error ends a listing at once."""
    streams = ScriptedStreams(lambda request: [refusal(request.correlation_id, 1, "busy")])
    with pytest.raises(ArchiveError, match="busy"):
        list_ids(session_over(streams), 5)
