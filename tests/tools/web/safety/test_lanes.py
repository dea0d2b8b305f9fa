"""Requests that are served at a time, and those that have a lane of their own."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from aerotape.tools._web.safety.lanes import Lanes


def test_health_has_no_limit() -> None:
    """However many requests of each kind are served, such as those of clients that do not read."""
    found: list[int] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        found.append(1)
        await asyncio.Event().wait()

    async def receive() -> Message:
        raise NotImplementedError

    async def send(_message: Message) -> None:
        raise NotImplementedError

    async def run() -> None:
        lanes = Lanes(app)

        def begin(path: str) -> asyncio.Task[Any]:
            scope = {"type": "http", "path": path, "root_path": "", "headers": []}
            return asyncio.ensure_future(lanes(scope, receive, send))

        held = [begin(path) for path in ("/metrics", "/readyz", "/live", "/") for _ in range(30)]
        held += [begin("/healthz") for _ in range(300)]
        await asyncio.sleep(0.1)
        for each in held:
            each.cancel()
        await asyncio.gather(*held, return_exceptions=True)

    asyncio.run(run())
    assert len(found) == 4 * 30 + 300


def test_too_many_event_streams() -> None:
    """A further one has an event that says so, after which a browser connects again."""
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.Event().wait()

    async def receive() -> Message:
        raise NotImplementedError

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> None:
        lanes = Lanes(app)
        scope = {"type": "http", "path": "/live", "root_path": "", "headers": []}
        held = [asyncio.ensure_future(lanes(scope, receive, send)) for _ in range(100)]
        await asyncio.sleep(0)
        await lanes(scope, receive, send)
        for each in held:
            each.cancel()
        await asyncio.gather(*held, return_exceptions=True)

    asyncio.run(run())
    start, body = sent
    assert start["status"] == 200
    assert body["body"].startswith(b'retry: 5000\nevent: problem\ndata: "the service is busy')
