"""The table of request handlers is complete, and failures of handlers become responses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from aerotape.archive.control import requests
from aerotape.archive.control.control_session_adapter import respond
from aerotape.archive.error_log import ErrorLog
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import UnknownRecordingError
from aerotape.protocol import ErrorCode


class Session:
    """Records the errors that are sent."""

    def __init__(self) -> None:
        self.errors: list[tuple[int, int, str]] = []

    def send_error(self, correlation_id: int, error_code: int, message: str) -> None:
        self.errors.append((correlation_id, error_code, message))


def handle(request: Any, catalog: Any = None) -> list[tuple[int, int, str]]:
    session: Any = Session()
    services: Any = SimpleNamespace(catalog=catalog, errors=ErrorLog())
    respond(services, session, request)
    errors: list[tuple[int, int, str]] = session.errors
    return errors


def test_a_failure_of_a_handler_is_sent_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """An unexpected exception is sent as a GENERIC error and logged with its traceback."""
    [(correlation_id, code, message)] = handle(codecs.StopPositionRequest(correlation_id=8))
    assert (correlation_id, code) == (8, ErrorCode.GENERIC)
    assert "StopPositionRequest failed" in message
    assert caplog.records[0].exc_info is not None


def test_an_expected_failure_is_sent_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A refusal with an archive exception is not logged as an internal error."""

    class Catalog:
        def has_recording(self, recording_id: int) -> bool:
            raise UnknownRecordingError("recording 3 is gone", 3)

    request = codecs.StopPositionRequest(correlation_id=9, recording_id=3)
    assert handle(request, Catalog()) == [(9, ErrorCode.UNKNOWN_RECORDING, "recording 3 is gone")]
    assert caplog.records == []


def test_every_request_of_the_schema_has_a_handler() -> None:
    """Requests that begin and end a session are handled by the adapter."""
    in_adapter = {codecs.AuthConnectRequest, codecs.CloseSessionRequest}
    named = {kind for kind in codecs.MESSAGES.values() if "Request" in kind.__name__}
    assert named - requests.HANDLERS.keys() == in_adapter
