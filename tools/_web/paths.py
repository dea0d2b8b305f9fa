"""Paths of the web service that are treated in a special way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DOWNLOAD: Final = "/payload"
"""The end of the path of a file of any length."""
HEALTH: Final = "/healthz"
READY: Final = "/readyz"
METRICS: Final = "/metrics"
LIVE: Final = "/live"
MONITORING: Final = frozenset({HEALTH, READY, METRICS})


def route_path(scope: Mapping[str, object]) -> str:
    """Return the path of a request without the prefix of the service."""
    path, prefix = str(scope["path"]), str(scope.get("root_path", ""))
    if prefix and path.startswith(f"{prefix}/"):
        return path[len(prefix) :]
    return path
