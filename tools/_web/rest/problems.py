"""Errors as `application/problem+json` (RFC 9457), with the class of the error."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, Request
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
)
from aerotape.tools._web.session import SessionBusyError

MEDIA_TYPE: Final = "application/problem+json"
# The first class that matches decides.
_STATUSES: Final = (
    ((UnknownRecordingError, UnknownLedgerError), HTTPStatus.NOT_FOUND),
    ((SessionBusyError,), HTTPStatus.SERVICE_UNAVAILABLE),
    ((ConfigurationError, InvalidPositionError, QualifiedIdError), HTTPStatus.BAD_REQUEST),
    ((UnauthorisedError,), HTTPStatus.FORBIDDEN),
    ((ArchiveError, EntityError), HTTPStatus.CONFLICT),
    ((AeronTimeoutError,), HTTPStatus.GATEWAY_TIMEOUT),
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


def add_handlers(app: FastAPI) -> None:
    """Answer our errors, invalid parameters and unknown paths with problems."""

    @app.exception_handler(AerotapeError)
    def of_error(_request: Request, error: AerotapeError) -> JSONResponse:
        return problem(status_of(error), type(error).__name__, str(error))

    @app.exception_handler(RequestValidationError)
    def of_parameters(_request: Request, error: RequestValidationError) -> JSONResponse:
        reasons = (f"{each['loc'][-1]}: {each['msg']}" for each in error.errors())
        return problem(HTTPStatus.BAD_REQUEST, "ConfigurationError", "; ".join(reasons))

    @app.exception_handler(HTTPException)
    def of_http(_request: Request, error: HTTPException) -> JSONResponse:
        status = HTTPStatus(error.status_code)
        return problem(status, status.phrase, str(error.detail))
