"""The table of requests: complete for what is promised, and safe against its own handlers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from aerotape.archive.control import requests
from aerotape.archive.error_log import ErrorLog
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import UnknownRecordingError
from aerotape.protocol import ErrorCode


class Session:
    """Remembers the errors it is to send."""

    def __init__(self) -> None:
        self.errors: list[tuple[int, int, str]] = []

    def send_error(self, correlation_id: int, error_code: int, message: str) -> None:
        self.errors.append((correlation_id, error_code, message))


def handle(request: Any, catalog: Any = None) -> list[tuple[int, int, str]]:
    session: Any = Session()
    services: Any = SimpleNamespace(catalog=catalog, errors=ErrorLog())
    requests.handle(services, session, request)
    errors: list[tuple[int, int, str]] = session.errors
    return errors


def test_a_handler_that_fails_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A bug in a handler reaches the client as a GENERIC error and the log with its traceback."""
    [(correlation_id, code, message)] = handle(codecs.StopPositionRequest(correlation_id=8))
    assert (correlation_id, code) == (8, ErrorCode.GENERIC)
    assert "StopPositionRequest failed" in message
    assert caplog.records[0].exc_info is not None


def test_an_expected_failure_is_answered_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What the archive refuses with its own errors is no bug."""

    class Catalog:
        def has_recording(self, recording_id: int) -> bool:
            raise UnknownRecordingError("recording 3 is gone", 3)

    request = codecs.StopPositionRequest(correlation_id=9, recording_id=3)
    assert handle(request, Catalog()) == [(9, ErrorCode.UNKNOWN_RECORDING, "recording 3 is gone")]
    assert caplog.records == []


def test_every_request_of_the_schema_has_a_handler() -> None:
    """But for those that make and end a session, which the conductor handles itself."""
    elsewhere = {codecs.AuthConnectRequest, codecs.CloseSessionRequest}
    named = {kind for kind in codecs.MESSAGES.values() if "Request" in kind.__name__}
    assert named - requests.HANDLERS.keys() == elsewhere
