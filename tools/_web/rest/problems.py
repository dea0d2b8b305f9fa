"""Errors as `application/problem+json` (RFC 9457), with the class of the error."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from aerotape.errors import (
    AeronError,
    AeronTimeoutError,
    AerotapeError,
    ArchiveError,
    ClosedError,
    ConfigurationError,
    EntityError,
    InvalidPositionError,
    QualifiedIdError,
    StorageError,
    UnauthorisedError,
    UnknownLedgerError,
    UnknownRecordingError,
    UnknownTopicError,
)
from aerotape.tools._web.paths import route_path
from aerotape.tools._web.session import SessionBusyError

MEDIA_TYPE: Final = "application/problem+json"
# The first class that matches decides.
_STATUSES: Final = (
    ((UnknownRecordingError, UnknownLedgerError, UnknownTopicError), HTTPStatus.NOT_FOUND),
    ((SessionBusyError, AeronTimeoutError), HTTPStatus.SERVICE_UNAVAILABLE),
    ((ConfigurationError, InvalidPositionError, QualifiedIdError), HTTPStatus.BAD_REQUEST),
    ((UnauthorisedError,), HTTPStatus.FORBIDDEN),
    ((ArchiveError, EntityError), HTTPStatus.CONFLICT),
    ((AeronError, ClosedError, StorageError), HTTPStatus.SERVICE_UNAVAILABLE),
)


def status_of(error: AerotapeError) -> HTTPStatus:
    """Return the status of a response for an error."""
    found = (status for classes, status in _STATUSES if isinstance(error, classes))
    return next(found, HTTPStatus.INTERNAL_SERVER_ERROR)


def problem(status: HTTPStatus, title: str, detail: str) -> JSONResponse:
    """Return a response."""
    content = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return JSONResponse(content, status, media_type=MEDIA_TYPE)


def add_handlers(
    app: FastAPI,
    page: Callable[[Request, HTTPStatus, str], Response],
    text_of: Callable[[AerotapeError], str],
) -> None:
    """Answer our errors, invalid parameters and unknown paths.

    Args:
        app: the application.
        page: returns a page that says what is wrong, for people; programs get a problem.
        text_of: returns the text of an error, without directories.
    """

    def answered(request: Request, status: HTTPStatus, title: str, detail: str) -> Response:
        is_program = route_path(request.scope).startswith("/api/")
        if is_program or "text/html" not in request.headers.get("accept", ""):
            return problem(status, title, detail)
        return page(request, status, detail)

    @app.exception_handler(AerotapeError)
    def of_error(request: Request, error: AerotapeError) -> Response:
        return answered(request, status_of(error), type(error).__name__, text_of(error))

    @app.exception_handler(RequestValidationError)
    def of_parameters(request: Request, error: RequestValidationError) -> Response:
        reasons = (f"{each['loc'][-1]}: {each['msg']}" for each in error.errors())
        status = HTTPStatus.BAD_REQUEST
        return answered(request, status, "ConfigurationError", "; ".join(reasons))

    @app.exception_handler(HTTPException)
    def of_http(request: Request, error: HTTPException) -> Response:
        status = HTTPStatus(error.status_code)
        response = answered(request, status, status.phrase, str(error.detail))
        response.headers.update(error.headers or {})
        return response
