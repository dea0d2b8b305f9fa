"""The web service: its routes, and the server that runs them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anyio.to_thread import current_default_thread_limiter
from fastapi import Depends, FastAPI, Request
from starlette.middleware import Middleware

from aerotape import __version__
from aerotape.replay.offline.selection import Selection
from aerotape.tools._web import monitoring
from aerotape.tools._web.journals import Journals
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.pages import routes
from aerotape.tools._web.proxies import Network
from aerotape.tools._web.rest import entities, ledgers, problems, recordings, sessions
from aerotape.tools._web.rest import retention as retentions
from aerotape.tools._web.rest import trend as trends
from aerotape.tools._web.rest.changes import Changes
from aerotape.tools._web.rest.reading import Reading
from aerotape.tools._web.rest.retention import Retention
from aerotape.tools._web.safety.edge import Edge
from aerotape.tools._web.safety.hosts import HostGuard
from aerotape.tools._web.safety.lanes import Lanes
from aerotape.tools._web.safety.parameters import check_parameters
from aerotape.tools._web.safety.prefix import Prefix
from aerotape.tools._web.safety.users import UserGuard
from aerotape.tools._web.schemas import payload_schemas
from aerotape.tools._web.session import ControlSession
from aerotape.tools._web.topics import Topics
from aerotape.tools._web.trend import Trend

_THREADS: Final = 16


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
        schemas: a selection for each SBE schema that payloads can be decoded with, which has its
            file and how its fields are decoded.
        root_path: the prefix of the paths by which a reverse proxy is asked, and which it removes.
        trusted_proxies: the addresses of proxies that may state another prefix.
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
    schemas: Sequence[Selection] = ()
    root_path: str = ""
    trusted_proxies: Sequence[Network] = ()


def create_app(
    observed: ObservedArchive, session: ControlSession, settings: WebSettings
) -> FastAPI:
    """Return the application.

    Args:
        observed: the archive.
        session: for what needs the archive itself: ledgers and changes.
        settings: of the service.

    Raises:
        ConfigurationError: the users file cannot be used.
        SchemaError: a schema is invalid.
    """
    trend = Trend(observed)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        # Few threads work at a time, so that none delays the others much.
        current_default_thread_limiter().total_tokens = _THREADS
        with trend:
            trend.start()
            yield

    names = (settings.host, *settings.allowed_hosts)
    middleware = [
        Middleware(Edge),
        Middleware(Prefix, prefix=settings.root_path, trusted=settings.trusted_proxies),
        Middleware(HostGuard, names=names),
    ]
    if settings.users is not None:
        middleware.append(Middleware(UserGuard, path=settings.users))
    middleware.append(Middleware(Lanes))
    app = FastAPI(
        title="aerotape",
        version=__version__,
        openapi_url=None,
        dependencies=[Depends(check_parameters)],
        middleware=middleware,
        lifespan=lifespan,
    )

    monitoring.add_routes(app, observed, settings.max_series)
    changes = Changes(session, observed, are_allowed=settings.allow_changes)
    reading = Reading(observed, payload_schemas(settings.schemas))
    topics, journals = Topics(observed), Journals(observed)
    app.include_router(recordings.router(observed, reading, changes))
    app.include_router(ledgers.router(session, changes))
    app.include_router(entities.router(journals, topics))
    retention = Retention(observed, changes, settings.retention)
    app.include_router(retentions.router(retention))
    app.include_router(trends.router(trend))
    app.include_router(sessions.router(observed))
    pages = routes.Pages(observed)
    app.include_router(
        routes.router(pages, observed, reading, session, changes, retention, topics, journals)
    )

    @app.get("/openapi.json", include_in_schema=False)
    def document(request: Request) -> dict[str, Any]:
        prefix = request.scope["root_path"]
        return {**app.openapi(), **({"servers": [{"url": prefix}]} if prefix else {})}

    problems.add_handlers(app, pages.problem, observed.error_text)
    return app
