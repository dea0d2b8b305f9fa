"""The middleware in front of all requests: names of the service, other sites, response headers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aerotape.tools._web.paths import HEALTH, route_path
from aerotape.tools._web.rest.problems import problem

_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES: Final = frozenset({"same-origin", "none"})
"""Of Sec-Fetch-Site: browsers may be set to send no Origin."""
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class HostGuard:
    """Refuses requests for other hosts, and changes that pages of other sites ask for.

    A page of another site that has its own name resolve to this machine (DNS rebinding) sends that
    name in the Host header. Health has any name, also none, as probes have.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str]) -> None:
        """Create it.

        Args:
            app: the application behind.
            names: by which the service is reached besides the local ones.
        """
        self._app = app
        self._names = frozenset(name.lower() for name in (*_LOCAL, *names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        is_named = _name(f"//{host}") in self._names
        if not is_named and route_path(scope) != HEALTH:
            text = f"this service is not {host!r}: start it with --allowed-host"
            status = HTTPStatus.MISDIRECTED_REQUEST
            await problem(status, status.phrase, text)(scope, receive, send)
            return
        origin = headers.get("origin", f"//{host}")
        is_own = _place(origin) == _place(f"//{host}")
        is_own = is_own and headers.get("sec-fetch-site", "none") in _OWN_SITES
        if scope["method"] not in _SAFE_METHODS and not is_own:
            place = repr(origin) if "origin" in headers else "another site"
            text = f"changes are not accepted from pages of {place}"
            status = HTTPStatus.FORBIDDEN
            await problem(status, status.phrase, text)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                response = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    response.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _name(url: str) -> str:
    """Return the host of an URL in lower case; "" if it has none that is valid."""
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _place(url: str) -> str:
    """Return the host and port of an URL in lower case; "?" if it is not valid."""
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return "?"
