"""`/api/v1/trend`: what was recorded over the last hours."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from fastapi import APIRouter, Query

from aerotape.tools._web.trend import FINE_S, KEPT_S, Trend


def router(trend: Trend) -> APIRouter:
    """Return the route."""
    routes = APIRouter(prefix="/api/v1/trend", tags=["archive"])

    @routes.get("", summary="Bytes and messages recorded each second, and free space, over time")
    def points(
        seconds: Annotated[int, Query(ge=1, le=KEPT_S, description="how far back")] = FINE_S,
    ) -> dict[str, Any]:
        return {
            "points": [dataclasses.asdict(each) for each in trend.points(seconds)],
            "full_in_s": trend.full_in_s(),
        }

    return routes
