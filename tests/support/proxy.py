"""A reverse proxy that removes a prefix from paths, and answers 404 to requests without it."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from urllib.parse import urlsplit

_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


class PrefixProxy:
    """Serves a prefix of another server. Use as a context manager.

    Attributes:
        url: where it listens, without the prefix.
        outside: the paths of requests without the prefix.
        is_away: whether the server is away: then responses end, and requests are answered with 502.
    """

    is_away = False

    def __init__(
        self, target: str, prefix: str, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Start it.

        Args:
            target: the URL of the server.
            prefix: the prefix.
            headers: that it adds to requests.
        """
        host = urlsplit(target).netloc
        outside: list[str] = []
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.close_connection = True
                if not self.path.startswith(f"{prefix}/"):
                    outside.append(self.path)
                    self.send_error(404)
                    return
                if proxy.is_away:
                    self.send_error(502)
                    return
                made = http.client.HTTPConnection(host, timeout=60)
                given = {name: value for name, value in self.headers.items()} | dict(headers)
                made.request(self.command, self.path.removeprefix(prefix), headers=given)
                found = made.getresponse()
                self.send_response_only(found.status)
                for name, value in found.getheaders():
                    if name.lower() not in _HOP:
                        self.send_header(name, value)
                self.send_header("Connection", "close")
                self.end_headers()
                try:
                    while (part := found.read1(1 << 16)) and not proxy.is_away:
                        self.wfile.write(part)
                except OSError:  # the client has left an event stream
                    pass
                finally:
                    made.close()

            do_POST = do_DELETE = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self.outside = outside
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self) -> PrefixProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
