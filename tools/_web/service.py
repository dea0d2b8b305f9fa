"""The web service: its routes, and the server that runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.middleware import Middleware

from aerotape import __version__
from aerotape.codecs.payloads import PayloadSchema
from aerotape.tools._web.health import checks
from aerotape.tools._web.metrics.collector import exposition
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.pages import routes
from aerotape.tools._web.rest import entities, ledgers, problems, recordings
from aerotape.tools._web.rest import retention as retentions
from aerotape.tools._web.rest.changes import Changes
from aerotape.tools._web.rest.retention import Retention
from aerotape.tools._web.safety.hosts import HostGuard
from aerotape.tools._web.safety.users import UserGuard
from aerotape.tools._web.session import ControlSession


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The settings of the service.

    Attributes:
        host: the address that it binds to.
        port: the port; 0: one that is free.
        users: the users file; None: everybody who reaches it.
        allowed_hosts: names by which it is reached, besides `host` and local ones.
        certificate: the TLS certificate with its chain, a PEM file; None without TLS.
        key: the certificate's private key, a PEM file.
        max_series: the most recordings that have metrics of their own.
        allow_changes: whether requests may change the archive.
        retention: the retention policy whose plan is shown; None: none.
        schemas: SBE schemas that payloads can be decoded with, XML or .sbeir.
    """

    host: str
    port: int
    users: Path | None = None
    allowed_hosts: Sequence[str] = ()
    certificate: Path | None = None
    key: Path | None = None
    max_series: int = 1_000
    allow_changes: bool = False
    retention: Path | None = None
    schemas: Sequence[Path] = ()


def create_app(
    observed: ObservedArchive, session: ControlSession, settings: WebSettings
) -> FastAPI:
    """Return the application.

    Args:
        observed: the archive.
        session: for what needs the archive itself: ledgers, entities and changes.
        settings: of the service.

    Raises:
        ConfigurationError: the users file cannot be used.
        SchemaError: a schema is invalid.
    """
    names = (settings.host, *settings.allowed_hosts)
    middleware = [Middleware(HostGuard, names=names)]
    if settings.users is not None:
        middleware.append(Middleware(UserGuard, path=settings.users))
    app = FastAPI(
        title="aerotape", version=__version__, docs_url=None, redoc_url=None, middleware=middleware
    )

    @app.get("/metrics", summary="Metrics for Prometheus")
    def metrics(request: Request) -> Response:
        accept = request.headers.get("accept", "")
        content, content_type = exposition(observed, accept, settings.max_series)
        return Response(content, headers={"Content-Type": content_type})

    @app.get("/healthz", summary="Whether this service runs")
    def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz", summary="Whether the archive is fit for work, 503 if not, with reasons")
    def readyz() -> JSONResponse:
        found = checks(observed.snapshot())
        content: dict[str, Any] = {
            "ready": all(check.is_ok for check in found),
            "checks": [check.row for check in found],
        }
        return JSONResponse(content, 200 if content["ready"] else 503)

    changes = Changes(session, are_allowed=settings.allow_changes)
    schemas = {path.stem: PayloadSchema.from_file(path) for path in settings.schemas}
    reading = recordings.Reading(observed, schemas)
    app.include_router(recordings.router(observed, reading, changes))
    app.include_router(ledgers.router(session, changes))
    app.include_router(entities.router(session))
    retention = Retention(observed, settings.retention)
    app.include_router(retentions.router(retention))
    app.include_router(routes.router(observed, reading, session, retention))
    app.mount("/static", routes.static_files())
    problems.add_handlers(app)
    return app
