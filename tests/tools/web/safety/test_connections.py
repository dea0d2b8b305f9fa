"""Connections that are slow, and many of them."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import uvicorn
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from support.daemon.control_rig import await_true
from support.web import certificate

from aerotape.tools._web.rest.answers import PartsResponse
from aerotape.tools._web.safety.connections import ConnectionLimits

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
REQUEST = HEAD + b"\r\n"


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("hello")(scope, receive, send)


async def large(scope: Scope, receive: Receive, send: Send) -> None:
    response: Response = PartsResponse([bytes(1 << 20) for _ in range(8)])
    await response(scope, receive, send)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A certificate of the server."""
    folder = tmp_path_factory.mktemp("tls")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(folder))
    return context


@contextmanager
def served(limits: ConnectionLimits, app: ASGIApp = hello) -> Iterator[uvicorn.Server]:
    """Run a server with these limits; yield it."""
    config = uvicorn.Config(
        app, port=0, http=limits.protocol(), lifespan="off", log_config=None, ws="none",
        timeout_keep_alive=30,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        await_true(lambda: server.started)
        yield server
    finally:
        server.should_exit = True
        thread.join()


def connect(server: uvicorn.Server) -> socket.socket:
    made = socket.create_connection(server.servers[0].sockets[0].getsockname(), timeout=30)
    made.settimeout(30)
    return made


def greets(connection: socket.socket) -> bool:
    """Whether a whole response of `hello` arrives."""
    received = b""
    while not received.endswith(b"hello"):
        part = connection.recv(1 << 16)
        if not part:
            return False
        received += part
    return True


def is_ended(connection: socket.socket) -> bool:
    """Whether the server has ended a connection, read to the end."""
    try:
        return connection.recv(1 << 16) == b""
    except ConnectionResetError:
        return True


def test_a_header_has_limited_time() -> None:
    """From the begin of a connection, and from the first byte of a later header."""
    with served(ConnectionLimits(header_s=0.5)) as server:
        with connect(server) as silent, connect(server) as half, connect(server) as dripping:
            half.sendall(HEAD)
            begun_s = time.monotonic()
            while time.monotonic() - begun_s < 60:
                try:
                    dripping.sendall(HEAD[:1])
                except OSError:
                    break
                time.sleep(0.1)
            assert time.monotonic() - begun_s < 60
            assert is_ended(silent) and is_ended(half)
        with connect(server) as kept:
            for _ in range(2):
                kept.sendall(REQUEST)
                assert greets(kept)
                time.sleep(0.8)  # without a byte it may wait longer
            kept.sendall(HEAD)
            assert is_ended(kept)


def test_handshakes_are_connections(tls: ssl.SSLContext) -> None:
    """They have limited time, and the one that has waited longest makes room."""
    trusting = ssl._create_unverified_context()
    with (
        served(ConnectionLimits(connections=2, header_s=60, tls=tls)) as server,
        connect(server) as first,
        connect(server) as second,
        trusting.wrap_socket(connect(server)) as kept,
    ):
        for _ in range(2):
            kept.sendall(REQUEST)
            assert greets(kept)
        assert is_ended(first)
        with trusting.wrap_socket(connect(server)) as another:
            another.sendall(REQUEST)
            assert greets(another)
        assert is_ended(second)
    with (
        served(ConnectionLimits(header_s=0.5, tls=tls)) as server,
        connect(server) as silent,
        connect(server) as half,
        connect(server) as plain,
        trusting.wrap_socket(connect(server)) as idle,
    ):
        half.sendall(b"\x16\x03\x01\x02\x00\x01")
        plain.sendall(REQUEST)
        assert all(map(is_ended, (silent, half, plain, idle)))
        await_true(lambda: not server.server_state.connections)


def test_a_reader_has_limited_time() -> None:
    """A response that its client does not take ends; one that is taken slowly does not."""
    with served(ConnectionLimits(reader_s=2.0), large) as server:
        with connect(server) as silent:
            silent.sendall(REQUEST)
            await_true(lambda: not server.server_state.connections)
            await_true(lambda: not server.server_state.tasks)
        with connect(server) as slow:
            slow.sendall(REQUEST)
            received = 0
            while received < 8 << 20:
                part = slow.recv(1 << 20)
                assert part
                received += len(part)
                time.sleep(0.3)


def test_connections_without_a_request_make_room() -> None:
    """The one that has waited longest ends; one that is served does not."""
    release = threading.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/slow":
            await asyncio.get_running_loop().run_in_executor(None, release.wait)
        await hello(scope, receive, send)

    with served(ConnectionLimits(connections=20), app) as server, ExitStack() as stack:
        slow = stack.enter_context(connect(server))
        slow.sendall(REQUEST.replace(b" / ", b" /slow "))
        await_true(lambda: len(server.server_state.tasks) == 1)
        kept = stack.enter_context(connect(server))
        kept.sendall(REQUEST)
        assert greets(kept)
        idle = [stack.enter_context(connect(server)) for _ in range(40)]
        idle[-1].sendall(REQUEST)
        assert greets(idle[-1])
        assert is_ended(kept) and is_ended(idle[0])
        await_true(lambda: len(server.server_state.connections) <= 20)
        release.set()
        assert greets(slow)
