"""Connections of the web service: how many there are, and how long each may keep it waiting.

Uvicorn limits connections together with requests, and has no time limit for a request's header nor
for a client that does not read its response. A connection without a request costs only its file
descriptor here, so that many of them keep no request from being served.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from dataclasses import dataclass, field
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from aerotape.tools._web.paths import LIVE, route_path

# Each connection with TLS has a buffer of this size; a request fits into less.
SSLProtocol.max_size = 16 << 10
_UNSENT_BYTES = 1
"""With as much unsent a transport calls `pause_writing`: as soon as the client does not keep up."""


@dataclass(slots=True)
class ConnectionLimits:
    """The limits of a server's connections, and those that wait for a request.

    Attributes:
        connections: the most at a time; a further one ends the one that has waited longest.
        header_s: the time for a request's header, from the connection's begin or its first byte;
            likewise for a handshake of TLS, which precedes it.
        reader_s: the time in which a client must take what was sent, `answers.PART` at most.
        tls: the certificate and how it is used; None: without TLS.
        waiting: connections without a request, in the order in which they began to wait.
        handshaking: those whose handshake of TLS has not ended.
    """

    connections: int = 4_000
    header_s: float = 10.0
    reader_s: float = 5.0
    tls: ssl.SSLContext | None = None
    waiting: dict[asyncio.BaseTransport, None] = field(default_factory=dict)
    handshaking: set[asyncio.BaseTransport] = field(default_factory=set)

    def protocol(self) -> type[asyncio.Protocol]:
        """Return the protocol of a connection, for uvicorn's setting `http`."""

        def create(**given: Any) -> asyncio.Protocol:
            connection = _Connection(self, **given)
            return connection if self.tls is None else _Handshake(self, self.tls, connection)

        return cast(type[asyncio.Protocol], create)

    def admit(self, transport: asyncio.Transport, others: int) -> None:
        """Let a connection wait for a request; end the one that waits longest if all are too many.

        Args:
            transport: of the connection.
            others: the number of connections whose handshake has ended.
        """
        if others + len(self.handshaking) > self.connections:
            longest = next(iter(self.waiting), transport)
            self.waiting.pop(longest, None)
            cast(asyncio.Transport, longest).abort()
        if not transport.is_closing():
            self.waiting[transport] = None


class _Handshake(asyncio.Protocol):
    """A connection until its handshake of TLS has ended, which counts as one."""

    def __init__(
        self, limits: ConnectionLimits, tls: ssl.SSLContext, connection: _Connection
    ) -> None:
        self._limits, self._tls, self._connection = limits, tls, connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._limits.handshaking.add(transport)
        self._limits.admit(transport, len(self._connection.connections))
        self._task = asyncio.ensure_future(self._run(transport))

    async def _run(self, transport: asyncio.Transport) -> None:
        limits = self._limits
        try:
            encrypted = await asyncio.get_running_loop().start_tls(
                transport,
                self._connection,
                self._tls,
                server_side=True,
                ssl_handshake_timeout=limits.header_s,
                ssl_shutdown_timeout=limits.reader_s,
            )
        except OSError:  # it is not TLS, late, or the connection has ended
            transport.abort()
            return
        finally:
            limits.handshaking.discard(transport)
            limits.waiting.pop(transport, None)
        if encrypted is not None and not encrypted.is_closing():
            self._connection.connection_made(encrypted)


class _Connection(H11Protocol):
    """A connection that ends when its client is too slow."""

    def __init__(self, limits: ConnectionLimits, **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._header_timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None
        self._early = b""  # with a handshake of TLS data may precede `connection_made`

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_UNSENT_BYTES)
        self._start_header_timer()
        self._limits.admit(transport, len(self.connections))
        early, self._early = self._early, b""
        if early and not transport.is_closing():
            self.data_received(early)

    def data_received(self, data: bytes) -> None:
        if self.transport is None:
            self._early += data
            return
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._limits.waiting.pop(self.transport, None)
            self._cancel_header_timer()
        elif self._header_timer is None:
            self._start_header_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._limits.waiting[self.transport] = None

    def shutdown(self) -> None:
        """End at once with an event stream, which has no end, else after the response."""
        if self.scope is not None and route_path(self.scope) == LIVE:
            self.transport.close()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, also after the begin of a request: its response is left out."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # another response has begun or ended
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._reader_timer is None:
            late = self.transport.abort
            self._reader_timer = self.loop.call_later(self._limits.reader_s, late)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._cancel_reader_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.transport is None:  # it ends with its handshake
            return
        self._limits.waiting.pop(self.transport, None)
        self._cancel_header_timer()
        self._cancel_reader_timer()
        super().connection_lost(exc)

    def _start_header_timer(self) -> None:
        late = self.transport.abort
        self._header_timer = self.loop.call_later(self._limits.header_s, late)

    def _cancel_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _cancel_reader_timer(self) -> None:
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None
