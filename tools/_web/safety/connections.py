"""Connections of the web service: how many there are, and how long each may keep it waiting.

Uvicorn limits connections together with requests, and has no time limit for a request's header nor
for a client that does not read its response. A connection without a request costs only its file
descriptor here, so that many of them keep no request from being served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

_UNSENT_BYTES = 1
"""With as much unsent a transport calls `pause_writing`: as soon as the client does not keep up."""


@dataclass(slots=True)
class ConnectionLimits:
    """The limits of a server's connections, and those that wait for a request.

    Attributes:
        connections: the most at a time; a further one ends the one that has waited longest.
        header_s: the time for a request's header, from the connection's begin or its first byte.
        reader_s: the time in which a client must take what was sent, `answers.PART` at most.
        waiting: connections without a request, in the order in which they began to wait.
    """

    connections: int = 4_000
    header_s: float = 10.0
    reader_s: float = 5.0
    waiting: dict[asyncio.BaseTransport, None] = field(default_factory=dict)

    def protocol(self) -> type[asyncio.Protocol]:
        """Return the protocol of a connection, for uvicorn's setting `http`."""
        create: Callable[..., asyncio.Protocol] = lambda **given: _Connection(self, **given)  # noqa: E731
        return cast(type[asyncio.Protocol], create)


class _Connection(H11Protocol):
    """A connection that ends when its client is too slow."""

    def __init__(self, limits: ConnectionLimits, **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._header_timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_UNSENT_BYTES)
        self._start_header_timer()
        waiting = self._limits.waiting
        if len(self.connections) > self._limits.connections:
            longest = next(iter(waiting), transport)
            waiting.pop(longest, None)
            cast(asyncio.Transport, longest).abort()
        if not transport.is_closing():
            waiting[transport] = None

    def data_received(self, data: bytes) -> None:
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

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._reader_timer is None:
            late = self.transport.abort
            self._reader_timer = self.loop.call_later(self._limits.reader_s, late)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._cancel_reader_timer()

    def connection_lost(self, exc: Exception | None) -> None:
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
