"""`/api/v1/sessions`: the control sessions of the archive."""

from __future__ import annotations

import dataclasses

from fastapi import APIRouter, Response

from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.rest.answers import answer, row_text


def router(observed: ObservedArchive) -> APIRouter:
    """Return the route."""
    routes = APIRouter(prefix="/api/v1/sessions", tags=["archive"])

    @routes.get("", summary="Who is connected, from where, since when, and what they read")
    def sessions() -> Response:
        rows = map(dataclasses.asdict, observed.snapshot().sessions)
        # Numbers of 64 bits exceed the integers of JSON readers.
        return answer(
            row_text({**row, "control_session_id": str(row["control_session_id"])}) for row in rows
        )

    return routes
