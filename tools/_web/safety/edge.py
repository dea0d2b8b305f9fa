"""The outermost middleware: what holds for each request, whatever its path."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aerotape.tools._web.rest.problems import problem

_SCHEMES: Final = (b"http", b"https")
_IGNORED: Final = frozenset({b"range", b"if-range"})


class Edge:
    """Makes HEAD a GET without a body, and refuses requests with a body.

    A target with a host, as proxies send it (RFC 9112, 3.2.2), counts instead of the Host header.

    Responses are sent whole, also to requests for parts of them (Range), which servers may do.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Create it in front of an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        absolute = _absolute(scope)
        if absolute is None:
            text = "the target of the request is not a URL such as http://HOST:PORT/PATH"
            response = problem(HTTPStatus.BAD_REQUEST, "ConfigurationError", text)
            await response(scope, receive, send)
            return
        scope = absolute
        headers = Headers(scope=scope)
        if headers.get("content-length", "0").strip() != "0" or "transfer-encoding" in headers:
            text = "the request has a body: give parameters in the query of the URL"
            response = problem(HTTPStatus.BAD_REQUEST, "ConfigurationError", text)
            response.headers["Connection"] = "close"
            await response(scope, receive, send)
            return
        given = [each for each in scope["headers"] if each[0] not in _IGNORED]
        scope = {**scope, "headers": given}
        if scope["method"] == "HEAD":
            scope["method"] = "GET"
            send = _without_body(send)
        await self._app(scope, receive, send)


def _absolute(scope: Scope) -> Scope | None:
    """Return a request whose target is a path; None if the target has no valid host."""
    target: bytes = scope["raw_path"]
    scheme, separator, rest = target.partition(b"://")
    if not separator or scheme.lower() not in _SCHEMES:
        return scope
    authority, slash, path = rest.partition(b"/")
    if not authority or b"@" in authority:
        return None
    raw_path = slash + path or b"/"
    headers = [each for each in scope["headers"] if each[0] != b"host"]
    return {
        **scope,
        "raw_path": raw_path,
        "path": unquote(raw_path.decode("ascii")),
        "headers": [(b"host", authority), *headers],
    }


def _without_body(send: Send) -> Send:
    """Return a function that ends the response at the first part of its body."""
    is_ended = False

    async def send_head(message: Message) -> None:
        nonlocal is_ended
        if message["type"] == "http.response.start":
            await send(message)
        elif not is_ended:
            is_ended = True
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return send_head
