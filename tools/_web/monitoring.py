"""Metrics and health: what must respond within a second, whatever else hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from aerotape.errors import StorageError
from aerotape.tools._web.health import Check, checks
from aerotape.tools._web.metrics.collector import exposition
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.paths import HEALTH, METRICS, READY

_T = TypeVar("_T")
_WAIT_S: Final = 0.7
"""How long reading the archive's files may take."""
_THREADS: Final = 4


def add_routes(app: FastAPI, observed: ObservedArchive, max_series: int) -> None:
    """Add the routes.

    Args:
        app: receives them.
        observed: the archive.
        max_series: the most recordings that have metrics of their own.
    """
    # The threads of other requests may all wait, for the archive or the storage.
    threads = ThreadPoolExecutor(_THREADS, "monitoring")

    async def in_thread(call: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(threads, call)

    @app.get(METRICS, summary="Metrics for Prometheus")
    async def metrics(request: Request) -> Response:
        accept = request.headers.get("accept", "")
        content, content_type = await in_thread(
            lambda: exposition(observed.snapshot(_WAIT_S), accept, max_series)
        )
        return Response(content, headers={"Content-Type": content_type})

    @app.get(HEALTH, summary="Whether this service runs")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get(READY, summary="Whether the archive is fit for work, 503 if not, with reasons")
    async def readyz() -> JSONResponse:
        found = await in_thread(lambda: _checks(observed))
        content: dict[str, Any] = {
            "ready": all(check.is_ok for check in found),
            "checks": [check.row for check in found],
        }
        return JSONResponse(content, 200 if content["ready"] else 503)


def _checks(observed: ObservedArchive) -> list[Check]:
    try:
        return checks(observed.snapshot(_WAIT_S))
    except StorageError as error:
        return [Check("files", False, str(error))]
