"""The middleware that adds the prefix which a reverse proxy has removed from a request's path."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aerotape.tools._web.proxies import Network, parse_prefix
from aerotape.tools._web.rest.problems import problem

_HEADER: Final = "X-Forwarded-Prefix"


class Prefix:
    """Sets `root_path` and `path` of a request, from which links and redirects are made.

    The prefix is a constant, or what a trusted proxy states in the header X-Forwarded-Prefix.
    Redirects are paths without a host: the service does not know by which scheme it is reached.
    """

    def __init__(self, app: ASGIApp, prefix: str, trusted: Sequence[Network]) -> None:
        """Create it.

        Args:
            app: the application behind.
            prefix: of requests without the header, and of those whose sender is not trusted.
            trusted: the addresses of proxies whose header counts.
        """
        self._app = app
        self._prefix = prefix
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        prefix = self._prefix_of(scope)
        if prefix is None:
            text = f"the header {_HEADER} is not a path such as /tape: correct it in the proxy"
            await problem(HTTPStatus.BAD_REQUEST, "ConfigurationError", text)(scope, receive, send)
            return

        async def send_with_location(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if "location" in headers:
                    url = urlsplit(headers["location"])
                    headers["location"] = url._replace(scheme="", netloc="").geturl()
            await send(message)

        scope = {**scope, "root_path": prefix, "path": prefix + scope["path"]}
        await self._app(scope, receive, send_with_location)

    def _prefix_of(self, scope: Scope) -> str | None:
        """Return the prefix of a request; None if a trusted proxy states one that is not valid."""
        given = Headers(scope=scope).getlist(_HEADER)
        if not given or not self._is_trusted(scope):
            return self._prefix
        return parse_prefix(",".join(given))

    def _is_trusted(self, scope: Scope) -> bool:
        peer = scope.get("client")
        if not self._trusted or peer is None:
            return False
        address = ipaddress.ip_address(peer[0].partition("%")[0])
        return any(address in each for each in self._trusted)
