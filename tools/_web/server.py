"""The server of the web service."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import ssl
import threading
from typing import Final

import uvicorn

from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.tools._cli.daemon.logs import log_to_standard_error
from aerotape.tools._cli.daemon.stop_signals import StopSignals
from aerotape.tools._cli.exit_codes import EXIT_OK
from aerotape.tools._cli.output import emit_line
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.service import WebSettings, create_app
from aerotape.tools._web.session import ControlSession

# A flood is answered with 503 and does not grow queues.
_MAX_REQUESTS: Final = 100
_KEEP_ALIVE_S: Final = 15
_STOP_S: Final = 5
_BACKLOG: Final = 128
_CHECK_INTERVAL_S: Final = 0.5


def serve(
    observed: ObservedArchive,
    session: ControlSession,
    settings: WebSettings,
    args: argparse.Namespace,
) -> int:
    """Serve until SIGTERM or SIGINT; print a line when the port is open.

    Returns:
        The exit code.

    Raises:
        ConfigurationError: the users file or the certificate is refused.
        AerotapeError: the address is in use, or not of this machine.
    """
    log_to_standard_error("web", logging.WARNING)
    config = uvicorn.Config(
        create_app(observed, session, settings),
        host=settings.host,
        port=settings.port,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
        limit_concurrency=_MAX_REQUESTS,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_STOP_S,
        log_config=None,
        access_log=False,
        server_header=False,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"cannot serve with {settings.certificate}: {error}", "--certificate"
        ) from None
    listening = _listen(settings.host, settings.port)
    stop = StopSignals()
    host, port = listening.getsockname()[:2]
    scheme = "http" if settings.certificate is None else "https"
    url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"
    emit_line({"event": "ready", "url": url}, f"web service ready: {url}", args)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="web-server")
    thread.start()
    while thread.is_alive() and not stop.wait(_CHECK_INTERVAL_S):
        if args.parent not in (None, os.getppid()):
            break
    server.should_exit = True
    thread.join()
    return EXIT_OK


def _listen(host: str, port: int) -> socket.socket:
    """Open the port; requests wait until the server runs."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        where = f"[{host}]:{port}" if family == socket.AF_INET6 else f"{host}:{port}"
        # create_server adds the address to the system's text.
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise AerotapeError(
            f"cannot listen on {where}: {reason}; --http [HOST:]PORT names another address or port"
        ) from None
