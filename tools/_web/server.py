"""The server of the web service."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import logging
import os
import resource
import socket
import ssl
import sys
import threading
from dataclasses import dataclass
from typing import Final

import uvicorn

from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.tools._cli.daemon.logs import log_to_standard_error
from aerotape.tools._cli.daemon.stop_signals import StopSignals
from aerotape.tools._cli.exit_codes import EXIT_OK
from aerotape.tools._cli.output import emit_line
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.safety.connections import ConnectionLimits
from aerotape.tools._web.service import WebSettings, create_app
from aerotape.tools._web.session import ControlSession

_KEEP_ALIVE_S: Final = 15
_STOP_S: Final = 5
_BACKLOG: Final = 1_024
_SPARE_FILES: Final = 200
"""File descriptors that are left for what is not a connection."""
_M_ARENA_MAX: Final = -8
_M_MMAP_THRESHOLD: Final = -3
_SEND_BUFFER: Final = 256 << 10
_CHECK_INTERVAL_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class ReadyService:
    """A web service that is ready.

    Attributes:
        event: ready.
        url: URL of the service.
    """

    event: str
    url: str


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
    _return_memory()
    limits, backlog = _limits()
    config = uvicorn.Config(
        create_app(observed, session, settings),
        host=settings.host,
        port=settings.port,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
        http=limits.protocol(),
        loop="asyncio",
        ws="none",
        backlog=backlog,
        proxy_headers=False,
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
    # Not by uvicorn: a handshake is one of the connections that are limited.
    limits.tls, config.ssl = config.ssl, None
    listening = _listen(settings.host, settings.port)
    stop = StopSignals()
    host, port = listening.getsockname()[:2]
    scheme = "http" if settings.certificate is None else "https"
    url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"
    emit_line(ReadyService("ready", url), f"web service ready: {url}", args)
    sys.stdout.flush()
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="web-server")
    thread.start()
    while thread.is_alive() and not stop.wait(_CHECK_INTERVAL_S):
        if args.parent not in (None, os.getppid()):
            break
    server.should_exit = True
    thread.join()
    return EXIT_OK


def _return_memory() -> None:
    """Let the C library return what large answers needed, where it is glibc.

    Otherwise each of many threads keeps memory of its own for later.
    """
    with contextlib.suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_ARENA_MAX, 2)
        library.mallopt(_M_MMAP_THRESHOLD, 64 << 10)


def _limits() -> tuple[ConnectionLimits, int]:
    """Allow this process as many open files as its hard limit, and connections as fit.

    Returns:
        The limits, and how many connections are accepted at once, before they are limited.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # the system refuses it
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    limits = ConnectionLimits()
    limits.connections = max(min(limits.connections, soft - _SPARE_FILES), 1)
    # While some are accepted, those accepted before are admitted, and those that they end closed.
    spare = (soft - limits.connections - _SPARE_FILES // 2) // 4
    return limits, max(min(spare, _BACKLOG), 1)


def _listen(host: str, port: int) -> socket.socket:
    """Open the port; requests wait until the server runs."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        where = f"[{host}]:{port}" if family == socket.AF_INET6 else f"{host}:{port}"
        # create_server adds the address to the system's text.
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise AerotapeError(
            f"cannot listen on {where}: {reason}; --http [HOST:]PORT names another address or port"
        ) from None
    # Connections inherit it: the kernel holds no more for a client that does not read.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    return listening
