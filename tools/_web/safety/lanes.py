"""The middleware that limits requests: how many are served at a time, and how many wait for that.

Requests that monitoring makes have a lane of their own, so that no others delay them, and so have
files of any length, so that they delay no others. Health has no limit: it reads nothing, and is for
everybody.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from aerotape.tools._web.paths import DOWNLOAD, HEALTH, LIVE, MONITORING, route_path
from aerotape.tools._web.rest.problems import problem

_STREAMS: Final = 100
_RETRY_MS: Final = 5_000


class Lane:
    """Requests of a kind, of which some are served and some wait."""

    def __init__(self, served: int, waiting: int, wait_s: float) -> None:
        """Create it, empty.

        Args:
            served: the most that are served at a time.
            waiting: the most that wait.
            wait_s: the longest time that one waits, seconds.
        """
        self._served, self._waiting, self._wait_s = served, waiting, wait_s
        self._slots = asyncio.Semaphore(served)
        self._now_waiting = 0

    async def enter(self) -> str:
        """Wait for a slot.

        Returns:
            Why there is none; "" if the caller has one, and must call `leave`.
        """
        if self._now_waiting >= self._waiting and self._slots.locked():
            return f"{self._served} requests are served and {self._waiting} wait"
        self._now_waiting += 1
        try:
            async with asyncio.timeout(self._wait_s):
                await self._slots.acquire()
        except TimeoutError:
            return f"{self._served} other requests have been served for {self._wait_s:g} s"
        finally:
            self._now_waiting -= 1
        return ""

    def leave(self) -> None:
        """Return a slot."""
        self._slots.release()


class Lanes:
    """Serves a few requests at a time; others wait a while, and get 503 after it.

    Event streams do not wait: too many get an event that says so, and end.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Create it.

        Args:
            app: the application behind.
        """
        self._app = app
        # More than its threads: a client that does not read has a place until it is cut off.
        self._monitoring = Lane(64, 200, 1.0)
        self._streams = Lane(_STREAMS, 0, 1.0)
        self._downloads = Lane(8, 50, 20.0)
        self._others = Lane(32, 200, 20.0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = route_path(scope)
        if path == HEALTH:
            await self._app(scope, receive, send)
            return
        lane = self._lane(path)
        reason = await lane.enter()
        if reason:
            response = _busy_stream() if lane is self._streams else _busy(f"{reason}: try again")
            await response(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            lane.leave()

    def _lane(self, path: str) -> Lane:
        if path in MONITORING:
            return self._monitoring
        if path.endswith(DOWNLOAD):
            return self._downloads
        return self._streams if path == LIVE else self._others


def _busy(text: str) -> Response:
    status: Final = HTTPStatus.SERVICE_UNAVAILABLE
    return problem(status, status.phrase, text)


def _busy_stream() -> Response:
    """Return a stream that ends; browsers do not connect again after another status than 200."""
    text = f"the service is busy, {_STREAMS} event streams are open"
    content = f"retry: {_RETRY_MS}\nevent: problem\ndata: {json.dumps(text)}\n\n"
    return Response(content, media_type="text/event-stream")
