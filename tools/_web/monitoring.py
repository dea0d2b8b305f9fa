"""Metrics and health: what must respond within a second, whatever else hangs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client.exposition import choose_encoder

from aerotape.errors import StorageError
from aerotape.tools._web.health import Check, checks
from aerotape.tools._web.metrics.collector import exposition
from aerotape.tools._web.observed import ObservedArchive, Snapshot
from aerotape.tools._web.paths import HEALTH, METRICS, READY

_T = TypeVar("_T")
_WAIT_S: Final = 0.7
"""How long reading the archive's files may take."""
_THREADS: Final = 4
_MAX_FORMS: Final = 8
_USABLE_MS: Final = 5_000


def add_routes(app: FastAPI, observed: ObservedArchive, max_series: int) -> None:
    """Add the routes.

    Args:
        app: receives them.
        observed: the archive.
        max_series: the most recordings that have metrics of their own.
    """
    # The threads of other requests may all wait, for the archive or the storage.
    threads = {path: ThreadPoolExecutor(_THREADS, path) for path in (METRICS, READY)}
    written = _Metrics(observed, max_series)

    async def in_thread(path: str, call: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(threads[path], call)

    @app.get(METRICS, summary="Metrics for Prometheus")
    async def metrics(request: Request) -> Response:
        accept = request.headers.get("accept", "")
        content, content_type = await in_thread(METRICS, lambda: written.get(accept))
        return Response(content, headers={"Content-Type": content_type})

    @app.get(HEALTH, summary="Whether this service runs")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get(READY, summary="Whether the archive is fit for work, 503 if not, with reasons")
    async def readyz() -> JSONResponse:
        found = await in_thread(READY, lambda: _checks(observed))
        content: dict[str, Any] = {
            "ready": all(check.is_ok for check in found),
            "checks": [check.row for check in found],
        }
        return JSONResponse(content, 200 if content["ready"] else 503)


class _Metrics:
    """The metrics of the newest snapshot, written once for all requests."""

    def __init__(self, observed: ObservedArchive, max_series: int) -> None:
        self._observed, self._max_series = observed, max_series
        self._lock = threading.Lock()
        self._written: dict[str, tuple[Snapshot, tuple[bytes, str]]] = {}

    def get(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics in a form that a client accepts, as `exposition` does.

        While others write those of the newest snapshot, they are those of one up to 5 s older.
        """
        snapshot = self._observed.snapshot(_WAIT_S)
        form = choose_encoder(accept)[1]
        of, made = self._written.get(form, (None, None))
        is_usable = of is not None and of.taken_ms >= snapshot.taken_ms - _USABLE_MS
        if self._lock.acquire(blocking=not is_usable):
            try:
                of, made = self._written.get(form, (None, None))
                if of is not snapshot or made is None:
                    made = exposition(snapshot, accept, self._max_series)
                    if len(self._written) >= _MAX_FORMS:
                        self._written.clear()
                    self._written[form] = snapshot, made
            finally:
                self._lock.release()
        assert made is not None
        return made


def _checks(observed: ObservedArchive) -> list[Check]:
    try:
        return checks(observed.snapshot(_WAIT_S))
    except StorageError as error:
        return [Check("files", False, observed.error_text(error))]
